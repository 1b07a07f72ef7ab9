// SPDX-License-Identifier: GPL-2.0
/*
 * One bio for all bios of a merged request.
 *
 * DOC: bundles
 *
 * dm-rq clones each bio of a request and handles the completion of each clone.
 * For a request that merged from dozens of small bios this is what costs most.
 * So, before dm-rq clones it, the bios of such a request are taken off and one
 * bio of our own, the bundle, takes their place: its vector lists the memory of
 * all of them.  dm-rq then clones one bio.
 *
 *	rq->bio: A -> B -> C		rq->bio: bundle
 *				=>	bundle->first: A -> B -> C
 *
 * - The path completes the request: the core ends the bundle, and the bundle
 *   ends A, B and C, in this order, with its status.
 * - The request goes back to the block layer (path full, path failed): the bios
 *   are put back first, so nobody but dm-rq ever sees a bundle, and a request
 *   that waits again can merge again.
 * - The request fails: the bios are put back, too, and fail with its status or
 *   are tried one by one (dm-rq-single.c).
 *
 * Requests whose bios differ in more than their place are left alone: mixed
 * fail-fast flags, integrity data, encryption, flush sequences.
 */

#include <linux/blk-crypto.h>
#include <linux/blk-integrity.h>

#include "dm-mpath-rr.h"
#include "dm-rq-bundle.h"

/* Fewer bios than this are cloned one by one: a bundle costs about as much. */
#define MPRR_BUNDLE_MIN		3

/* The reserve is small: without memory, the bios are cloned one by one. */
#define MPRR_BUNDLE_RESERVE	2

/**
 * struct mprr_bundle - one bio for several
 * @io: the request's data; its &mprr_io.bundle points back
 * @first: the bios that it stands for, linked by bi_next
 * @last: the last of them
 * @bio: what the request has instead; last, its inline vector follows
 */
struct mprr_bundle {
	struct mprr_io *io;
	struct bio *first;
	struct bio *last;
	struct bio bio;
};

static struct bio_set bundle_set;

static void bundle_end_io(struct bio *bundle_bio)
{
	struct mprr_bundle *bundle = container_of(bundle_bio, struct mprr_bundle, bio);
	blk_status_t status = bundle_bio->bi_status;
	bool quiet = bio_flagged(bundle_bio, BIO_QUIET);
	struct bio *bio = bundle->first;

	bundle->io->bundle = NULL;
	bio_put(bundle_bio);

	while (bio) {
		struct bio *next = bio->bi_next;

		bio->bi_next = NULL;
		/* A bio may have got the error of one that it is chained to. */
		if (status)
			bio->bi_status = status;
		if (quiet)
			bio_set_flag(bio, BIO_QUIET);
		/* The request's completion has been traced; the bio's is the same. */
		bio_clear_flag(bio, BIO_TRACE_COMPLETION);
		bio_advance(bio, bio->bi_iter.bi_size);
		bio_endio(bio);
		bio = next;
	}
}

static bool may_bundle(struct request *rq)
{
	if (req_op(rq) != REQ_OP_READ && req_op(rq) != REQ_OP_WRITE)
		return false;
	if (rq->rq_flags & (RQF_MIXED_MERGE | RQF_SPECIAL_PAYLOAD | RQF_FLUSH_SEQ))
		return false;
	/* Parts of a page that meet join only across bios: a gap in a bundle. */
	if (queue_virt_boundary(rq->q))
		return false;
	return rq->nr_phys_segments <= BIO_MAX_VECS && !blk_integrity_rq(rq) &&
	       !bio_has_crypt_ctx(rq->bio);
}

/**
 * mprr_bundle - let one bio stand for all bios of a request
 * @io: the request's data
 * @rq: the request, about to be cloned
 * @nr_bios: how many bios it has
 *
 * Does nothing where it does not pay, is not
 * possible, or has no memory.
 *
 * Context: queue_rq, atomic.
 */
void mprr_bundle(struct mprr_io *io, struct request *rq, unsigned int nr_bios)
{
	struct mprr_bundle *bundle;
	struct bio *bio, *bundle_bio;
	unsigned int nr = 0;

	io->bundle = NULL;
	if (nr_bios < MPRR_BUNDLE_MIN || !may_bundle(rq))
		return;

	bundle_bio = bio_alloc_bioset(NULL, rq->nr_phys_segments, rq->bio->bi_opf,
				      GFP_NOWAIT | __GFP_NOWARN, &bundle_set);
	if (!bundle_bio)
		return;

	__rq_for_each_bio(bio, rq) {
		struct bvec_iter iter;
		struct bio_vec bv;

		bio_for_each_bvec(bv, bio, iter) {
			if (WARN_ON_ONCE(nr == bundle_bio->bi_max_vecs)) {
				bio_put(bundle_bio);
				return;
			}
			bundle_bio->bi_io_vec[nr++] = bv;
		}
	}
	bundle_bio->bi_vcnt = nr;
	bundle_bio->bi_iter.bi_sector = blk_rq_pos(rq);
	bundle_bio->bi_iter.bi_size = blk_rq_bytes(rq);
	bundle_bio->bi_ioprio = rq->bio->bi_ioprio;
	mprr_bio_copy_hints(bundle_bio, rq->bio);
	bundle_bio->bi_end_io = bundle_end_io;
	bundle_bio->bi_bdev = rq->bio->bi_bdev;
	/* What merges belongs to one cgroup. */
	bio_clone_blkg_association(bundle_bio, rq->bio);

	bundle = container_of(bundle_bio, struct mprr_bundle, bio);
	bundle->io = io;
	bundle->first = rq->bio;
	bundle->last = rq->biotail;
	io->bundle = bundle;
	rq->bio = bundle_bio;
	rq->biotail = bundle_bio;
}

/**
 * mprr_bundle_clone_bio - a clone of a bio, with memory of the reserve
 * @bdev: the device that it goes to
 * @bio: the bio
 *
 * Context: process, may sleep.
 * Return: the clone, never NULL; bio_put() ends it.
 */
struct bio *mprr_bundle_clone_bio(struct block_device *bdev, struct bio *bio)
{
	return bio_alloc_clone(bdev, bio, GFP_NOIO, &bundle_set);
}

/**
 * mprr_unbundle - give a request its bios back
 * @io: the request's data
 * @rq: the request, not completed, with no clone in flight
 *
 * Context: any.
 */
void mprr_unbundle(struct mprr_io *io, struct request *rq)
{
	struct mprr_bundle *bundle = io->bundle;

	if (!bundle)
		return;

	io->bundle = NULL;
	rq->bio = bundle->first;
	rq->biotail = bundle->last;
	bio_put(&bundle->bio);
}

/**
 * mprr_bundle_init - reserve memory for all maps
 *
 * Return: 0 or a negative errno.
 */
int mprr_bundle_init(void)
{
	return bioset_init(&bundle_set, MPRR_BUNDLE_RESERVE,
			   offsetof(struct mprr_bundle, bio), BIOSET_NEED_BVECS);
}

/**
 * mprr_bundle_exit - free the memory; no request is left
 */
void mprr_bundle_exit(void)
{
	bioset_exit(&bundle_set);
}

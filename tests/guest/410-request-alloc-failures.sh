#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: allocations fail on the way of a request, under verified I/O: the bios of clones, the
#       scatter lists of the paths' driver; the block core refuses clones of a path.
# Why:  a clone that is handed back must be undone exactly: no error, no wrong block, no
#       counter that stays, and no path that fails for want of memory.
# How:  failslab on the one slab that has the map's bios, with a reserve of one; failslab on
#       the scatter lists; fail_make_request. Needs a kernel with fault injection.
# limit: 200
. "$(dirname "$0")/lib.sh"

FAILSLAB=/sys/kernel/debug/failslab
FAILREQ=/sys/kernel/debug/fail_make_request
SLABS=/sys/kernel/slab
RESERVE=/sys/module/dm_mod/parameters/reserved_rq_based_ios
MANY=1000000000		# failures still to come; counts down

build_c race
RACE=$PROGRAM
mod_load
paths_up 2
TWO="1 queue-length 0 2 1 $A 1 $B 1"

failed() { info_paths | grep -c ' F ' || true; }
quiet() {
	wait_until 10 "$1: nothing is in flight" idle
	is "$(info_paths | awk '{n += $6} END {print n}')" 0 "$1: the selector counts nothing in flight"
}
# inject ATTR PERCENT, then injected ATTR: how often it failed
inject() {
	echo N >"$1/task-filter"
	echo 0 >"$1/verbose"
	echo 1 >"$1/interval"
	echo 0 >"$1/space"
	echo $MANY >"$1/times"
	echo "$2" >"$1/probability"
}
injected() { echo 0 >"$1/probability"; echo $((MANY - $(cat "$1/times"))); }

# requeued: requests of the map that went back to the block layer since requeues_begin
requeues_begin() {
	local n
	trace_mount
	n=$(devno "$(dm_name)")
	echo 0 >$TRACING/tracing_on
	echo "dev == $(((${n%:*} << 20) | ${n#*:}))" >$TRACING/events/block/block_rq_requeue/filter
	echo >$TRACING/trace
	echo 1 >$TRACING/events/block/block_rq_requeue/enable
	echo 1 >$TRACING/tracing_on
}
requeued() {
	echo 0 >$TRACING/tracing_on
	echo 0 >$TRACING/events/block/block_rq_requeue/enable
	grep -c block_rq_requeue: $TRACING/trace || true
}
# load DESC: fio with verify, and exactly verified small I/O beside it
load() {
	local small
	spawn "$RACE" -l $((30 * MPRR_SLOW)) io $DEV 3
	small=$SPAWNED
	fio_ok "$1: verified I/O" --offset=16m --size=6m --iodepth=16
	kill -TERM "$small"
	ends 30 "$1: exactly verified I/O" "$small" '^ok '
	diag "$(spawn_output "$small")"
}

if [ -d $FAILSLAB ] && [ -e "$(echo $SLABS/bio-* | cut -d' ' -f1)/failslab" ]; then
	echo N >$FAILSLAB/ignore-gfp-wait
	for s in "$SLABS"/*/failslab; do echo 0 2>/dev/null >"$s" || true; done
	echo Y >$FAILSLAB/cache-filter

	# ---- the bios of clones: which slab are they in? the one that grows with the reserve ----
	objects() { awk '$1 ~ /^(bio|:)/ {print $1, $2}' /proc/slabinfo | sort; }
	objects >"$MPRR_TMP/before"
	echo 1000 >$RESERVE
	mk_map "0 0 1 $TWO"
	objects >"$MPRR_TMP/after"
	slab=$(join "$MPRR_TMP/before" "$MPRR_TMP/after" 2>/dev/null | awk '$3 - $2 > 700 && !n++ {print $1}')
	[ -n "$slab" ] || slab=$(join -v 2 "$MPRR_TMP/before" "$MPRR_TMP/after" | awk '$2 > 700 && !n++ {print $1}')
	rm_map
	like "$slab" '^(bio|:)' "one slab has the reserve of the map's bios"
	echo 1 >$RESERVE
	mk_map "0 0 1 $TWO"
	echo 0 >$RESERVE

	requeues_begin
	load "no failure"
	before=$(requeued)
	echo 1 >$SLABS/"$slab"/failslab
	requeues_begin
	inject $FAILSLAB 60
	load "no memory for bios of clones"
	n=$(injected $FAILSLAB)
	back=$(requeued)
	echo 0 >$SLABS/"$slab"/failslab
	between "$n" 20 $MANY "so many allocations failed in $slab"
	between "$back" $((before + 5)) $MANY "so many requests went back ($before without failures)"
	is "$(failed)" 0 "no path fails for want of memory"
	quiet "no memory for bios of clones"
	load "memory is back"
	quiet "memory is back"

	# ---- the scatter lists of the paths' driver: it says busy ----
	for s in "$SLABS"/sgpool-*; do echo 1 >"$s/failslab"; done
	inject $FAILSLAB 60
	load "no memory for scatter lists"
	n=$(injected $FAILSLAB)
	for s in "$SLABS"/sgpool-*; do echo 0 >"$s/failslab"; done
	between "$n" 5 $MANY "so many allocations of scatter lists failed"
	is "$(failed)" 0 "no path fails because its driver has no memory"
	quiet "no memory for scatter lists"
	echo N >$FAILSLAB/cache-filter
	rm_map
else
	skip "failing allocations" "this kernel has no failslab with cache filter"
fi

if [ -d $FAILREQ ] && [ -e "/sys/block/${DISK[0]}/make-it-fail" ]; then
	# ---- the core refuses the clones of one path: that path's fault ----
	mk_map "1 queue_if_no_path 0 1 $TWO"
	echo 1 >"/sys/block/${DISK[0]}/make-it-fail"
	inject $FAILREQ 100
	is "$(reads 10), $(path_state "$A")$(path_state "$B")" "ok done=10 errors=0, FA" \
		"every clone of one path is refused: it fails, the other does the work"
	message "reinstate_path $A"

	# ---- now and then on both, while somebody reinstates them ----
	echo 1 >"/sys/block/${DISK[1]}/make-it-fail"
	inject $FAILREQ 20
	reinstate() { while [ ! -e "$MPRR_TMP/stop" ]; do message "reinstate_path $A"; message "reinstate_path $B"; done; }
	rm -f "$MPRR_TMP/stop"
	spawn reinstate
	reinstate=$SPAWNED
	load "every fifth clone is refused"
	n=$(injected $FAILREQ)
	touch "$MPRR_TMP/stop"
	ends 10 "reinstating ends" "$reinstate" ''
	for d in "${DISK[@]}"; do echo 0 >"/sys/block/$d/make-it-fail"; done
	for p in "$A" "$B"; do message "reinstate_path $p"; done
	between "$n" 20 $MANY "so many clones were refused"
	quiet "refused clones"
	fio_ok "and verified I/O works" --size=4m
	rm_map
else
	skip "the core refuses clones" "this kernel has no fail_make_request"
fi

done_testing

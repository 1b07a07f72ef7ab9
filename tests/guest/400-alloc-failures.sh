#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: each allocation of a table load, of a map's first table, of messages and of the
#       module's load fails in turn: a clean ENOMEM, or it works without; nothing is left.
# Why:  the unwinding of a constructor is code that nothing else runs.
# How:  /proc/thread-self/fail-nth and failslab; the stack of each failure shows which
#       allocation it was, and every function of the sources that allocates must have been
#       among them. Needs a kernel with fault injection.
# limit: 400
. "$(dirname "$0")/lib.sh"

FAILSLAB=/sys/kernel/debug/failslab
if in_kernel; then skip_rest "it reads this module's sources"; fi
if [ ! -e /proc/thread-self/fail-nth ] || [ ! -d $FAILSLAB ]; then
	skip_rest "this kernel has no failslab or no /proc/thread-self/fail-nth"
fi
echo N >$FAILSLAB/ignore-gfp-wait
echo 0 >$FAILSLAB/probability
echo 2 >$FAILSLAB/verbose
echo 0 >$FAILSLAB/verbose_ratelimit_interval_ms
# Slabs try big pages first and do without: such a failure would only shift the count.
PAGES=/sys/kernel/debug/fail_page_alloc/min-order
[ ! -e $PAGES ] || echo 1000 >$PAGES

# What the detectors allocate for themselves may not fail: with each allocation kmemleak makes an
# object of its own, whose failure is silent and changes nothing, but would be counted.
fail_in_slabs() { # 0|1
	local s
	for s in /sys/kernel/slab/*/failslab; do
		case $s in */kmemleak_* | */debug_objects_cache/*) continue ;; esac
		echo "$1" 2>/dev/null >"$s" || true	# a merged slab cannot
	done
}
echo Y >$FAILSLAB/cache-filter

SRC=${MPRR_SRC:-/mprr/src}
build_c failnth
strip --strip-debug -o "$MPRR_TMP/small.ko" "$MPRR_KO"
mod_load
paths_up 4
modprobe scsi_dh_alua || true
fail_in_slabs 1		# when all of them are there

# ---- which function of the sources is a frame in: file:line of each inlined call ----
readelf -sW "$MPRR_KO" | awk '$4 == "FUNC" {print $8, $3, $2, $7}' >"$MPRR_TMP/functions"
readelf -SW "$MPRR_KO" | sed -n 's/^ *\[ *\([0-9]*\)\] \([^ ]*\) .*/\1 \2/p' >"$MPRR_TMP/sections"

# places FRAME: "function file:line" of the frame, the innermost first
places() {
	local frame=$1 name offset size section value
	name=${frame%%+*} offset=${frame#*+} size=${offset#*/} offset=${offset%/*}
	read -r value section < <(awk -v n="$name" -v s="$((size))" '
		$1 == n {d = $2 - s; if (d < 0) d = -d; if (!best || d < least) {best = $3 " " $4; least = d}}
		END {print best}' "$MPRR_TMP/functions")
	section=$(awk -v i="$section" '$1 == i {print $2}' "$MPRR_TMP/sections")
	# The frame holds the address after the call.
	addr2line -e "$MPRR_KO" -j "$section" -f -i "$(printf '%#x' $((0x$value + offset - 1)))" |
		awk 'NR % 2 {f = $1; next} {n = split($1, p, "/"); print f, p[n]}'
}

# sites FILE...: the failures that were in the module, by allocation: "count function file:line ..."
sites() {
	local count frame
	awk '$1 ~ /^[0-9]+$/ && NF == 4 && $4 != "-" {n[$4]++} END {for (f in n) print n[f], f}' "$@" |
		while read -r count frame; do
			echo "$count $(places "$frame" | xargs)"
		done | sort -k3
}

# failing NAME DESC VERB ARGS...: all failures of one kind
failing() {
	local name=$1 desc=$2 rc=0 out
	out=$MPRR_TMP/failnth.$name
	shift 2
	"$PROGRAM" "$@" >"$out" 2>&1 || rc=$?
	is "$rc $(grep -Ev '^([0-9]+ [^ ]+ [^ ]+ [^ ]+|end [0-9]+)$' "$out" | head -n 3)" "0 " \
		"$desc: nothing is left after any failure"
	is "$(awk '$3 == "failslab" {print $2}' "$out" | sort -u | grep -Ev '^(ok|ENOMEM)$' | xargs)" "" \
		"$desc: each is ENOMEM, or works without"
	between "$(grep -c failslab "$out" || true)" "${LEAST:-1}" 5000 "$desc: so many allocations failed"
	diag "$desc: $(awk '$3 == "failslab" {n[$2]++} END {for (e in n) printf "%s %d  ", e, n[e]}' "$out")"
}

# only_in START END: count only allocations under code at these addresses (where the kernel can)
only_in() {
	[ -e $FAILSLAB/require-start ] || return 0
	echo "$1" >$FAILSLAB/require-start
	echo "$2" >$FAILSLAB/require-end
}
only_in_module() {
	local start size
	start=$(cat /sys/module/dm_multipath_rr/sections/.text)
	size=$(readelf -SW "$MPRR_KO" | awk '{sub(/^ *\[ *[0-9]+\] */, "")} $1 == ".text" {print $5}')
	only_in "$start" "$(printf '%#x' $((start + 0x$size)))"
}
only_in_any_module() { only_in 0xffffffffa0000000 0xffffffffff000000; }
anywhere() { only_in 0 0xffffffffffffffff; }

# ---- table loads: no live table has the disks, so that each is opened ----
rr="round-robin 0 2 1 $A 100 $B 100"
RICH="4 queue_if_no_path pg_init_retries 5 retain_attached_hw_handler 2 alua 1 3 2 $rr queue-length 0 1 1 $C 1 service-time 0 1 2 $D 1 50"
PLAIN="1 queue_if_no_path 0 2 1 $rr queue-length 0 2 1 $C 1 $D 1"
REST="0 0 2 1 historical-service-time 0 2 0 $A $B io-affinity 0 2 1 $C 1 $D 2"
OTHER="0 1 hp_sw 1 1 round-robin 0 1 1 $A 1"
if ! modprobe scsi_dh_alua; then RICH=$PLAIN; fi
mk_map 0 0 0 0
# First while no disk has a handler: one that is attached stays, and no later table attaches it.
only_in_module
LEAST=10 failing attach "a table that attaches a handler" load $MAP "$(table "$RICH")"
if modprobe scsi_dh_hp_sw; then
	LEAST=4 failing other "a table with another handler than the attached" load $MAP "$(table "$OTHER")"
	dmsetup load $MAP --table "$(table "$OTHER")"
	REPLACED=$(dmsetup table --inactive $MAP)
	dmsetup clear $MAP
fi
anywhere
LEAST=20 failing rich "a table with a handler and three selectors" load $MAP "$(table "$RICH")" "${DISK[@]}"
only_in_module
LEAST=10 failing plain "a table without a handler" load $MAP "$(table "$PLAIN")" "${DISK[@]}"
LEAST=10 failing rest "a table with the other selectors" load $MAP "$(table "$REST")" "${DISK[@]}"
is "$(info_of | sed 's/ $//')" "2 1 0 0 0 0" "the live table is as it was"
rm_map
LEAST=10 failing first "the first table of a map" first mprrfirst "$(table "$PLAIN")" "${DISK[@]}"

anywhere

# ---- messages ----
mk_map "$PLAIN"
n=0
for text in "fail_path $A" "fail_path /dev/${DISK[1]}" "reinstate_path $A" "switch_group 2" \
	"disable_group 1" "fail_if_no_path"; do
	case $text in
	reinstate*) before=("fail_path $A") ;;
	*) before=("reinstate_path $A" "reinstate_path $B" "enable_group 1" "queue_if_no_path") ;;
	esac
	failing message$n "message $text" message $MAP "$text" "${before[@]}"
	n=$((n + 1))
done
for p in "$A" "$B" "$C" "$D"; do message "reinstate_path $p"; done
is "$(valid_paths)" 4 "all four paths are valid"
fio_ok "and verified I/O works" --size=4m
wait_until 10 "nothing is in flight" idle
rm_map

# ---- loading the module ----
# A kworker is called after the queue that it worked for last; a rescuer belongs to one queue. The thread
# that opens gates has a name like theirs.
rescuers() { ps -e -o comm= | awk '/^(kworker\/R-)?mprr_/ {n++} END {print n + 0}'; }
rescuers_are() { [ "$(rescuers)" = "$1" ]; }
is "$(rescuers)" 5 "the module has the rescuers of its four workqueues, and the gate's thread"
mod_unload
only_in_any_module
LEAST=3 failing init "loading the module" init "$MPRR_TMP/small.ko"
anywhere
is "$(mod_loaded && echo loaded || echo no)" no "it is unloaded"
wait_until 5 "no rescuer of its workqueues and no thread is left" rescuers_are 0
expect_ok "and it loads" mod_load
fail_in_slabs 0
echo N >$FAILSLAB/cache-filter

# ---- was every allocation of the sources among them? ----
sites "$MPRR_TMP"/failnth.* >"$MPRR_TMP/sites"
diag "allocations of the module that failed (count, function file:line, inlined into ...):"
diag "$(cat "$MPRR_TMP/sites")"

# callers: "function file line" of each line of the sources that allocates
callers() {
	local f
	for f in "$SRC"/*.c; do
		awk -v file="${f##*/}" '
			/^[a-z].*\(/ && !/;$/ {fn = $0; sub(/\(.*/, "", fn); sub(/.*[ *]/, "", fn)}
			/^ \*|^\/\*|^\t \*/ {next}
			/GFP_(KERNEL|ATOMIC|NOIO)|kzalloc_obj\(|alloc_(ordered_)?workqueue\(/ {print fn, file, NR}' "$f"
	done
}
# These cannot fail while a table is loaded:
# kernel_retains_handlers asks about a queue that is no SCSI device: the kernel says so before it allocates;
# mprr_bundle_clone_bio is on the request path, and has a reserve.
# probe_path is an ioctl's; it takes a page and a bio that has a reserve, no slab.
# mprr_stats_init takes per-CPU memory, which is no slab, and more than a page: that failure is
# silent, so no stack names it, and it does without the slab.
NEVER="kernel_retains_handlers mprr_bundle_clone_bio mprr_stats_init probe_path"
# attach_named asks for the name of a handler that cannot be replaced: newer kernels always keep the
# one that is attached, and then only a handler that comes in between leads there.
case ${REPLACED:-} in *hp_sw*) ;; *) NEVER+=" attach_named" ;; esac
for caller in $(callers | awk -v never=" $NEVER " '!index(never, " " $1 " ") {print $1}' | sort -u); do
	hit=$(grep -cE " $caller dm-" "$MPRR_TMP/sites" || true)
	if [ "$hit" != 0 ]; then pass "$caller: its allocations failed in $hit places"; else
		fail "$caller: its allocations have failed" "expected: in the list above" \
			"got:      not there; allocates at $(callers | grep "^$caller " | xargs)"
	fi
done

# By line, for people: a branch that these tables do not take is no fault of the test.
callers | while read -r caller file line; do
	grep -qE " $caller $file:($line|$((line + 1))|$((line + 2)))( |\$)" "$MPRR_TMP/sites" ||
		diag "has not failed by itself: $caller $file:$line"
done

done_testing

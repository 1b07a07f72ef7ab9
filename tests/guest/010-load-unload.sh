#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: loading, unloading, parameters, living next to the in-kernel dm-multipath.
# Why:  a refused load must leave nothing half registered, in either order; a map pins
#       the module; a wrong parameter is refused, not guessed.
. "$(dirname "$0")/lib.sh"

if in_kernel; then skip_rest "it is about our module only"; fi

version_of() { dmsetup targets | awk -v t="$1" '$1 == t {print $2}'; }

# ---- alone ----
expect_ok "the module loads" mod_load
expect_ok "target mpath-rr is there" has_target mpath-rr
like "$(version_of mpath-rr)" '^v[0-9]+\.[0-9]+\.[0-9]+$' "its version has three numbers"
is "$(has_target multipath && echo yes || echo no)" no "without takeover there is no target multipath"
like "$(modinfo -F alias "$MPRR_KO")" 'dm-mpath-rr' "modinfo: alias dm-mpath-rr"
is "$(modinfo -F license "$MPRR_KO" | cut -c1-3)" GPL "modinfo: license GPL"
unlike "$(modinfo -F name "$MPRR_KO")" '^dm.multipath$' "modinfo: not the name of the in-kernel module"
is "$(cat "$PARAMS/takeover")" N "takeover is off by default"
is "$(stat -c %a "$PARAMS/takeover")" 444 "takeover cannot be changed at run time"
is "$(cat "$PARAMS/queue_if_no_path_timeout_secs")" 0 "queue_if_no_path_timeout_secs is 0 by default"
is "$(stat -c %a "$PARAMS/queue_if_no_path_timeout_secs")" 644 "queue_if_no_path_timeout_secs can be changed at run time"
for bad in abc -1 99999999999999999999 ''; do
	expect_fail "queue_if_no_path_timeout_secs refuses \"$bad\"" "" \
		bash -c "echo '$bad' >$PARAMS/queue_if_no_path_timeout_secs"
done
echo 5 >"$PARAMS/queue_if_no_path_timeout_secs"
is "$(cat "$PARAMS/queue_if_no_path_timeout_secs")" 5 "queue_if_no_path_timeout_secs accepts 5"
expect_fail "a second insmod is refused" "File exists" insmod "$MPRR_KO"
expect_ok "the module unloads" mod_unload
is "$(has_target mpath-rr && echo yes || echo no)" no "its target is gone"

# ---- parameters at load time ----
for bad in takeover=maybe takeover=7x queue_if_no_path_timeout_secs=-1 queue_if_no_path_timeout_secs=soon; do
	expect_fail "insmod with $bad is refused" "[Ii]nvalid" mod_load "$bad"
	is "$(mod_loaded && echo loaded || echo no)" no "after that nothing is loaded"
done
klog_mark
expect_ok "an unknown parameter does not stop the load" mod_load no_such_parameter=1
klog_like "unknown parameter 'no_such_parameter'" "but the kernel log says so"
expect_ok "and it unloads" mod_unload
mod_load queue_if_no_path_timeout_secs=7
is "$(cat "$PARAMS/queue_if_no_path_timeout_secs")" 7 "a value given at load time is in force"
mod_unload

# ---- next to the in-kernel target ----
modprobe dm_multipath
expect_ok "without takeover it loads next to the in-kernel dm-multipath" mod_load
expect_ok "both targets are there: mpath-rr" has_target mpath-rr
expect_ok "both targets are there: multipath" has_target multipath
mod_unload
expect_ok "unloading ours leaves theirs" has_target multipath
klog_mark
expect_fail "takeover=1 next to a loaded dm-multipath is refused (EBUSY)" "busy|File exists" \
	mod_load takeover=1
# trap: name-taken
klog_like 'mpath-rr.*multipath' "the kernel log says who has the name multipath"
is "$(mod_loaded && echo loaded || echo no)" no "nothing stays loaded"
is "$(has_target mpath-rr && echo yes || echo no)" no "not even target mpath-rr"
expect_ok "and it still loads without takeover" mod_load
mod_unload
rmmod dm_multipath

# ---- the other order ----
expect_ok "takeover=1 loads where nobody has the name" mod_load takeover=1
expect_ok "both names are ours: mpath-rr" has_target mpath-rr
expect_ok "both names are ours: multipath" has_target multipath
is "$(cat "$PARAMS/takeover")" Y "takeover reads Y"
case $MPRR_KERNEL in 7.*) want='^v1\.15\.[0-9]+$' ;; *) want='^v1\.14\.[0-9]+$' ;; esac
# trap: version-and-name
like "$(version_of multipath)" "$want" "multipath has the version of this kernel's own"
# trap: name-taken
expect_fail "the in-kernel dm-multipath cannot load now" "busy|File exists|Exec format|Invalid parameters" insmod \
	"$(modinfo -F filename dm_multipath)"
is "$(mod_loaded dm_multipath && echo loaded || echo no)" no "and is not half there"
expect_ok "target multipath still works after that" has_target multipath
paths_up 2
dmsetup create $MAP --table "0 $LEN multipath 0 0 1 1 round-robin 0 2 1 $A 10 $B 10"
like "$(dmsetup table $MAP)" "^0 $LEN multipath .*$A 10 $B 10 ?$" "a map of type multipath is served by us"
is "$(io write 0 4096)" ok "and does I/O"

# ---- unload with a map ----
expect_fail "unload with a live map is refused" "in use" rmmod $MODULE
is "$(io read 0 4096)" ok "the map still works"
rm_map
dmsetup create $MAP --notable
dmsetup load $MAP --table "0 $LEN mpath-rr 0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
expect_fail "unload with an inactive table only is refused" "in use" rmmod $MODULE
dmsetup clear $MAP
expect_ok "after clearing that table it unloads" mod_unload
rm_map

# ---- again and again ----
i=0
while [ $i -lt 10 ] && mod_load takeover=$((i % 2)) && mod_unload; do i=$((i + 1)); done
is $i 10 "ten loads and unloads in a row"

done_testing

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: activation of groups by a hardware handler: each answer that a handler can give, with
#       the number of activations, the states of paths and groups, and the I/O that waits.
# Why:  real arrays answer like this only on a bad day: a group that is refused, a retry that
#       never ends, I/O that waits for an activation which is over.
# How:  with a handler of its own (tests/planted/mprr-handler.c), which is built for the debug
#       kernels only.
# limit: 60
. "$(dirname "$0")/lib.sh"

HANDLER=/mprr/ko/planted/mprr-handler.ko
[ -e $HANDLER ] || skip_rest "the test handler is built for the debug kernels only"
# scsi_dh.h
OK=0 TEMP_BUSY=2 IO=8 RETRY=10 IMM_RETRY=11 RES_TEMP_UNAVAIL=13 NOMEM=15 NOSYS=16

mod_load
insmod $HANDLER
paths_up 4
KNOB=/sys/module/mprr_handler/parameters
# answer RESULT TIMES [DELAY_MS]: the next TIMES activations end with RESULT
answer() {
	echo "$1" >$KNOB/result
	echo "$2" >$KNOB/times
	echo "${3:-0}" >$KNOB/delay_ms
	echo 0 >$KNOB/count
}
activations() { cat $KNOB/count; }
activated() { [ "$(activations)" -ge "$1" ]; }
# held_up: do requests wait for an activation, and the activations of the current group: INFO
held_up() { info_of | awk '{print $2, $3}'; }
states() { info_paths | awk '{printf "%s", $4} END {print ""}'; }

GROUPS2="2 1 round-robin 0 2 1 $A 1 $B 1 round-robin 0 2 1 $C 1 $D 1"
# fresh FEATURES: a new map, no group chosen yet
fresh() {
	[ ! -e $DEV ] || rm_map
	mk_map "$1 1 mprr_test $GROUPS2"
	answer $OK 0
}

# ---- attaching, parameters ----
echo $IO >$KNOB/attach_result
like "$("$HELPER" load "$(table "0 1 mprr_test $GROUPS2")" || true)" '^EINVAL' \
	"a handler that does not attach: the table is refused"
echo $NOMEM >$KNOB/attach_result
like "$("$HELPER" load "$(table "0 1 mprr_test $GROUPS2")" || true)" '^ENOMEM' \
	"a handler that has no memory to attach: ENOMEM"
echo $OK >$KNOB/attach_result
klog_mark
like "$("$HELPER" load "$(table "0 2 mprr_test bad $GROUPS2")" || true)" '^EINVAL' \
	"parameters that the handler refuses: the table is refused"
klog_like "error setting hardware handler parameters" "and the log says so"
mk_map "0 3 mprr_test one two $GROUPS2"
is "$(cat $KNOB/words)" "one,two" "the handler gets its parameters"
is "$(cut -d' ' -f1 <<<"$(cat "$(scsi_dir "${DISK[0]}")/dh_state")")" mprr_test "it is attached"
expect_table "TABLE names the handler, without parameters" "0 1 mprr_test $GROUPS2"

# ---- each group is activated once, before its first I/O ----
answer $OK 0
is "$(io read 0 4096)" ok "the first read"
is "$(activations), $(held_up)" "2, 0 1" "both paths of the group are activated, once"
is "$(reads 10)" "ok done=10 errors=0" "more reads"
is "$(activations)" 2 "without more activations"
message "switch_group 2"
is "$(io read 0 4096)" ok "a read after a switch"
is "$(activations), $(current_group)" "4, 2" "activates the other group"
message "fail_path $C"
message "reinstate_path $C"
wait_until 5 "a path that comes back into the current group is activated" activated 5
message "fail_path $A"
message "reinstate_path $A"
is "$(reads 10)" "ok done=10 errors=0" "reads"
is "$(activations)" 5 "one that comes back into another group is not"

# ---- a failure is that path's ----
for result in $IO $NOSYS; do
	fresh 0
	answer "$result" 1
	is "$(io read 0 4096)" ok "an activation fails ($result): the read works"
	is "$(states), $(current_group)" "FAAA, 1" "that path has failed, the group goes on"
	fresh 0
	answer "$result" 2
	is "$(io read 0 4096)" ok "both fail: the read works"
	is "$(states), $(current_group)" "FFAA, 2" "on the other group"
	fresh 0
	answer "$result" 4
	is "$(io read 0 4096)" EIO "all four fail: the read fails"
	is "$(states)" FFFF "no path is left"
	fresh "1 queue_if_no_path"
	answer "$result" 4
	spawn "$HELPER" io $DEV read 0 4096
	all_failed() { [ "$(states)" = FFFF ]; }
	wait_until 5 "with queueing: all four fail" all_failed
	expect_ok "and the read waits" alive "$SPAWNED"
	message "reinstate_path $B"
	ends 5 "until a path is back, activated" "$SPAWNED" '^ok'
	is "$(activations)" 5 "by one more activation"
done

# ---- a busy controller: its group is passed over, no path fails ----
fresh 0
answer $TEMP_BUSY 1
is "$(io read 0 4096)" ok "a busy controller: the read works"
is "$(states), $(group_states), $(current_group)" "AAAA, D A, 2" "on the other group; no path has failed"
fresh "1 queue_if_no_path"
answer $TEMP_BUSY 4
is "$(io read 0 4096)" ok "both controllers are busy for a moment: the read works, later"
is "$(states)" AAAA "no path has failed"

# ---- again: so often as the table says, then the path fails ----
for result in $RETRY $IMM_RETRY $RES_TEMP_UNAVAIL; do
	fresh "4 pg_init_retries 3 pg_init_delay_msecs 100"
	answer "$result" 2
	is "$(io read 0 4096)" ok "again ($result): the read works"
	is "$(states), $(current_group), $(held_up)" "AAAA, 1, 0 2" "no path has failed, at the second try"
	fresh "4 pg_init_retries 1 pg_init_delay_msecs 100"
	answer "$result" 4
	is "$(io read 0 4096)" ok "again, too often: the read works"
	is "$(states), $(current_group)" "FFAA, 2" "on the other group"
done
fresh "4 pg_init_retries 3 pg_init_delay_msecs 700"
answer $RETRY 2
t0=$(now_ms)
is "$(io read 0 4096)" ok "again, with a pause: the read works"
between $(($(now_ms) - t0)) 700 $((700 + 5000 * MPRR_SLOW)) "not before the pause is over (ms)"
fresh "4 pg_init_retries 3 pg_init_delay_msecs 20000"
answer $IMM_RETRY 2
t0=$(now_ms)
is "$(io read 0 4096)" ok "again, at once: the read works"
between $(($(now_ms) - t0)) 0 19999 "without the pause (ms)"

# ---- what happens meanwhile ----
fresh "1 queue_if_no_path"
answer $OK 0 $((100 * MPRR_SLOW))
spawn "$HELPER" io $DEV read 0 4096
reader=$SPAWNED
wait_until 5 "an activation runs" activated 1
is "$(held_up)" "1 1" "I/O is held"
for p in "$A" "$B"; do message "fail_path $p"; done
ends 10 "all paths of the group fail meanwhile: the read goes to the other group" "$reader" '^ok'
is "$(current_group)" 2 "which is the current one"
fresh "1 queue_if_no_path"
answer $OK 0 $((100 * MPRR_SLOW))
spawn "$HELPER" io $DEV read 0 4096
reader=$SPAWNED
wait_until 5 "an activation runs" activated 1
message "switch_group 2"
ends 10 "a switch meanwhile: the read goes on" "$reader" '^ok'
is "$(current_group)" 2 "on the group that was asked for"
fresh "3 queue_if_no_path pg_init_retries 3"
answer $RETRY 100 $((30 * MPRR_SLOW))
spawn "$HELPER" io $DEV read 0 4096
reader=$SPAWNED
wait_until 5 "an activation runs" activated 1
expect_ok "suspended meanwhile, without flush" timeout $((20 * MPRR_SLOW)) dmsetup suspend --noflush $MAP
answer $OK 0
dmsetup resume $MAP
ends 10 "the read goes on after the resume" "$reader" '^ok'
is "$(states)" AAAA "no path has failed"
fresh "1 queue_if_no_path"
answer $OK 0 $((30 * MPRR_SLOW))
spawn "$HELPER" io $DEV read 0 4096
reader=$SPAWNED
wait_until 5 "an activation runs" activated 1
spawn "$HELPER" tur $DEV
ends 10 "an ioctl waits for it" "$SPAWNED" '^ok'
ends 10 "and so does the read" "$reader" '^ok'
rm_map

# ---- another handler is attached already ----
modprobe scsi_dh_alua
klog_mark
mk_map "0 1 alua $GROUPS2"
expect_table "alua is asked for, mprr_test attached: TABLE names what is attached" "0 1 mprr_test $GROUPS2"
kernel_at_least 7.0 || klog_like "keeps its hardware handler mprr_test, alua was asked for" "the log says so"
rm_map
is "$("$HELPER" load "$(table "0 2 alua word $GROUPS2")" | head -n 1)" ok "the words for another handler are dropped"
mk_map "1 retain_attached_hw_handler 1 alua $GROUPS2"
expect_table "the same with retain" "1 retain_attached_hw_handler 1 mprr_test $GROUPS2"
rm_map
done_testing

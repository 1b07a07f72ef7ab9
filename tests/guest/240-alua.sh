#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: a real ALUA array (LIO's loopback, two target port groups, two paths each): its groups
#       change places 200 times under exactly verified I/O, by the map's activation (explicit) and
#       by the array itself (implicit), over the states standby, unavailable, non-optimized and
#       transitioning.
# Why:  an I/O that meets a state it should wait out, or leave the path for, may neither fail nor
#       be held longer than the transition takes.
# How:  MPRR_SWITCHES sets the number.
# on: --
# limit: 240
. "$(dirname "$0")/lib.sh"

SWITCHES=${MPRR_SWITCHES:-200}
# Milliseconds that a port group is "transitioning". scsi_dh_alua asks every 2 s whether it still is.
TRANSITION=1500
LIO=/sys/kernel/config/target
STORE=$LIO/core/rd_mcp_0/mprr

mod_load
if ! modprobe -a tcm_loop scsi_dh_alua 2>/dev/null; then skip_rest "this kernel has no tcm_loop or no scsi_dh_alua"; fi
build_c race

# ---- the array ----
mkdir -p "$STORE"
echo rd_pages=8192 >"$STORE/control"
echo 1 >"$STORE/enable"
# Without a serial number LIO lists no identification page, and scsi_dh_alua finds no port group.
echo 6d707272-0240-4000-8000-000000000001 >"$STORE/wwn/vpd_unit_serial"
for g in 1 2; do
	mkdir "$STORE/alua/mprr$g"
	echo $g >"$STORE/alua/mprr$g/tg_pt_gp_id"
	echo 3 >"$STORE/alua/mprr$g/alua_access_type"	# implicit and explicit
	echo 0 >"$STORE/alua/mprr$g/nonop_delay_msecs"
done
# place GROUP STATE: the array puts its port group there (0 optimized, 1 non-optimized, 2 standby, 3 unavailable)
place() { echo "$2" >"$STORE/alua/mprr$1/alua_access_state"; }
placed() { [ "$(cat "$STORE/alua/mprr$1/alua_access_state")" = "$2" ]; }
DISK=() NUM=()
for n in 1 2 3 4; do
	port=$LIO/loopback/naa.600140500000000$n/tpgt_1
	mkdir -p "$port"
	echo "naa.600140510000000$n" >"$port/nexus"
	mkdir "$port/lun/lun_0"
	ln -s "$STORE" "$port/lun/lun_0/mprr"
	echo "mprr$(((n + 1) / 2))" >"$port/lun/lun_0/alua_tg_pt_gp"
	dir=/sys/class/scsi_device/$(cat "$port/address"):0/device/block
	there() { [ -e "$dir" ]; }
	wait_for 20 there || { fail "port $n has a disk" "got: no $dir"; done_testing; exit 0; }
	DISK+=("$(ls "$dir")")
	NUM+=("$(devno "${DISK[-1]}")")
done
udevadm settle -t $((20 * MPRR_SLOW)) || true
A=${NUM[0]} B=${NUM[1]} C=${NUM[2]} D=${NUM[3]} LEN=$(cat "/sys/block/${DISK[0]}/size")
diag "port group 1: ${DISK[*]:0:2}, 2: ${DISK[*]:2:2}"

reinstate() { local p; for p in $(info_paths | awk '$4 == "F" {print $3}'); do message "reinstate_path $p"; done; }
current_is() { [ "$(current_group)" = "$1" ]; }
group_ios() { issued "${DISK[@]:2 * $1 - 2:2}"; }
moves() { [ "$(group_ios "$1")" -ge "$2" ]; }

place 2 2
mk_map "3 queue_if_no_path pg_init_retries 10 1 alua 2 1 round-robin 0 2 1 $A 5 $B 5 round-robin 0 2 1 $C 5 $D 5"
fio_ok "verified I/O with the second port group on standby" --size=4m
is "$(current_group) $(valid_paths)" "1 4" "it went over the first group"

for g in 1 2; do echo $TRANSITION >"$STORE/alua/mprr$g/trans_delay_msecs"; done
spawn "$PROGRAM" -l $((30 * MPRR_SLOW)) io $DEV 3
load=$SPAWNED
late=0 explicit=0 implicit=0
for ((i = 1; i <= SWITCHES; i++)); do
	to=$((1 + i % 2)) from=$((2 - i % 2))
	bad=$((1 + i % 3))	# where the other port group goes
	at=$(group_ios $to)
	if [ $((i % 4)) -lt 2 ]; then
		explicit=$((explicit + 1))
		message "switch_group $to"
		# STPG comes with the first I/O that goes there
		wait_for 20 placed $to 0 || late=$((late + 1))
		place $from $bad
	else
		implicit=$((implicit + 1))
		place $to 0
		place $from $bad
		# non-optimized works: nothing tells the map to leave; multipathd would
		[ $bad != 1 ] || message "switch_group $to"
	fi
	wait_for 20 current_is $to || late=$((late + 1))
	wait_for 20 moves $to $((at + 5)) || late=$((late + 1))
	reinstate
	if ! alive "$load"; then break; fi
	[ $((i % 10)) != 0 ] || diag "$i of $SWITCHES switches"
done
is "$((i - 1)) $late" "$SWITCHES 0" "$SWITCHES switches ($explicit explicit, $implicit implicit): I/O goes over the other group each time"
kill -TERM "$load"
# trap: alua-transition
ends 30 "exactly verified I/O through all of them, no error" "$load" '^ok '
diag "$(spawn_output "$load")"
longest=$(spawn_output "$load" | sed -n 's/.*longest=\([0-9]*\)ms.*/\1/p')
# Emulated machines are some ten times as slow; a debug kernel again.
between "${longest:-99999}" 0 $((TRANSITION + 1000 * (MPRR_SLOW > 10 ? MPRR_SLOW / 10 : 1))) \
	"no I/O was held longer than the transition and one second (ms)"
reinstate
is "$(valid_paths)" 4 "all paths are valid"
wait_until 10 "nothing is in flight" idle

# ---- transitioning alone: waited for, no path fails ----
for g in 1 2; do place $g 0; done
fails() { info_paths | awk '{n += $5} END {print n + 0}'; }
before=$(fails)
spawn "$PROGRAM" -l $((30 * MPRR_SLOW)) io $DEV 2
load=$SPAWNED
for i in 1 2 3 4 5 6; do place 1 $((i % 2)); done
kill -TERM "$load"
ends 30 "optimized, non-optimized and back: verified I/O" "$load" '^ok '
is "$(fails)" "$before" "no path has failed by a transition"
rm_map

done_testing

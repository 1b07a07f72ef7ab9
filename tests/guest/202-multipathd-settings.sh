#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: multipathd with the settings that administrators use: each path selector, queue_mode bio,
#       groups by ALUA priority, rr_weight, no_path_retry, a device that grows and shrinks, flush,
#       the daemon killed. Each carries verified I/O while a path goes and comes back, and a second
#       reconfigure loads no table.
# Why:  whatever of its settings a target does not echo as it was loaded, or does not take, makes
#       multipathd reload for ever, or leaves the machine without its disk.
# Requires: a boot as for 200-multipathd.sh.
# on: --
# limit: 400
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/multipathd.sh"

if in_kernel; then skip_rest "it is about our module only"; fi
[ -e /etc/modprobe.d/dm-multipath-rr.conf ] || skip_rest "not booted with pre-boot.sh"
diag "multipath-tools $(dpkg-query -W -f '${Version}' multipath-tools)"

# conf DEFAULTS DEVICE: /etc/multipath.conf with these lines, "; " between them
conf() {
	local lines='s/;[[:space:]]*/\n/g'
	{
		printf 'defaults {\n\tfind_multipaths yes\n\tuser_friendly_names no\n'
		printf 'polling_interval 1\nmax_polling_interval 2\nverbosity 3\n'
		sed "$lines" <<<"$1"
		printf '}\nblacklist {\n\tdevice {\n\t\tvendor ".*"\n\t}\n}\n'
		printf 'blacklist_exceptions {\n\tdevice {\n\t\tvendor "Linux"\n\t\tproduct "scsi_debug"\n\t}\n}\n'
		printf 'devices {\n\tdevice {\n\t\tvendor "Linux"\n\t\tproduct "scsi_debug"\n'
		sed "$lines" <<<"$2"
		printf '\t}\n}\n'
	} >/etc/multipath.conf
}
PLAIN='path_grouping_policy multibus; hardware_handler "0"; prio const; rr_min_io_rq 10'
NO_DETECT='detect_pgpolicy no; detect_prio no'

# table_like REGEX: the map's table
table_like() { dmsetup table "$MAP" 2>/dev/null | grep -Eq -- "$1"; }
device_io() { [ "$(issued "${DISK[@]}")" -gt "$1" ]; }

# settle_down: the map has four paths, and nobody is at work on it
settle_down() {
	wait_until 30 "$1: four usable paths" four_paths
	udevadm settle -t $((20 * MPRR_SLOW)) || true
}

# path_goes DESC N: it goes offline under I/O and comes back
path_goes() {
	set_state "${DISK[$2]}" offline
	wait_until 30 "$1: an offline path is failed" path_is "${NUM[$2]}" F
	set_state "${DISK[$2]}" running
	wait_until 30 "$1: and reinstated when it is back" path_is "${NUM[$2]}" A
}

# reloads_nothing DESC
reloads_nothing() {
	settle_down "$1"
	reconfigure "$1"
	loads_start || { skip "$1: no table is loaded by a reconfigure" "this kernel has no kprobes"; return; }
	reconfigure "$1, again"
	is "$(loads)" 0 "$1: a second reconfigure loads no table"
	if [ "$(loads)" != 0 ]; then
		daemon_log
		diag "$(grep -Ei 'reload|ACT_|differ|change' "$LOG" | tail -n 12)"
	fi
	loads_stop
}

# setting DESC DEVICE REGEX [DEFAULTS]: the map gets a table like REGEX, and all of the above holds
setting() {
	conf "${4:-no_path_retry queue; $NO_DETECT}" "$2"
	reconfigure "$1"
	wait_until 60 "$1: its table is loaded" table_like "$3"
	diag "$(dmsetup table "$MAP")"
	settle_down "$1"
	load_start
	path_goes "$1" 1
	load_stop "$1: verified I/O throughout"
}

# ---- it starts, and finds the paths ----
conf "no_path_retry queue; $NO_DETECT" "$PLAIN; path_selector \"round-robin 0\""
boot_undo
modprobe scsi_debug add_host=4 num_tgts=1 max_luns=1 per_host_store=0 vpd_use_hostno=0 dev_size_mb=64 ndelay=20000
paths_find 4
daemon_start
wait_until 30 "multipathd is idle" daemon_idle

# ---- the selectors ----
for ps in round-robin queue-length service-time historical-service-time; do
	setting "$ps" "$PLAIN; path_selector \"$ps 0\"" " 1 1 $ps .* [0-9]+:[0-9]+ 10( |\$)"
	reloads_nothing "$ps"
done

# ---- groups by priority: each host of scsi_debug is a port group of its own ----
setting "ALUA priorities" 'path_grouping_policy group_by_prio; prio alua; hardware_handler "1 alua"; failback immediate; path_selector "service-time 0"' \
	' 1 alua [2-4] [1-4] service-time ' "no_path_retry queue"
reloads_nothing "ALUA priorities"

# ---- weights: a repeat count is multiplied by the path's priority ----
# multipathd 0.9.4 itself finds that these tables are not what it wants, whatever the kernel says.
setting "rr_weight priorities" 'path_grouping_policy multibus; hardware_handler "0"; prio weightedpath; prio_args "devname '"${DISK[0]}"' 3 sd.* 2"; rr_weight priorities; rr_min_io_rq 10; path_selector "round-robin 0"' \
	" ${NUM[0]} 30( |\$)"
is "$(dmsetup table "$MAP" | tr ' ' '\n' | grep -c '^20$' || true)" 3 "the other three paths have the weight 2 x 10"
trace_start "${NUM[@]}"
reads 300 >/dev/null
trace_stop | awk '$2 ~ /^R/' | runs | sed '1d;$d' | sort -u >"$MPRR_TMP/runs"
expect_ok "the path of weight 3 gets runs of 30" grep -qx "${NUM[0]} 30" "$MPRR_TMP/runs"
is "$(awk -v a="${NUM[0]}" '$1 != a {print $2}' "$MPRR_TMP/runs" | sort -u | xargs)" 20 "the others runs of 20"

# ---- no path: queue, so many times, or not at all ----
setting "no_path_retry 4" "$PLAIN; path_selector \"round-robin 0\"" "^0 $LEN multipath 1 queue_if_no_path " "no_path_retry 4; $NO_DETECT"
load_start
for d in "${DISK[@]}"; do set_state "$d" offline; done
wait_until 30 "all paths are failed" no_valid_path
ends 60 "after four checks the I/O fails" "$loader" ''
expect_fail "with an error" "" wait "$loader"
expect_fail "the map does not queue any more" "" queueing
for d in "${DISK[@]}"; do set_state "$d" running; done
settle_down "the paths are back"
wait_until 30 "and it queues again" queueing
fio_ok "verified I/O goes on"
setting "no_path_retry fail" "$PLAIN; path_selector \"round-robin 0\"" "^0 $LEN multipath 0 " "no_path_retry fail; $NO_DETECT"
for d in "${DISK[@]}"; do set_state "$d" offline; done
wait_until 30 "all paths are failed" no_valid_path
is "$(io read 0 4096)" EIO "no_path_retry fail: EIO at once"
for d in "${DISK[@]}"; do set_state "$d" running; done
reloads_nothing "no_path_retry fail"
setting "no_path_retry queue" "$PLAIN; path_selector \"round-robin 0\"" "^0 $LEN multipath 1 queue_if_no_path "
load_start
for d in "${DISK[@]}"; do set_state "$d" offline; done
wait_until 30 "no_path_retry queue: all paths are failed" no_valid_path
expect_ok "the I/O waits" alive "$loader"
for d in "${DISK[@]}"; do set_state "$d" running; done
settle_down "no_path_retry queue"

# ---- the daemon is killed, under the same I/O ----
systemctl kill -s KILL multipathd
dead() { ! multipathd show daemon >/dev/null 2>&1 || [ "$(systemctl show -p MainPID --value multipathd)" != "$pid" ]; }
pid=$(systemctl show -p MainPID --value multipathd)
set_state "${DISK[2]}" offline
wait_until 30 "the daemon killed: I/O fails an offline path all the same" path_is "${NUM[2]}" F
set_state "${DISK[2]}" running
systemctl reset-failed multipathd 2>/dev/null || true
systemctl start multipathd
wait_until 60 "the daemon is back" systemctl -q is-active multipathd
wait_until 60 "and idle" daemon_idle
wait_until 30 "it reinstates the path" four_paths

# ---- grow and shrink, under the same I/O ----
size_is() { [ "$(blockdev --getsz "$DEV")" = "$1" ]; }
resize() { # DESC GB (0: what the store has)
	local d sectors
	echo "$2" >$SDEB/virtual_gb
	for d in "${DISK[@]}"; do echo 1 >"$(scsi_dir "$d")/rescan"; done
	sectors=$(cat "/sys/class/block/${DISK[0]}/size")
	# 0.9.4 may still be busy with the uevents
	resized() { multipathd resize map "$MAP" >"$MPRR_TMP/resize" 2>&1; size_is "$sectors"; }
	wait_until 30 "$1: the map has $sectors sectors" resized
	diag "$(cat "$MPRR_TMP/resize")"
	LEN=$sectors
	wait_until 30 "$1: four usable paths" four_paths
}
resize "grown" 1
resize "shrunk" 0
load_stop "verified I/O throughout: no path, daemon killed, resized"
reloads_nothing "resized"

# ---- flush: not while it is open; then it comes back by itself when asked ----
exec 8<"$DEV"
expect_fail "an open map is not flushed" "" multipath -f "$MAP"
expect_ok "it is still there" one_map
exec 8<&-
# multipathd 0.11 makes an unused map again when a uevent comes: all within one command
flushed() { multipath -f "$MAP" 2>/dev/null || multipathd del map "$MAP" >/dev/null || true; no_map; }
udevadm settle -t $((20 * MPRR_SLOW)) || true
wait_until 30 "a closed map is flushed" flushed

# ---- queue_mode bio: another type of map, which a table cannot change into ----
conf "no_path_retry queue; $NO_DETECT" "$PLAIN; path_selector \"round-robin 0\"; features \"2 queue_mode bio\""
reconfigure "queue_mode bio"
added() { one_map || { multipathd add map "$MAP" >/dev/null 2>&1 || true; one_map; }; }
wait_until 60 "queue_mode bio: the map is made anew" added
wait_until 60 "queue_mode bio: its table" table_like '^0 [0-9]+ multipath 3 (queue_if_no_path queue_mode bio|queue_mode bio queue_if_no_path) '
diag "$(dmsetup table "$MAP")"
settle_down "queue_mode bio"
load_start
path_goes "queue_mode bio" 3
for d in "${DISK[@]}"; do set_state "$d" offline; done
wait_until 30 "queue_mode bio: all paths offline: all are failed" no_valid_path
for d in "${DISK[@]}"; do set_state "$d" running; done
wait_until 60 "queue_mode bio: all paths come back" four_paths
load_stop "queue_mode bio: verified I/O throughout"
reloads_nothing "queue_mode bio"
without_in_kernel "all that without the in-kernel target and selectors"

# ---- the end ----
daemon_end
daemon_log
cp "$LOG" "$MPRR_RESULTS/multipathd-settings.log" 2>/dev/null || true

done_testing

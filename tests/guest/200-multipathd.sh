#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: multipathd, started by systemd as Debian starts it, loads this module by itself
#       as target `multipath`, makes the map, fails and reinstates paths under verified
#       I/O, and finds nothing to reload when it is asked to reconfigure.
# Why:  that is how nearly everybody uses a multipath target; a table that is not echoed
#       word for word makes multipathd reload for ever.
# Requires: a boot by `scripts/vm run --install --multipathd --pre tests/guest/pre-boot.sh`.
# limit: 300
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/multipathd.sh"

if in_kernel; then skip_rest "it is about our module only"; fi
[ -e /etc/modprobe.d/mprr-test.conf ] || skip_rest "not booted with pre-boot.sh"

# ---- what the boot left ----
wait_until 60 "multipathd is active after boot" systemctl -q is-active multipathd
wait_until 60 "it made one map" one_map
MAP=$(map_names | head -n 1)
DEV=/dev/mapper/$MAP
wait_until 30 "the map has four paths, all usable" four_paths
wait_until 30 "multipathd is idle" daemon_idle
udevadm settle -t $((20 * MPRR_SLOW)) || true
mapfile -t DISK < <(scsi_debug_disks)
NUM=()
for d in "${DISK[@]}"; do NUM+=("$(devno "$d")"); done
LEN=$(cat "/sys/class/block/${DISK[0]}/size")

ll=$(multipath -ll)
diag "$ll"
diag "$(lsmod | grep -E '^dm_' || true)"
diag "$(dmsetup table "$MAP")"
is "$(grep -c 'active ready running' <<<"$ll" || true)" 4 "multipath -ll shows four ready paths"
like "$ll" "policy='round-robin 0'" "multipath -ll shows the selector round-robin"
is "$(lsmod | awk '/^dm_multipath/ {print $1}' | sort | xargs)" dm_multipath_rr \
	"lsmod shows this module and not the in-kernel one"
is "$(lsmod | grep -Ec '^dm_(round_robin|service_time|queue_length) ' || true)" 0 \
	"none of the in-kernel selectors was loaded"
is "$(cat /sys/module/dm_multipath_rr/parameters/takeover)" Y "takeover is on"
like "$(dmsetup table "$MAP")" \
	"^0 $LEN multipath .* round-robin 0 4 1 ([0-9]+:[0-9]+ 100 ){4}\$" \
	"dmsetup table: four paths with a repeat count of 100"
is "$(daemon_says 'kernel driver not loaded|version .* required')" 0 "multipathd found the target"

# ---- paths fail and come back: without I/O it can only be multipathd ----
set_state "${DISK[0]}" offline
wait_until 30 "multipathd fails an offline path (no I/O)" path_is "${NUM[0]}" F
wait_until 30 "multipathd shows it failed" daemon_sees "${DISK[0]}" failed
set_state "${DISK[0]}" running
wait_until 30 "multipathd reinstates it" path_is "${NUM[0]}" A

# ---- under verified I/O ----
load_start
for d in 1 2; do
	set_state "${DISK[d]}" offline
	wait_until 30 "offline path $d is failed under I/O" path_is "${NUM[d]}" F
	set_state "${DISK[d]}" running
	wait_until 30 "path $d is reinstated under I/O" path_is "${NUM[d]}" A
done
for d in "${DISK[@]}"; do set_state "$d" offline; done
wait_until 30 "all paths offline: all are failed" no_valid_path
for d in "${DISK[@]}"; do set_state "$d" running; done
wait_until 60 "all paths come back" four_paths
load_stop "no I/O error and no wrong block in all that"
diag "$(spawn_output "$loader")"
wait_until 30 "all four paths are usable at the end" four_paths

# ---- what a message set survives multipathd's reloads and its restart ----
# runs_are LENGTH DESC: 4 KiB reads come to the paths in runs of so many
runs_are() {
	# Whatever reads the map takes part in its runs.
	udevadm settle -t $((20 * MPRR_SLOW)) || true
	trace_start "${NUM[@]}"
	reads $(($1 * 5)) >/dev/null
	# without what multipathd sends to the paths themselves
	is "$(trace_stop | awk '$2 ~ /^R/' | runs | sed '1d;$d' | awk '{print $2}' | sort -u | xargs)" "$1" "$2"
}
paths_are() { [ "$(info_paths | wc -l)" = "$1" ] && daemon_idle; }
runs_are 100 "runs of 100, as multipath.conf says"
dmsetup message "$MAP" 0 "rr_min_io 17"
dmsetup message "$MAP" 0 "max_inflight 64"
runs_are 17 "rr_min_io 17 by message: runs of 17"
multipathd del path "${DISK[3]}" >/dev/null
wait_until 30 "multipathd has loaded a table of three paths" paths_are 3
is "$(tunable rr_min_io), $(tunable max_inflight)" "17 (message), 64 (message)" "a path removed: still in force"
multipathd add path "${DISK[3]}" >/dev/null
wait_until 30 "and one of four again" paths_are 4
is "$(tunable rr_min_io), $(tunable max_inflight)" "17 (message), 64 (message)" "a path added: still in force"
runs_are 17 "runs of 17"
systemctl restart multipathd
wait_until 60 "multipathd has been restarted" systemctl -q is-active multipathd
wait_until 60 "it is idle" daemon_idle
wait_until 30 "the map has its four paths" four_paths
is "$(tunable rr_min_io), $(tunable max_inflight)" "17 (message), 64 (message)" "the daemon restarted: still in force"
dmsetup message "$MAP" 0 "rr_min_io table"
dmsetup message "$MAP" 0 "max_inflight table"
is "$(tunable rr_min_io), $(tunable max_inflight)" "repeat_count (table), auto (module)" "table: what the table says, again"
runs_are 100 "runs of 100"

# ---- reconfigure reloads nothing ----
# While all paths were gone udev noted the map as not ready; multipathd reloads such a map. The
# uevents of the paths that came back undo that, each with a `multipath -U` of udev's rules.
udev_ready() { ! udevadm info -q property "/dev/$(dm_name "$MAP")" | grep -q '^MPATH_DEVICE_READY=0'; }
udevadm settle -t $((20 * MPRR_SLOW)) || true
wait_until 30 "udev has the map as ready" udev_ready
table=$(dmsetup table "$MAP")
pid=$(systemctl show -p MainPID --value multipathd)
COUNTS=1
if ! loads_start; then
	COUNTS=
	skip "no table is loaded by a reconfigure" "this kernel has no kprobes to count with"
fi
reconfigure "first reconfigure"
[ -z "$COUNTS" ] || is "$(loads)" 0 "first reconfigure: no table is loaded"
reconfigure "second reconfigure"
[ -z "$COUNTS" ] || is "$(loads)" 0 "second reconfigure: no table is loaded"
is "$(dmsetup table "$MAP")" "$table" "the table is the same as before"
is "$(systemctl show -p MainPID --value multipathd)" "$pid" "multipathd is the same process"
multipathd reload map "$MAP" >/dev/null
one_load() { [ "$(loads)" -ge 1 ]; }
[ -z "$COUNTS" ] || wait_until 30 "control: a reload on demand is counted" one_load

# ---- multipathd's own choice: service-time, ALUA, groups by priority ----
sed -i -e '/^devices/,/^}/d' -e '/detect_/d' /etc/multipath.conf
reconfigure "defaults"
default_table() { dmsetup table "$MAP" | grep -Eq ' 1 alua .* service-time 0 [1-4] [12] '; }
wait_until 60 "multipathd's default, service-time 0 with 1 alua, is loaded" default_table
[ -z "$COUNTS" ] || loads_stop
diag "$(dmsetup table "$MAP")"
wait_until 30 "with four usable paths" four_paths
fio_ok "and carries verified I/O"
without_in_kernel "without the in-kernel selector"

# ---- the daemon stops, the map goes, the module unloads ----
daemon_end
rm -f /etc/modules-load.d/mprr-test.conf /etc/modprobe.d/mprr-test.conf
daemon_log
cp "$LOG" "$MPRR_RESULTS/multipathd.log" 2>/dev/null || true

done_testing

# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# multipathd.sh - read after lib.sh by the tests in which multipathd runs: what it says, what it
# sees, how many tables were loaded, and what it begins and ends with.

LOG=$MPRR_TMP/multipathd.log
daemon_log() { journalctl -q -b -o cat -u multipathd >"$LOG"; }
daemon_says() { daemon_log; grep -Ec -- "$1" "$LOG" || true; }
daemon_idle() { multipathd show daemon | grep -Eq '(idle|running)$'; }
# daemon_sees DISK STATE: failed, active
daemon_sees() { multipathd show paths raw format '%d %t' | grep -Eq "^$1 +$2"; }

map_names() { dmsetup ls --target multipath 2>/dev/null | awk '$2 ~ /^\(/ {print $1}'; }
one_map() { [ "$(map_names | wc -l)" = 1 ]; }
no_map() { [ -z "$(map_names)" ]; }
four_paths() { [ "$(valid_paths)" = 4 ]; }
set_state() { echo "$2" >"$(scsi_dir "$1")/state"; }

# load_until_stopped: verified rounds of I/O until the file $MPRR_TMP/stop is there; to be spawned
load_until_stopped() {
	local n=0
	while [ ! -e "$MPRR_TMP/stop" ]; do
		fio_verify load || { fio_diag load; return 1; }
		n=$((n + 1))
	done
	echo "verified rounds: $n"
}
busy() { [ "$(in_flight "$(dm_name)")" -gt 0 ]; }
# load_start: such I/O runs, in process $loader
load_start() {
	rm -f "$MPRR_TMP/stop"
	spawn load_until_stopped
	loader=$SPAWNED
	wait_until 30 "verified I/O runs" busy
}
# load_stop DESC: it ends, without an error
load_stop() {
	touch "$MPRR_TMP/stop"
	ends 120 "$1" "$loader" "verified rounds: [1-9]"
}

# ---- begin and end ----

# boot_undo: take away what the boot brought, if 200 has not done that
boot_undo() {
	systemctl -q stop multipathd.socket multipathd.service 2>/dev/null || true
	multipath -F >/dev/null 2>&1 || true
	rm -f /etc/modules-load.d/mprr-test.conf /etc/modprobe.d/mprr-test.conf
	[ ! -d /sys/module/scsi_debug ] || modprobe -r scsi_debug
}

# daemon_start: with the paths that are there; its one map is MAP from then on
daemon_start() {
	systemctl -q unmask multipathd.socket multipathd.service
	systemctl restart multipathd
	wait_until 60 "multipathd is active" systemctl -q is-active multipathd
	wait_until 60 "it made one map" one_map
	MAP=$(map_names | head -n 1)
	# shellcheck disable=SC2034 # of lib.sh
	DEV=/dev/mapper/$MAP
}

# daemon_end: it stops, and the map goes
daemon_end() {
	systemctl -q mask --now multipathd.socket multipathd.service
	wait_until 30 "multipathd has stopped" bash -c '! systemctl -q is-active multipathd'
	# shellcheck disable=SC2317
	all_flushed() { multipath -F || true; no_map; }
	wait_until 30 "multipath -F removes the map" all_flushed
	rm -f /etc/multipath.conf
}

# without_in_kernel DESC: neither the in-kernel target nor one of its selectors was loaded
without_in_kernel() {
	is "$(lsmod | awk '/^dm_(multipath|round_robin|service_time|queue_length)/ {print $1}' | xargs)" \
		dm_multipath_rr "$1"
}

# ---- loads of tables: whoever asks for one, it passes dm_table_create() ----

PROBE=$TRACING/events/kprobes/mprr_load
# loads_start: count from now on; false if this kernel has no kprobes to count with
loads_start() {
	trace_mount
	[ -e "$TRACING"/kprobe_events ] || return 1
	echo 'p:mprr_load dm_table_create' >"$TRACING"/kprobe_events
	echo >"$TRACING"/trace
	echo 1 >"$PROBE"/enable
	echo 1 >"$TRACING"/tracing_on
}
loads() { grep -c ' mprr_load:' "$TRACING"/trace || true; }
loads_stop() {
	echo 0 >"$PROBE"/enable
	echo >"$TRACING"/kprobe_events
}

# reconfigure DESC: and wait until multipathd is through with it
reconfigure() {
	local before
	before=$(daemon_says '^reconfigure: setting up paths and maps')
	multipathd reconfigure >/dev/null
	# shellcheck disable=SC2317
	reconfigured() { [ "$(daemon_says '^reconfigure: setting up paths and maps')" -gt "$before" ]; }
	wait_until 30 "$1: multipathd takes it up" reconfigured
	wait_until 60 "$1: and is idle again" daemon_idle
	udevadm settle -t $((20 * MPRR_SLOW)) || true
}

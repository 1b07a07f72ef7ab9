#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: a real transport: open-iscsi against LIO in this guest, one disk over two portals, the map made
#       by multipathd. One portal is cut under verified I/O: it goes on over the other one; restored,
#       the portal is used again.
# Why:  a transport fails in its own ways: commands that time out, sessions that are blocked and
#       recovered, a disk that goes and comes back without a word.
# Requires: a boot as for 200-multipathd.sh.
# on: --
# limit: 200
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/multipathd.sh"

if in_kernel; then skip_rest "it is about our module only"; fi
[ -e /etc/modprobe.d/dm-multipath-rr.conf ] || skip_rest "not booted with pre-boot.sh"
if ! modprobe -a iscsi_target_mod iscsi_tcp 2>/dev/null; then skip_rest "this kernel has no iSCSI"; fi

LIO=/sys/kernel/config/target
STORE=$LIO/core/rd_mcp_0/mprr
IQN=iqn.2026-11.invalid.mprr:disk
TPG=$LIO/iscsi/$IQN/tpgt_1
PORTALS=(10.6.0.1 10.6.0.2)
ip() { busybox ip "$@"; }

# ---- the array: one RAM disk, two portals on the loopback device ----
boot_undo
ip link set lo up
for p in "${PORTALS[@]}"; do ip addr add "$p/32" dev lo; done
mkdir -p "$STORE"
echo rd_pages=16384 >"$STORE/control"
echo 1 >"$STORE/enable"
echo 6d707272-0204-4000-8000-000000000001 >"$STORE/wwn/vpd_unit_serial"
mkdir -p "$TPG/lun/lun_0"
ln -s "$STORE" "$TPG/lun/lun_0/mprr"
echo 0 >"$TPG/attrib/authentication"
echo 1 >"$TPG/attrib/generate_node_acls"
echo 1 >"$TPG/attrib/cache_dynamic_acls"
echo 0 >"$TPG/attrib/demo_mode_write_protect"
for p in "${PORTALS[@]}"; do mkdir "$TPG/np/$p:3260"; done
echo 1 >"$TPG/enable"

# ---- the initiator ----
cat >/etc/multipath.conf <<'END'
defaults {
	find_multipaths no
	user_friendly_names no
	no_path_retry queue
	path_grouping_policy multibus
	path_selector "round-robin 0"
	rr_min_io_rq 4
	polling_interval 1
	max_polling_interval 2
	verbosity 3
}
END
# The socket of systemd would start it again when it is to end.
systemctl -q stop iscsid.socket iscsid.service 2>/dev/null || true
[ -s /etc/iscsi/initiatorname.iscsi ] && grep -q ^InitiatorName /etc/iscsi/initiatorname.iscsi ||
	echo "InitiatorName=iqn.2026-11.invalid.mprr:guest" >/etc/iscsi/initiatorname.iscsi
setsid iscsid -f >"$MPRR_TMP/iscsid.log" 2>&1 &
iscsid_answers() { iscsiadm -m session >/dev/null 2>&1 || [ $? = 21 ]; }
wait_until 20 "iscsid answers" iscsid_answers
iscsiadm -m discovery -t sendtargets -p "${PORTALS[0]}" >"$MPRR_TMP/discovery" 2>&1 || diag "$(cat "$MPRR_TMP/discovery")"
is "$(grep -c "$IQN" "$MPRR_TMP/discovery" || true)" 2 "discovery names both portals"
# A cut portal is noticed within 2 s, and its commands go back to the map within 3 s more.
for p in "${PORTALS[@]}"; do
	for setting in node.session.timeo.replacement_timeout:3 'node.conn[0].timeo.noop_out_interval:1' \
		'node.conn[0].timeo.noop_out_timeout:2' 'node.conn[0].timeo.login_timeout:5'; do
		iscsiadm -m node -T $IQN -p "$p" -o update -n "${setting%:*}" -v $((${setting##*:} * (MPRR_SLOW > 1 ? 3 : 1)))
	done
	expect_ok "portal $p: login" iscsiadm -m node -T $IQN -p "$p" --login
done
# session_disk PORTAL: the disk that comes by it
session_disk() {
	local s d
	for s in /sys/class/iscsi_session/session*; do
		[ "$(cat "$s"/device/connection*/iscsi_connection/connection*/persistent_address 2>/dev/null)" = "$1" ] || continue
		for d in "$s"/device/target*/*/block/*; do [ ! -e "$d" ] || echo "${d##*/}"; done
	done
}
both_disks() { [ -n "$(session_disk "${PORTALS[0]}")" ] && [ -n "$(session_disk "${PORTALS[1]}")" ]; }
wait_until 20 "a disk by each portal" both_disks
DISK=("$(session_disk "${PORTALS[0]}")" "$(session_disk "${PORTALS[1]}")")
NUM=("$(devno "${DISK[0]}")" "$(devno "${DISK[1]}")")
daemon_start
two_paths() { [ "$(valid_paths)" = 2 ]; }
wait_until 30 "of two paths" two_paths
LEN=$(cat "/sys/class/block/${DISK[0]}/size")
like "$(dmsetup table "$MAP")" ' round-robin 0 2 1 ' "multipathd's table"
diag "$(multipath -ll)"
udevadm settle -t $((20 * MPRR_SLOW)) || true

# ---- a portal is cut and restored, each in turn, under verified I/O ----
load_start
goes_on() { [ "$(issued "${DISK[$1]}")" -ge "$2" ]; }
for i in 0 1; do
	other=$((1 - i))
	before=$(issued "${DISK[i]}")
	wait_until 20 "portal $((i + 1)) carries I/O" goes_on $i $((before + 20))
	ip addr del "${PORTALS[i]}/32" dev lo
	wait_until 60 "cut: its path is failed" path_is "${NUM[i]}" F
	expect_ok "the I/O has not ended" alive "$loader"
	is "$(path_state "${NUM[other]}")" A "the other one is valid"
	wait_until 20 "I/O goes on over the other portal" goes_on $other $(($(issued "${DISK[other]}") + 50))
	ip addr add "${PORTALS[i]}/32" dev lo
	wait_until 120 "restored: multipathd reinstates the path" path_is "${NUM[i]}" A
	wait_until 30 "and it carries I/O again" goes_on $i $(($(issued "${DISK[i]}") + 50))
done
# ---- both at once: it waits ----
for p in "${PORTALS[@]}"; do ip addr del "$p/32" dev lo; done
wait_until 60 "both cut: no path is valid" no_valid_path
expect_ok "the I/O waits" alive "$loader"
for p in "${PORTALS[@]}"; do ip addr add "$p/32" dev lo; done
wait_until 120 "both restored" two_paths
load_stop "no I/O error and no wrong block in all that"
diag "$(spawn_output "$loader")"
without_in_kernel "all that without the in-kernel target and selectors"

# ---- the end ----
daemon_end
iscsiadm -m node -T $IQN --logout >/dev/null || true
iscsiadm -m node -o delete -T $IQN || true
iscsiadm -k 0 >/dev/null 2>&1 || true
echo 0 >"$TPG/enable"
rm "$TPG/lun/lun_0/mprr"
for p in "${PORTALS[@]}"; do rmdir "$TPG/np/$p:3260"; ip addr del "$p/32" dev lo; done
rmdir "$TPG/lun/lun_0" "$TPG" "${TPG%/*}" "$LIO/iscsi"
rmdir "$STORE"
cp "$MPRR_TMP/iscsid.log" "$MPRR_RESULTS/" 2>/dev/null || true

done_testing

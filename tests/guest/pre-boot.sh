# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# pre-boot.sh - read by the guest's first process before systemd starts, for the boot in
# which multipathd runs (scripts/vm run --multipathd --pre tests/guest/pre-boot.sh ...):
# four paths to one store that are there when multipathd starts, as on a real machine,
# and a multipath.conf that asks for round-robin with 100 requests a turn.
# 200-multipathd.sh takes all of it away again.

cat >/etc/modules-load.d/mprr-test.conf <<'END'
scsi_debug
END
cat >/etc/modprobe.d/mprr-test.conf <<'END'
options scsi_debug add_host=4 num_tgts=1 max_luns=1 per_host_store=0 vpd_use_hostno=0 dev_size_mb=64 ndelay=20000
END
cat >/etc/multipath.conf <<'END'
defaults {
	find_multipaths yes
	user_friendly_names no
	path_grouping_policy multibus
	detect_pgpolicy no
	path_selector "round-robin 0"
	rr_min_io_rq 100
	no_path_retry queue
	polling_interval 1
	max_polling_interval 2
	verbosity 3
}
blacklist {
	device {
		vendor ".*"
	}
}
blacklist_exceptions {
	device {
		vendor "Linux"
		product "scsi_debug"
	}
}
END

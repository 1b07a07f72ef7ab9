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
# No ALUA at first: scsi_debug says that its third host's path is in standby, and multibus
# would send I/O there. 200-multipathd.sh goes over to multipathd's own choice later.
cat >/etc/multipath.conf <<'END'
defaults {
	find_multipaths yes
	user_friendly_names no
	no_path_retry queue
	polling_interval 1
	max_polling_interval 2
	verbosity 3
	detect_pgpolicy no
	detect_prio no
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
devices {
	device {
		vendor "Linux"
		product "scsi_debug"
		path_grouping_policy multibus
		path_selector "round-robin 0"
		rr_min_io_rq 100
		hardware_handler "0"
		prio const
	}
}
END

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: make install and uninstall, dkms, and the initramfs, for each kernel, in a copy of
#       that kernel's guest root (an overlay, by chroot: nothing is booted).
# Why:  what an installation leaves behind can only be seen on a system that never had it;
#       dkms and mkinitramfs take minutes under emulation and seconds here.
# Usage: tests/install.t [KERNEL...]; prove tests/install.t
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# ---- inside the root ---------------------------------------------------------------------

inside() # RELEASE
{
	export MPRR_TMP=/run/mprr HELPER=none KVER=$1 DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
	export PATH=/usr/sbin:/usr/bin:/sbin:/bin
	mkdir -p $MPRR_TMP
	# shellcheck source=tests/guest/lib.sh
	. /mprr/src/tests/guest/lib.sh
	top=/mprr/src
	dir=/lib/modules/$KVER
	conf=/etc/modprobe.d/dm-multipath-rr.conf
	image=/boot/initrd.img-$KVER
	ko=/mprr/ko/dm-multipath-rr.ko

	snapshot none
	install_and_uninstall
	dkms_life
	initramfs
	done_testing
}

verb() # install|uninstall VARIABLE=VALUE...
{
	local verb=$1
	shift
	make -s -C $top "$verb" KO=$ko "$@"
}

# Names, owners and modes of all, contents of what could be touched.
snapshot()
{
	{
		find / -xdev \( -path /mprr -o -path /run -o -path /tmp -o -path /var/tmp -o -path /var/log \) \
			-prune -o -printf '%p %y %m %U:%G %l\n'
		find /etc /boot /usr/share/initramfs-tools "$dir/" -xdev -type f -exec sha256sum {} +
	} 2>/dev/null | sort >"$MPRR_TMP"/snapshot."$1"
}

same_as() # SNAPSHOT SNAPSHOT DESC
{
	local diff
	if diff=$(diff "$MPRR_TMP/snapshot.$1" "$MPRR_TMP/snapshot.$2"); then pass "$3"; else
		fail "$3" "expected: no difference" "got:      $diff"
	fi
}

added() { comm -13 "$MPRR_TMP"/snapshot.none "$MPRR_TMP"/snapshot."$1" | awk '/^\// {print $1}' | xargs; }
there() { if [ -e "$1" ]; then echo yes; else echo no; fi; }

install_and_uninstall()
{
	local out
	expect_ok "make install" verb install
	snapshot installed
	is "$(added installed | tr ' ' '\n' | grep -v '/updates$\|/\.dm-multipath-rr-created$' | xargs)" \
		"/etc/initramfs-tools/hooks/dm-multipath-rr /etc/initramfs-tools/scripts/init-top/dm-multipath-rr $conf /usr$dir/updates/dm-multipath-rr.ko" \
		"it adds the module, the modprobe.d file, the initramfs hook and boot script"
	is "$(modinfo -k "$KVER" -F name dm-multipath-rr)" dm_multipath_rr "depmod knows the module"
	like "$(modprobe -S "$KVER" -n --show-depends dm-multipath | tail -n 1)" '^install .*dm-multipath-rr' \
		"modprobe dm-multipath means ours"
	verb install >/dev/null
	snapshot again
	same_as installed again "a second make install changes nothing"
	expect_ok "make install TAKEOVER=0 on top" verb install TAKEOVER=0
	is "$(there $conf)" no "takes the modprobe.d file away"
	is "$(modprobe -S "$KVER" -n --show-depends dm-multipath | tail -n 1 | sed 's|.*/||; s|\.ko.*||')" \
		dm-multipath "modprobe dm-multipath means the in-kernel module"
	expect_ok "make install TAKEOVER=1 on top" verb install TAKEOVER=1
	snapshot again
	same_as installed again "is the same as at first"
	expect_ok "make uninstall" verb uninstall
	snapshot after
	same_as none after "leaves the system as it was"
	printf 'install dm_multipath /bin/false\noptions dm-multipath queue_if_no_path_timeout_secs=5\n' \
		>/etc/modprobe.d/foreign.conf
	out=$(verb install)
	like "$out" "WARNING: modprobe.d also has 'install dm_multipath /bin/false'" \
		"make install warns of other rules for dm-multipath"
	like "$out" "'options dm-multipath queue_if_no_path_timeout_secs=5' is for the in-kernel" \
		"and of options for the other module"
	rm /etc/modprobe.d/foreign.conf
	verb uninstall >/dev/null
	expect_ok "DESTDIR: stages without touching the system" verb install DESTDIR=/tmp/stage
	is "$(cd /tmp/stage && find . -type f | sort | xargs)" \
		"./etc/initramfs-tools/hooks/dm-multipath-rr ./etc/initramfs-tools/scripts/init-top/dm-multipath-rr .$conf .$dir/updates/.dm-multipath-rr-created .$dir/updates/dm-multipath-rr.ko" \
		"DESTDIR: all files are there"
	snapshot after
	same_as none after "DESTDIR: the system is as it was"
}

dkms_life()
{
	local version state
	version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' $top/dkms.conf)
	state=dm-multipath-rr/$version
	is "$version" "$(sed -n 's/^#define MPRR_VERSION[[:space:]]*"\(.*\)"/\1/p' $top/dm-mpath-rr.h)" \
		"dkms.conf has the version of the module"
	expect_ok "install/dkms-source" sh $top/install/dkms-source
	expect_ok "dkms add" dkms add "$state"
	if dkms build "$state" -k "$KVER" >"$MPRR_TMP"/dkms.out 2>&1; then
		pass "dkms build"
	else
		fail "dkms build" "$(tail -n 20 "$MPRR_TMP"/dkms.out)" \
			"$(tail -n 20 "/var/lib/dkms/$state/build/make.log" 2>/dev/null || true)"
	fi
	expect_ok "dkms install" dkms install "$state" -k "$KVER"
	like "$(dkms status "$state")" "$KVER.*installed" "dkms status says installed"
	like "$(modinfo -k "$KVER" -F filename dm-multipath-rr)" "/updates/dkms/dm-multipath-rr\.ko" \
		"the module is in updates/dkms"
	like "$(modinfo -k "$KVER" -F vermagic dm-multipath-rr)" "^$KVER " "it is for this kernel"
	is "$(there $conf)" no "dkms takes nothing over"
	expect_fail "make install next to it is refused" "dkms" verb install
	expect_ok "KO=none make install: takeover with the module of dkms" verb install KO=none
	is "$(there $conf)" yes "the modprobe.d file is there"
	expect_ok "KO=none make uninstall" verb uninstall KO=none
	is "$(there $conf)" no "the modprobe.d file is gone"
	like "$(modinfo -k "$KVER" -F filename dm-multipath-rr)" "/updates/dkms/" "the module of dkms is not"

	# An unsupported kernel: skipped (77), and an automatic build goes on without error.
	mkdir -p /lib/modules/5.10.0-1-amd64
	ln -s "$dir/build" /lib/modules/5.10.0-1-amd64/build
	local rc=0
	dkms build "$state" -k 5.10.0-1-amd64 >"$MPRR_TMP"/dkms.out 2>&1 || rc=$?
	is $rc 77 "dkms build for an unsupported kernel ends with 77: skipped"
	if dpkg --compare-versions "$(dpkg-query -W -f '${Version}' dkms)" lt 3.0.11; then
		skip "dkms autoinstall for it is no failure" "this dkms counts every skipped module as failed"
	else
		expect_ok "dkms autoinstall for it is no failure" dkms autoinstall -k 5.10.0-1-amd64
	fi
	rm -r /lib/modules/5.10.0-1-amd64

	expect_ok "dkms remove" dkms remove "$state" --all
	rm -r "/usr/src/dm-multipath-rr-$version"
	snapshot after
	same_as none after "after that the system is as it was"
}

# look: lists the initramfs; in_image WHAT: how many of its paths end with WHAT
look() { lsinitramfs "$image" >"$MPRR_TMP/list"; }
in_image() { grep -Ec "$1\$" "$MPRR_TMP/list" || true; }

initramfs()
{
	local tree out other
	# Small and quick to make; multipath as Debian puts it in.
	printf 'MODULES=list\nCOMPRESS=gzip\nCOMPRESSLEVEL=1\n' >/etc/initramfs-tools/conf.d/mprr-test
	printf '%s\n' virtio_pci virtio_blk ext4 scsi_debug sd_mod >>/etc/initramfs-tools/modules
	expect_ok "multipath-tools-boot is installed" dpkg -i /var/cache/mprr/multipath-tools-boot_*.deb
	[ -e "$image" ] || update-initramfs -c -k "$KVER" >/dev/null 2>&1
	for other in /boot/initrd.img-*; do [ "$other" = "$image" ] || rm "$other"; done
	look
	is "$(in_image 'multipath-rr(\..*)?')" 0 "its initramfs has nothing of ours"
	# trap: early-boot
	is "$(in_image '/dm-multipath\.ko.*')" 1 "and the in-kernel module"

	out=$(verb install 2>&1)
	like "$out" "update-initramfs -u" "make install says that it makes the initramfs anew"
	look
	is "$(in_image '/updates/dm-multipath-rr\.ko')" 1 "the initramfs has our module"
	is "$(in_image "${conf#/}")" 1 "and the modprobe.d file"
	is "$(in_image '/dm-multipath\.ko.*')" 1 "and still the in-kernel module, to fall back to"
	tree=$(mktemp -d)
	unmkinitramfs "$image" "$tree"
	[ ! -d "$tree/main" ] || tree=$tree/main
	like "$(modprobe -d "$tree" -S "$KVER" -n --show-depends dm-multipath-rr | tail -n 1)" \
		"updates/dm-multipath-rr.ko" "its index finds our module"
	sed -n 's/^install dm-multipath //p' "$tree$conf" >"$tree/command"
	expect_ok "its shell understands the install command" chroot "$tree" /bin/sh -n /command
	is "$(awk '/init-top\/(dm-multipath-rr|multipath) / {sub(/.*\//, "", $1); print $1}' \
		"$tree/scripts/init-top/ORDER" | xargs)" "dm-multipath-rr multipath" \
		"our boot script runs before multipath's"
	cp "$image" /mprr/results/initrd

	# A kernel without our module: the takeover is on, the initramfs must work all the same.
	mv "$dir/updates/dm-multipath-rr.ko" "$MPRR_TMP/"
	depmod -a "$KVER"
	out=$(update-initramfs -u -k "$KVER" 2>&1)
	like "$out" "W: dm-multipath-rr is not installed for kernel $KVER" "without our module the hook warns"
	look
	is "$(in_image '/updates/dm-multipath-rr\.ko')" 0 "without our module: the initramfs has it not"
	is "$(in_image '/dm-multipath\.ko.*')" 1 "but has the in-kernel one"
	mv "$MPRR_TMP/dm-multipath-rr.ko" "$dir/updates/"

	out=$(verb uninstall 2>&1)
	like "$out" "update-initramfs -u" "make uninstall makes the initramfs anew"
	look
	is "$(in_image 'multipath-rr(\..*)?')" 0 "and nothing of ours is in it"
	out=$(verb install UPDATE_INITRAMFS=no 2>&1)
	like "$out" "left alone \(UPDATE_INITRAMFS=no\)" "UPDATE_INITRAMFS=no says what is left to do"
	out=$(verb install TAKEOVER=0 2>&1)
	unlike "$out" "initramfs" "TAKEOVER=0 leaves an initramfs alone that has nothing of ours"
	expect_ok "make uninstall" verb uninstall
}

# ---- around it ---------------------------------------------------------------------------

if [ "${1:-}" = --inside ]; then
	inside "$2"
	exit
fi

# shellcheck source=scripts/lib.sh
. "$top/scripts/lib.sh"

if [ "${1:-}" = --overlay ]; then
	# in namespaces of its own: ROOT KERNEL RELEASE WORK RESULTS
	mkdir "$5/upper" "$5/work" "$5/root"
	mount -t overlay overlay -o "lowerdir=$2,upperdir=$5/upper,workdir=$5/work" "$5/root" ||
		cp -a "$2/." "$5/root/"
	exec "$top/scripts/lab/enter" "$5/root" "$top=/mprr/src" "$mprr_build/ko/$3=/mprr/ko" \
		"$6=/mprr/results" -- bash /mprr/src/tests/install.t --inside "$4"
fi

case ${1:-} in
-h | --help)
	sed -n 's/^# \{0,1\}//; 3,7p' "${BASH_SOURCE[0]}"
	exit 0
	;;
-*) die "unknown option $1 (see --help)" ;;
esac
if [ "$(id -u)" != 0 ]; then
	echo "1..0 # SKIP must run as root"
	exit 0
fi
[ $# -gt 0 ] || mapfile -t kernels < <(all_kernels)
[ $# = 0 ] || kernels=("$@")

"$top/scripts/vm" prepare "${kernels[@]}" >&2
work=$(mktemp -d "$mprr_lab/install-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$top/scripts/build" "${kernels[@]}" >&2
for kernel in "${kernels[@]}"; do
	results=$mprr_build/results/install-$kernel
	rm -rf "$results"
	mkdir -p "$results" "$work/$kernel"
	"${contained[@]}" bash "$top/tests/install.t" --overlay "$mprr_lab/root/$(root_of "$kernel")" "$kernel" \
		"$(cat "$mprr_lab/boot/$kernel/release")" "$work/$kernel" "$results" \
		2>"$results/log" </dev/null || echo "not ok - the test in the root of $kernel ends well"
	rm -rf "${work:?}/$kernel"
done | awk '/^(not )?ok - / {sub(/ok - /, "ok " ++n " - "); bad += /^not/}
	{print; fflush()} END {print "1.." n; exit bad > 0}'

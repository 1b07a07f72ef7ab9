# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034
# What install, uninstall and dkms-hook share: names, messages, the initramfs.
# Sourced by /bin/sh; the caller sets top (the source tree) and may set DESTDIR.

name=dm-multipath-rr
modname=dm_multipath_rr
conf=/etc/modprobe.d/$name.conf
hook=/etc/initramfs-tools/hooks/$name
script=/etc/initramfs-tools/scripts/init-top/$name
# Marks an updates/ folder that we created, so that uninstall removes it.
dirmark=.$name-created

say()
{
	echo "$name: $*"
}

die()
{
	echo "$name: error: $*" >&2
	exit 1
}

need_root()
{
	[ -n "$DESTDIR" ] || [ "$(id -u)" = 0 ] ||
		die "must run as root (or with DESTDIR=FOLDER to stage the files)"
}

# file_of KVER: where the module of a kernel is, whoever put it there.
file_of()
{
	find "$DESTDIR/lib/modules/$1/" -name "$name.ko*" -type f 2>/dev/null |
		head -n 1
}

# own_file KVER: the path that make install uses.
own_file()
{
	echo "$DESTDIR/lib/modules/$1/updates/$name.ko"
}

# Every kernel that has this module, from make install or from dkms.
kernels_with_module()
{
	for dir in "$DESTDIR"/lib/modules/*/; do
		dir=${dir%/}
		[ -z "$(file_of "${dir##*/}")" ] || echo "${dir##*/}"
	done
}

# Is there multipath in the initramfs of KVER? Either the hook of
# multipath-tools-boot will put it in, or somebody's own way did already.
initramfs_has_multipath()
{
	[ -e "/boot/initrd.img-$1" ] || return 1
	command -v update-initramfs >/dev/null || return 1
	[ ! -e /usr/share/initramfs-tools/hooks/multipath ] || return 0
	[ ! -e /etc/initramfs-tools/hooks/multipath ] || return 0
	lsinitramfs "/boot/initrd.img-$1" 2>/dev/null |
		grep -Eq '(^|/)(multipathd?|dm-multipath\.ko[.a-z]*)$'
}

# Does the initramfs of KVER carry our files?
initramfs_has_us()
{
	[ -e "/boot/initrd.img-$1" ] || return 1
	command -v lsinitramfs >/dev/null || return 1
	lsinitramfs "/boot/initrd.img-$1" 2>/dev/null | grep -Fq "$name."
}

rebuild_initramfs()
{
	if [ "${UPDATE_INITRAMFS:-yes}" = no ]; then
		say "initramfs of $1: left alone (UPDATE_INITRAMFS=no);" \
			"run 'update-initramfs -u -k $1' before the next boot"
		return 0
	fi
	say "initramfs of $1: update-initramfs -u (takes a while)"
	update-initramfs -u -k "$1" ||
		die "update-initramfs failed for $1; the old initramfs is still in" \
			"place. Repair it, then run this again"
}

# live_maps: how many maps use the target name multipath now.
live_maps()
{
	command -v dmsetup >/dev/null || { echo "an unknown number of"; return; }
	dmsetup table --target multipath 2>/dev/null |
		grep -c '^[^ ].*: ' || :
}

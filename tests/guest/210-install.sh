#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: make install, TAKEOVER=0, make uninstall on a running system, and every way in
#       which dm-multipath is asked for afterwards, with the module there, missing,
#       damaged, or loaded without takeover.
# Why:  whoever boots from multipath must get a `multipath` target from each of them; and
#       a machine with live maps must not notice an installation.
# on: 6.1 7.3
# limit: 240
. "$(dirname "$0")/lib.sh"

if in_kernel; then skip_rest "it is about our module only"; fi
# The runner works on a copy of the tests; the tree itself is here.
TOP=${MPRR_SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
KVER=$(uname -r)
DIR=/lib/modules/$KVER
OURS=$DIR/updates/dm-multipath-rr.ko
CONF=/etc/modprobe.d/dm-multipath-rr.conf

# verb VARIABLE=VALUE...: make install or make uninstall as a user calls it
verb() {
	local verb=$1
	shift
	make -s -C "$TOP" "$verb" KO="$MPRR_KO" UPDATE_INITRAMFS=no "$@"
}

# Everything that an installation could touch. The kernel's own modules by time and size;
# /etc/multipath is where udev's multipath -u notes what it sees.
snapshot() {
	local out=$MPRR_TMP/snapshot.$1
	{
		find /etc "$DIR" /usr/share/initramfs-tools /usr/src -xdev \
			\( -path "$DIR/kernel" -o -path /etc/multipath \) -prune -o -printf '%p %y %m %U:%G %l\n'
		find "$DIR/kernel" -type f -printf '%p %s %T@\n'
		find /etc "$DIR" -xdev \( -path "$DIR/kernel" -o -path /etc/multipath \) -prune -o \
			-type f -exec sha256sum {} +
	} 2>/dev/null | sort >"$out"
}
# same_as A B DESC
same_as() {
	local diff
	if diff=$(diff "$MPRR_TMP/snapshot.$1" "$MPRR_TMP/snapshot.$2"); then pass "$3"; else
		fail "$3" "expected: no difference" "got:      $diff"
	fi
}

# who: which of the two modules is loaded
who() { lsmod | awk '/^dm_multipath/ {print $1}' | sort | xargs; }
unload() {
	local m
	for m in dm_multipath_rr dm_round_robin dm_queue_length dm_service_time dm_multipath; do
		[ ! -d "/sys/module/$m" ] || rmmod "$m"
	done
}

# ---- a system without us ----
unload
verb uninstall >/dev/null
snapshot none
out=$(verb uninstall)
like "$out" "no dm-multipath-rr.ko" "uninstall with nothing installed says so"

# ---- refusals ----
expect_fail "TAKEOVER=2 is refused" "TAKEOVER must be 0 or 1" verb install TAKEOVER=2
expect_fail "a kernel that is not here is refused" "no kernel 6.0.0-none here" \
	verb install KVER=6.0.0-none
expect_fail "a missing module is refused" "/nowhere.ko is missing" \
	sh -c "KO=/nowhere.ko sh $TOP/install/install"
# the same length, or the file is no module any more
other=$(tr 0-9 1-90 <<<"$KVER")
sed "s/vermagic=$KVER/vermagic=$other/" "$MPRR_KO" >"$MPRR_TMP/other.ko"
expect_fail "a module for another kernel is refused" "was built for kernel ${other//+/[+]}" \
	sh -c "KO=$MPRR_TMP/other.ko sh $TOP/install/install"
theirs=$(modinfo -k "$KVER" -F filename dm-multipath)
expect_fail "another module is refused" "holds dm_multipath, not dm_multipath_rr" \
	sh -c "KO=$theirs sh $TOP/install/install"
expect_fail "KO=none without a module is refused" "nothing to take over with" \
	sh -c "KO=none sh $TOP/install/install"
expect_fail "not root is refused" "must run as root" \
	setpriv --reuid=65534 --clear-groups sh "$TOP/install/install"
expect_fail "uninstall: not root is refused" "must run as root" \
	setpriv --reuid=65534 --clear-groups sh "$TOP/install/uninstall"
expect_fail "an unknown argument is refused" "Usage:" sh "$TOP/install/install" --wrong
snapshot refused
same_as none refused "after all that nothing has changed"

# ---- TAKEOVER=0: side by side ----
expect_ok "make install TAKEOVER=0" verb install TAKEOVER=0
is "$([ -e $CONF ] && echo yes || echo no)" no "there is no modprobe.d file"
modprobe dm-multipath
is "$(who)" dm_multipath "modprobe dm-multipath loads the in-kernel module"
paths_up 2
expect_ok "a table with mpath-rr loads our module by itself" mk_map 0 0 1 1 round-robin 0 2 1 "$A" 1 "$B" 1
is "$(who)" "dm_multipath dm_multipath_rr" "both are loaded"
is "$(cat "$PARAMS/takeover")" N "without takeover"
rm_map

# ---- TAKEOVER=1 on a machine with a live map of the in-kernel target ----
rmmod dm_multipath_rr
dmsetup create $MAP --table "0 $LEN multipath 0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
out=$(verb install)
like "$out" "1 live multipath map" "make install tells of the live map"
like "$out" "next boot" "and when the takeover takes effect"
is "$(who)" dm_multipath "nothing was loaded or unloaded"
is "$(io write 0 4096)" ok "the live map works on"
is "$(modprobe dm-multipath && who)" dm_multipath "another modprobe dm-multipath changes nothing"
rm_map
out=$(verb install)
like "$out" "the in-kernel dm_multipath is loaded" "without maps make install says how to go on"
unload
snapshot installed
verb install >/dev/null
snapshot again
same_as installed again "a second make install changes nothing"

# ---- every way to ask for dm-multipath ----
# asked DESC WANT COMMAND...: which module does COMMAND load, with the target there
asked() {
	local desc=$1 want=$2
	shift 2
	"$@" >/dev/null 2>&1 || true
	is "$(who)" "$want" "$desc"
	expect_ok "$desc: target multipath is there" has_target multipath
	unload
}
by_table() { dmsetup create $MAP --notable && dmsetup load $MAP --table "0 $LEN multipath 0 0 0 0"; }
asked "modprobe dm-multipath" dm_multipath_rr modprobe dm-multipath
asked "modprobe -abq dm_multipath (modprobe@.service)" dm_multipath_rr modprobe -abq dm_multipath
by_table || true
is "$(who)" dm_multipath_rr "a table with target multipath (request_module)"
rm_map
unload
echo dm-multipath >/run/mprr-modules-load.conf
asked "systemd-modules-load" dm_multipath_rr /usr/lib/systemd/systemd-modules-load \
	/run/mprr-modules-load.conf
for m in dm-round-robin dm-service-time dm-queue-length; do
	asked "modprobe $m (depends on the in-kernel module)" dm_multipath_rr modprobe $m
done
modprobe dm-multipath queue_if_no_path_timeout_secs=3
is "$(cat "$PARAMS/queue_if_no_path_timeout_secs")" 3 "parameters on the command line reach our module"
is "$(modprobe dm-multipath && who)" dm_multipath_rr "a second modprobe is harmless"
unload

# ---- our module is not to be had: the in-kernel one must come ----
insmod "$MPRR_KO"
modprobe dm-multipath
is "$(who)" "dm_multipath dm_multipath_rr" "loaded without takeover: the in-kernel module comes too"
expect_ok "and target multipath is there" has_target multipath
unload
cp "$OURS" "$MPRR_TMP/keep.ko"
head -c 20000 "$MPRR_TMP/keep.ko" >"$OURS"
asked "damaged module" dm_multipath modprobe dm-multipath
cp "$MPRR_TMP/other.ko" "$OURS"
modprobe dm-multipath || true
expect_ok "module of another kernel: a target multipath is there" has_target multipath
diag "loaded: $(who)"
unload
rm "$OURS"
asked "module gone, index still names it" dm_multipath modprobe dm-multipath
depmod
asked "no module for this kernel" dm_multipath modprobe dm-multipath
asked "no module, modprobe -abq dm_multipath" dm_multipath modprobe -abq dm_multipath
dmsetup create $MAP --table "0 $LEN multipath 0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
is "$(who)" dm_multipath "no module: a table with target multipath loads the in-kernel one"
is "$(io write 0 4096)" ok "and the map works"
rm_map
unload

# ---- uninstall ----
verb install >/dev/null
snapshot reinstalled
same_as installed reinstalled "make install repairs it"
dmsetup create $MAP --table "0 $LEN multipath 0 0 1 1 round-robin 0 2 1 $A 5 $B 5"
is "$(who)" dm_multipath_rr "a live map is on our module"
out=$(verb uninstall)
like "$out" "is loaded and stays so" "make uninstall says that the module stays loaded"
is "$(io write 0 4096)" ok "and the map works on"
rm_map
unload
snapshot after
same_as none after "make uninstall leaves the system as it was"
asked "after that modprobe dm-multipath" dm_multipath modprobe dm-multipath

done_testing

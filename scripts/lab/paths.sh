# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# The paths that bench-guest and sweep-guest measure on, in a throw-away guest. Source it; it runs
# nothing. Wants nr_paths; the names of the paths come in the array paths.
# shellcheck disable=SC2154,SC2034 # nr_paths comes from the caller, paths is for it

# LIO's loopback: several fabric addresses, one RAM disk of 256 MiB behind them. Called again with
# another number, it adds another disk with paths of its own.
ram_up() # STORE
{
	local t=/sys/kernel/config/target i n port store=$1 dev before
	before=$(disks sd | wc -l)
	modprobe tcm_loop
	dev=$t/core/rd_mcp_$store/store
	mkdir -p "$dev"
	echo rd_pages=65536 >"$dev/control"
	echo 1 >"$dev/enable"
	for ((i = 1; i <= nr_paths; i++)); do
		n=$(printf '%04x%04x' "$store" "$i")
		port=$t/loopback/naa.60014050$n/tpgt_1
		mkdir -p "$port"
		echo "naa.60014051$n" >"$port/nexus"
		mkdir -p "$port/lun/lun_0"
		ln -s "$dev" "$port/lun/lun_0/store"
	done
	wait_disks sd $((before + nr_paths))
}

ram_down()
{
	local t=/sys/kernel/config/target port dev
	for port in "$t"/loopback/naa.*/tpgt_1; do
		rm "$port/lun/lun_0/store"
		rmdir "$port/lun/lun_0" "$port" "${port%/*}"
	done
	for dev in "$t"/core/rd_mcp_*/store; do rmdir "$dev"; done
	wait_disks sd 0
}

scsi_debug_up() # DEPTH MICROSECONDS
{
	local delay=(ndelay=$(($2 * 1000)))
	[ "$2" != 0 ] || delay=(delay=0)
	modprobe scsi_debug dev_size_mb=256 add_host="$nr_paths" per_host_store=0 vpd_use_hostno=0 \
		max_queue="$1" "${delay[@]}"
	wait_disks sd "$nr_paths"
}

# Without memory: what is read is not what was written, and nothing is looked at. The last path
# takes SLOW times as long.
null_blk_up() # TAGS MICROSECONDS [SLOW]
{
	local i dir us
	modprobe null_blk nr_devices=0
	for ((i = 0; i < nr_paths; i++)); do
		dir=/sys/kernel/config/nullb/nullb$i
		us=$2
		[ $((i + 1)) != "$nr_paths" ] || us=$(($2 * ${3:-1}))
		mkdir "$dir"
		echo 1024 >"$dir/size"
		echo 512 >"$dir/blocksize"
		echo 1 >"$dir/submit_queues"
		echo "$1" >"$dir/hw_queue_depth"
		if [ "$us" = 0 ]; then
			echo 1 >"$dir/irqmode"
		else
			echo 2 >"$dir/irqmode"
			echo $((us * 1000)) >"$dir/completion_nsec"
		fi
		echo 1 >"$dir/power"
	done
	wait_disks nullb "$nr_paths"
}

null_blk_down()
{
	local dir
	for dir in /sys/kernel/config/nullb/nullb*; do rmdir "$dir"; done
	modprobe -r null_blk
}

disks() { local d; for d in "/sys/block/$1"*; do [ ! -e "$d" ] || echo "/dev/${d##*/}"; done; }

wait_disks() # PREFIX NUMBER
{
	local deadline=$((SECONDS + 120))
	until [ "$(disks "$1" | wc -l)" = "$2" ]; do
		[ "$SECONDS" -lt "$deadline" ] || { echo "${0##*/}: not $2 disks" >&2; exit 1; }
		udevadm settle -t 1 || true
	done
	udevadm settle
	mapfile -t paths < <(disks "$1")
}

devno() { local d; d=$(readlink -f "$1"); cat "/sys/class/block/${d##*/}/dev"; }

# paths_up BACKING [SLOW]: ram, scsi_debug:DEPTH:MICROSECONDS, null_blk:TAGS:MICROSECONDS, or
# devices:/dev/A,/dev/B... that are there
paths_up()
{
	local kind depth us
	IFS=: read -r kind depth us <<<"$1"
	paths=()
	case $kind in
	ram) ram_up 0 ;;
	scsi_debug) scsi_debug_up "$depth" "$us" ;;
	null_blk) null_blk_up "$depth" "$us" "${2:-1}" ;;
	devices) IFS=, read -ra paths <<<"$depth" ;;
	*) echo "${0##*/}: unknown backing '$1'" >&2; exit 2 ;;
	esac
}

paths_down() # BACKING
{
	case $1 in
	ram) ram_down ;;
	scsi_debug:*) modprobe -r scsi_debug ;;
	null_blk:*) null_blk_down ;;
	esac
}

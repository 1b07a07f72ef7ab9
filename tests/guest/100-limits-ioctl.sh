#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: queue limits of the map, large and special I/O, ioctls, the list of devices.
# Why:  a limit that is larger than a path's makes the path refuse a request, which then
#       looks like a dead path; discard, write zeroes and flush must reach the disks.
# limit: 90
. "$(dirname "$0")/lib.sh"

mod_load
paths_up 2 lbpu=1 lbpws=1 write_same_length=2048
mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
dm=$(dm_name) sd=${DISK[0]}

# ---- the same limits as the paths ----
for attr in logical_block_size physical_block_size minimum_io_size optimal_io_size hw_sector_size \
	max_hw_sectors_kb max_sectors_kb max_segments max_segment_size max_discard_segments \
	discard_granularity discard_max_bytes write_zeroes_max_bytes rotational write_cache fua \
	stable_writes zoned; do
	[ -e /sys/block/"$sd"/queue/$attr ] || continue
	is "$(queue $attr "$dm")" "$(queue $attr "$sd")" "limit $attr is the paths'"
done
is "$(blockdev --getsize64 $DEV)" "$(blockdev --getsize64 "/dev/$sd")" "size in bytes"
is "$(blockdev --getss --getpbsz $DEV | xargs)" "$(blockdev --getss --getpbsz "/dev/$sd" | xargs)" "sector sizes by ioctl"

# ---- devices ----
is "$(dmsetup deps -o devno $MAP | grep -o '([0-9, ]*)' | tr -d '() ' | tr , : | sort | xargs)" \
	"$(printf '%s\n' "$A" "$B" | sort | xargs)" "dmsetup deps lists each path"
is "$(cd "/sys/block/$dm/slaves" && echo *)" "$(printf '%s\n' "${DISK[0]}" "${DISK[1]}" | sort | xargs)" "sysfs slaves too"

# ---- ioctls ----
like "$("$HELPER" tur $DEV || true)" '^ok status=0 host=0' "SG_IO TEST UNIT READY on the map"
expect_ok "sg_inq on the map" sg_inq $DEV
is "$(sg_inq $DEV | sed -n 's/.*Product identification: *//p' | xargs)" scsi_debug "it is scsi_debug that answers"
is "$(sg_vpd -p 0x83 $DEV 2>&1 | sed 1d)" "$(sg_vpd -p 0x83 "/dev/$sd" 2>&1 | sed 1d)" "the VPD page 0x83 is the first path's or alike" 2>/dev/null
expect_ok "blockdev --setro" blockdev --setro $DEV
like "$(io write 0 4096)" '^(open:)?E(PERM|ROFS|ACCES)' "a write to the read-only map is refused"
is "$(valid_paths)" 2 "and fails no path"
expect_ok "blockdev --setrw" blockdev --setrw $DEV
is "$(io write 0 4096)" ok "a write works again"
like "$("$HELPER" ioctl $DEV 0x5555 || true)" '^E(NOTTY|INVAL)' "an unknown ioctl gets the path's answer"
if ! in_kernel; then
	message "max_inflight 1"
	echo $((100 * MPRR_SLOW)) >$SDEB/delay	# some seconds, whatever HZ is
	for i in 0 1; do spawn "$HELPER" io $DEV read $((i << 20)) 4096; done
	both() { [ "$(in_flight "${DISK[0]}") $(in_flight "${DISK[1]}")" = "1 1" ]; }
	wait_until 5 "both paths are full" both
	like "$("$HELPER" ioctl $DEV 0x5555 || true)" '^E(NOTTY|INVAL)' "and a path answers an ioctl all the same"
	expect_ok "at once" both
	wait_until 10 "those reads end" idle
	echo 1 >$SDEB/delay	# while they run it is refused
	message "max_inflight table"
fi
is "$(valid_paths)" 2 "no ioctl failed a path"

# ---- special I/O reaches a path ----
# kinds: what the paths got, by trace
kinds() { awk '{print $2}' | sort | uniq -c | xargs; }
trace_start "$A" "$B"
is "$(io discard 0 $((1 << 20)))" ok "a discard of 1 MiB"
like "$(trace_stop | kinds)" '[0-9]+ DS?' "a discard reached a path"
trace_start "$A" "$B"
is "$(io zeroes $((1 << 20)) $((1 << 20)))" ok "zeroing 1 MiB"
got=$(trace_stop)
is "$(awk '{s += $3} END {print s + 0}' <<<"$got")" 2048 "2048 sectors reached the paths"
io write 65536 65536 >/dev/null
trace_start "$A" "$B"
is "$(io flush 0 0)" ok "a flush (fsync)"
got=$(trace_stop)
if [ "$(queue write_cache "$sd")" = "write back" ]; then
	like "$(kinds <<<"$got")" 'F' "a flush reached a path"
fi
expect_fail "secure erase is not offered" "EOPNOTSUPP" "$HELPER" io $DEV secure 0 4096
is "$(valid_paths)" 2 "no special I/O failed a path"

# ---- big I/O is split at the paths' limit ----
limit=$(($(queue max_sectors_kb "$sd") * 2))
for op in write read; do
	trace_start "$A" "$B"
	is "$(io $op 0 $((8 << 20)))" ok "$op of 8 MiB in one call"
	trace_stop >"$MPRR_TMP/trace"
	is "$(awk '{s += $3} END {print s}' "$MPRR_TMP/trace")" $((8 * 2048)) "$op: all its sectors reached the paths"
	is "$(awk -v m=$limit '$3 > m' "$MPRR_TMP/trace" | wc -l)" 0 "$op: no request above a path's limit"
done
is "$(valid_paths)" 2 "no big I/O failed a path"
rm_map

# ---- paths with different limits: the smaller one counts ----
echo 64 >/sys/block/"${DISK[0]}"/queue/max_sectors_kb
echo 24 >/sys/block/"${DISK[1]}"/queue/max_sectors_kb
mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
between "$(queue max_sectors_kb "$(dm_name)")" 4 24 "max_sectors_kb is the smallest path's"
trace_start "$A" "$B"
is "$(io write 0 $((2 << 20)))" ok "a write of 2 MiB"
trace_stop >"$MPRR_TMP/trace"
is "$(awk -v b="$B" '$1 == b && $3 > 48' "$MPRR_TMP/trace" | wc -l)" 0 "no request above the small path's limit"
fio_ok "verified I/O of up to 512 KiB" --size=8m
is "$(info_paths | awk '{print $4 $5}' | xargs)" "A0 A0" "no path failed"
rm_map

# ---- a map shorter than its paths ----
LEN=2048 mk_map "0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
is "$(blockdev --getsz $DEV)" 2048 "a map shorter than its paths has its own size"
is "$(io read $((2047 * 512 / 4096 * 4096)) 4096)" ok "its last block is read"
is "$(io read $((1 << 20)) 4096)" short "behind its end is nothing"
expect_ok "SG_IO still works for root (CAP_SYS_RAWIO)" "$HELPER" tur $DEV

done_testing

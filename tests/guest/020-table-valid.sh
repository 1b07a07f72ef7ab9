#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: valid table lines (020-table-valid.tbl) load, and TABLE and INFO say exactly what
#       they must right after the load; tables without paths.
# Why:  multipathd compares the echo word by word and reloads the map on any difference.
# limit: 120
. "$(dirname "$0")/lib.sh"

mod_load
paths_up 4

# No handler is attached to fresh disks (the runner unloads scsi_dh_alua after each test).
# The in-kernel target of 7.x accepts the retain word and forgets it.
H=0 K=0 R="1 retain_attached_hw_handler"
if in_kernel && kernel_at_least 7.0; then R=0; fi

# fill TEXT: FILLED = TEXT without blanks around it, with the names replaced (no
# subshell: 40 lines x 5 forks are felt under emulation)
fill() {
	local s=$1
	s=${s#"${s%%[! ]*}"} s=${s%"${s##*[! ]}"}
	s=${s//@A/$A} s=${s//@B/$B} s=${s//@C/$C} s=${s//@D/$D} s=${s//@sA//dev/${DISK[0]}}
	s=${s//@H/$H} s=${s//@K/$K} s=${s//@R/$R}
	FILLED=$s
}

lines=0
while IFS='|' read -r desc words echoed info; do
	[[ $desc =~ ^[[:space:]]*(#|$) ]] && continue
	# these words are this module's own
	if in_kernel && [[ ${words,,} =~ merge_deadline_us|max_inflight|rr_min_io|no_path_timeout|historical-service-time|io-affinity ]]; then continue; fi
	fill "$desc"; desc=$FILLED
	fill "$words"; words=$FILLED
	fill "$echoed"; echoed=$FILLED
	fill "$info"; info=$FILLED
	[ "$echoed" != "=" ] || echoed=$words
	[ "$info" != "=" ] || info="2 1 0 0 1 1 E 0 2 0 $A A 0 $B A 0"
	lines=$((lines + 1))
	# the in-kernel target turns every repeat count into 1
	if in_kernel; then echoed=$(sed -E "s/( [0-9]+:[0-9]+) [1-9][0-9]+/\1 1/g; s/( [0-9]+:[0-9]+) [2-9]/\1 1/g" <<<"$echoed"); fi
	out=$("$HELPER" show "0 $LEN $TARGET $words" || true)
	table=${out#*table: } table=${table%%$'\n'*} shown=${out#*info: } shown=${shown%%$'\n'*}
	# trap: echo-as-loaded
	if [ "${table% } / ${shown% }" = "$echoed / $info" ]; then pass "$desc"; else
		fail "$desc" "loaded:         $words" "expected TABLE: $echoed" "got:            $table" \
			"expected INFO:  $info" "got:            $shown" "$(grep -v '^table:\|^info:' <<<"$out")"
	fi
done <"$(dirname "$0")/020-table-valid.tbl"
diag "$lines lines"

# ---- a handler that is attached already (the lines above have attached alua) ----
if [ "$(cat "$(scsi_dir "${DISK[0]}")/dh_state")" = alua ]; then
	plain="0 0 1 1 round-robin 0 2 1 $A 1 $B 1"
	retain="1 retain_attached_hw_handler ${plain#0 }"
	shown() { "$HELPER" show "0 $LEN $TARGET $1" | sed -n 's/^table: \(.*\) 1 1 round-robin.*/\1/p'; }
	if kernel_at_least 7.0; then H="0 1 alua"; else H="0 0"; fi
	is "$(shown "$plain")" "$H" "alua attached, no handler in the table: TABLE"
	is "$(shown "$retain")" "$R 1 alua" "alua attached, retain: TABLE names it"
else
	skip "an attached handler" "scsi_dh_alua does not attach here"
fi
rmmod scsi_debug
rmmod scsi_dh_alua
paths_up 4

# ---- after the first I/O the group is current and queue_io is 0 ----
mk_map "0 0 2 1 round-robin 0 2 1 $A 1 $B 1 round-robin 0 1 1 $C 1"
is "$(io read 0 4096)" ok "a read"
expect_info "after a read: group A, queue_io 0" \
	"2 0 0 0 2 1 A 0 2 0 $A A 0 $B A 0 E 0 1 0 $C A 0"
is "$(dmsetup status --noflush $MAP | tail -c 2 | od -An -c | tr -d ' ')" '\n' "INFO is one line"
rm_map

# ---- tables without paths: legal, keep what the map had ----
dmsetup create $MAP --notable
expect_ok "a table without paths loads first of all" dmsetup load $MAP --table "0 $LEN $TARGET 0 0 0 0"
dmsetup clear $MAP
dmsetup load $MAP --table "$(table "0 0 1 1 round-robin 0 2 1 $A 1 $B 1")"
dmsetup resume $MAP
before=$(queue max_sectors_kb "$(dm_name)")
# trap: no-paths-table
expect_ok "a table without paths replaces one with paths" reload_map 0 0 0 0
expect_table "its TABLE" "0 0 0 0"
expect_info "its INFO" "2 1 0 0 0 0"
is "$(queue max_sectors_kb "$(dm_name)")" "$before" "the limits stay"
is "$(io read 0 4096)" EIO "without path and queueing: EIO"
expect_ok "with queue_if_no_path" reload_map 1 queue_if_no_path 0 0 0
expect_table "its TABLE" "1 queue_if_no_path 0 0 0"
spawn "$HELPER" io $DEV read 0 4096
reader=$SPAWNED
wait_until 5 "a read waits" blocked "$reader"
expect_ok "a table with a path again" reload_map 0 0 1 1 round-robin 0 1 1 "$C" 1
ends 10 "and the read ends well" "$reader" '^ok'
rm_map

done_testing

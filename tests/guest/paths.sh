# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2119,SC2120
# paths.sh - the map over four paths whose paths fail, go offline, are deleted and come back.
# For tests that break paths at random; sourced after lib.sh and paths_up 4.

HOSTS=()	# the SCSI host of each path: a deleted disk is found again on it
for d in "${DISK[@]}"; do
	[[ $(scsi_dir "$d") =~ /(host[0-9]+)/ ]]
	HOSTS+=("${BASH_REMATCH[1]}")
done
STATE=(up up up up)	# up, failed, offline, deleted
FEATURES=0		# of the next table
SELECTOR=round-robin
WORDS="5"		# the selector's words for each path

disk_of_host() { local b; for b in /sys/class/scsi_host/"$1"/device/target*/*/block/*; do [ -e "$b" ] && echo "${b##*/}"; done || true; }
disk_there() { [ -n "$(disk_of_host "$1")" ] && [ -e "/dev/$(disk_of_host "$1")" ]; }

# the table from the paths that are there, two groups as long as both have one
load_paths() {
	local i pair groups=() words nr
	for pair in "0 1" "2 3"; do
		words=
		for i in $pair; do
			[ "${STATE[i]}" = deleted ] || words+=" ${NUM[i]} $WORDS"
		done
		nr=$(wc -w <<<"$WORDS")
		[ -z "$words" ] || groups+=("$SELECTOR 0 $(($(wc -w <<<"$words") / (nr + 1))) $nr$words")
	done
	if [ ${#groups[@]} = 0 ]; then reload_map "$FEATURES" 0 0 0; else
		reload_map "$FEATURES" 0 ${#groups[@]} 1 "${groups[*]}"
	fi
	# a new table starts with all paths active: say again what is known
	for i in 0 1 2 3; do
		case ${STATE[i]} in failed | offline) message "fail_path ${NUM[i]}" ;; esac
	done
}

# The verbs. Each changes STATE[i]; errors end the test.
path_fail() { message "fail_path ${NUM[$1]}"; STATE[$1]=failed; }
path_offline() { echo offline >"$(scsi_dir "${DISK[$1]}")/state"; STATE[$1]=offline; }
path_delete() {
	echo 1 >"$(scsi_dir "${DISK[$1]}")/delete"
	STATE[$1]=deleted
	# multipathd takes the path out of the map, some time later
	[ $((RANDOM % 3)) = 0 ] || load_paths
}
path_restore() {
	case ${STATE[$1]} in
	up) return 0 ;;	# not the status of what led here
	failed) message "reinstate_path ${NUM[$1]}"; STATE[$1]=up ;;
	offline)
		echo running >"$(scsi_dir "${DISK[$1]}")/state"
		message "reinstate_path ${NUM[$1]}"
		STATE[$1]=up
		;;
	deleted)
		echo "- - -" >"/sys/class/scsi_host/${HOSTS[$1]}/scan"
		wait_for 20 disk_there "${HOSTS[$1]}"
		DISK[$1]=$(disk_of_host "${HOSTS[$1]}")
		NUM[$1]=$(devno "${DISK[$1]}")
		STATE[$1]=up
		load_paths
		;;
	esac
}
up_count() { tr ' ' '\n' <<<"${STATE[*]}" | grep -c '^up$' || true; }

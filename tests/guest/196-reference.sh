#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: each example of docs/reference.md does and prints what it says, and each word of the
#       interface (features, selectors, messages, tunables, parameters, stats, trace events and
#       their fields) is on the page.
# Why:  a reference that is not executed is soon wrong.
# limit: 90
. "$(dirname "$0")/lib.sh"

if in_kernel; then skip_rest "the page is about our module"; fi
PAGE=${MPRR_PAGE:-/mprr/src/docs/reference.md}
SRC=/mprr/src
mod_load
paths_up 4

# ---- the examples ----
# The page's disks are sda to sdd; whatever they are called here.
page() {
	local i from=(sda sdb sdc sdd) nums=(8:0 8:16 8:32 8:48) args=()
	for i in 0 1 2 3; do
		args+=(-e "s/\b${from[i]}\b/@disk$i@/g" -e "s/\b${nums[i]}\b/@num$i@/g")
	done
	for i in 0 1 2 3; do args+=(-e "s/@disk$i@/${DISK[i]}/g" -e "s/@num$i@/${NUM[i]}/g"); done
	sed "${args[@]}" "$PAGE"
}
# One file each: command and, expected, what it prints.
page | awk -v dir="$MPRR_TMP" '
	/^```console$/ {on = 1; next}
	/^```/ {on = 0; next}
	on && /^# / {n++; f = sprintf("%s/example.%03d", dir, n); print substr($0, 3) >(f ".cmd"); printf "" >(f ".out"); next}
	on {print >(f ".out")}'
# matches EXPECTED GOT: line by line; "..." is anything in a line, and a line of it any lines
matches() {
	awk -v expected="$1" '
		function line_matches(want, got,	i, n, part, at) {
			n = split(want, part, /\.\.\./)
			if (n == 1) return want == got
			if (substr(got, 1, length(part[1])) != part[1]) return 0
			got = substr(got, length(part[1]) + 1)
			for (i = 2; i < n; i++) {
				at = index(got, part[i])
				if (!at && part[i] != "") return 0
				got = substr(got, at + length(part[i]))
			}
			return length(got) >= length(part[n]) && substr(got, length(got) - length(part[n]) + 1) == part[n]
		}
		function lines_match(w, g) {
			for (; w <= nr_want; w++) {
				if (want[w] == "...") {
					for (; g <= nr_got + 1; g++)
						if (lines_match(w + 1, g)) return 1
					return 0
				}
				if (g > nr_got || !line_matches(want[w], got[g])) return 0
				g++
			}
			return g == nr_got + 1
		}
		BEGIN {
			while ((getline line <expected) > 0) {sub(/ +$/, "", line); want[++nr_want] = line}
			while ((getline line) > 0) {sub(/ +$/, "", line); got[++nr_got] = line}
			# Empty lines at the end do not count.
			while (nr_got && got[nr_got] == "") nr_got--
			while (nr_want && want[nr_want] == "") nr_want--
			exit !lines_match(1, 1)
		}' <"$2"
}
cd $SRC
# As after a boot: a test before this one may have stopped it.
trace_mount
echo 1 >$TRACING/tracing_on
nr=0
for f in "$MPRR_TMP"/example.*.cmd; do
	f=${f%.cmd} nr=$((nr + 1))
	timeout $((20 * MPRR_SLOW)) bash "$f.cmd" >"$f.got" 2>&1 </dev/null || true
	if matches "$f.out" "$f.got"; then pass "$(head -c 100 "$f.cmd" | tr '\n#' ' +')"; else
		fail "$(head -c 100 "$f.cmd" | tr '\n#' ' +')" "expected: $(cat "$f.out")" "got:      $(cat "$f.got")"
	fi
done
between $nr 40 999 "the examples were found"
is "$(dmsetup ls | grep -c '^mprr' || true)" 0 "they leave no map behind"

# ---- the words ----
on_page() { # KIND WORD...: between back quotes or in a row of them
	local kind=$1 word missing=
	shift
	for word; do
		grep -qE -- "\`$word( [^\`]*)?\`" "$PAGE" || missing+=" $word"
	done
	between $# 1 999 "$kind: found $#"
	is "$missing" "" "$kind: each is on the page"
}
strings_in() { grep -oE "$1" "$2" | grep -oE '"[a-z_]+"' | tr -d '"' | sort -u; }
# shellcheck disable=SC2046
{
	on_page "feature words" $(strings_in 'strcasecmp\(name, "[a-z_]+"' $SRC/dm-mpath-table.c)
	on_page "values of queue_mode" $(strings_in 'strcasecmp\(mode, "[a-z_]+"' $SRC/dm-mpath-table.c)
	on_page "messages" $(strings_in 'strcasecmp\(argv\[0\], "[a-z_]+"' $SRC/dm-mpath-message.c)
	on_page "tunables" $(sed -n 's/^\t\t\.name\t*= "\(.*\)",/\1/p' $SRC/dm-mpath-tunables.c)
	on_page "path selectors" $(sed -n 's/^\t\.name\t*= "\(.*\)",/\1/p' $SRC/dm-selector-*.c $SRC/dm-path-selector.c)
	on_page "module parameters" $(ls "$PARAMS")
	on_page "keys of the IMA status" $(grep -oE '[a-z_]+(_%u)*=' $SRC/dm-mpath-status.c | sed -E 's/(_%u)*=$//' | sort -u)
	mk_map "0 0 1 1 round-robin 0 1 1 $A 1"
	on_page "words of the gate in stats" $(message stats | sed -n '1p' | awk '{for (i = 1; i < NF; i += 2) print $i}')
	on_page "words of a path in stats" $(message stats | sed -n '2p' | tr ' ' '\n' | sed 's/=.*//')
	on_page "words of histogram" $(message histogram | sed -n '1p' | tr ' ' '\n' | sed -n 's/=.*//p')
	trace_mount
	on_page "trace events" $(cd $TRACING/events/mprr && echo mprr_*)
	on_page "fields of trace events" $(sed -n 's/^\tfield:[^;]* \([a-z_]*\);.*/\1/p' $TRACING/events/mprr/*/format | grep -v '^common_' | sort -u)
	on_page "why the gate opens" $(sed -n 's/.*{ GATE_OPEN_[A-Z]*, "\([a-z]*\)" }.*/\1/p' $SRC/dm-mpath-trace.h)
}
# And the check itself: a word that is not there is missed.
is "$(MISSING=$(on_page "no word" never_heard_of_it); grep -c '^not ok' <<<"$MISSING")" 1 "a word that is not on the page is found out"
rm_map

done_testing

# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What all suites share: TAP on stdout, progress on stderr. To be sourced by the "run"
# of a suite, which ends with
#
#	tap FUNCTION
#
# Tests are printed without numbers there, and get them at the end.

. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
self=$(realpath "$0")
suite=$(basename "$(dirname "$self")")
cd "$top"
mkdir -p "$build/log" "$build/tests/$suite"

# What is only of this run; not below $build, as the path of a socket has to be short.
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# The script's first comment.
usage() { sed -n '4,/^$/s/^# \{0,1\}//p' "$self" >&2; exit 2; }

skip_all() { echo "1..0 # SKIP $1"; exit; }

on_x86_64() { [ "$(uname -m)" = x86_64 ]; }
no_machine='the virtual machine needs an x86-64 computer'
need_machine() { on_x86_64 || skip_all "$no_machine"; }

comment() { sed 's/^/# /'; }

# check NAME COMMAND...: a test; what a command that fails says goes with it
check() {
	local said

	if said=$("${@:2}" 2>&1); then
		echo "ok - $1"
	else
		echo "not ok - $1"
		[ -z "$said" ] || comment <<<"$said"
	fi
}

# must NAME COMMAND...: a test only if it fails, and then the last
must() {
	"${@:2}" >&2 || {
		echo "not ok - $1"
		echo "@whole"
		exit 1
	}
}

# aside COMMAND...: begin with that, beside what comes next
aside() {
	{
		"$@"
		touch "$work/aside.done"
	} >"$work/aside" &
}

# What it printed, once it has ended; it is a failed test if it did not come to its end.
after_aside() {
	wait
	cat "$work/aside"
	[ -e "$work/aside.done" ] || echo "not ok - what ran aside came to its end"
}

# two_at_a_time COMMAND NAME...: COMMAND for each name; what it prints, in this order. It
# is a failed test if one fails, or is killed.
two_at_a_time() {
	local command=$1 name
	shift

	for name; do
		[ "$(jobs -rp | wc -l)" -lt 2 ] || wait -n || :
		{
			"$command" "$name" >"$work/$name.out"
			touch "$work/$name.done"
		} &
	done
	wait
	for name; do
		cat "$work/$name.out"
		[ -e "$work/$name.done" ] || echo "not ok - $name came to its end"
	done
}

# also_in WORD: the programs of tests/vm that are for another suite, too, which they say
# in their first comments: " * also in: WORD...". If there are none, it is one that is not
# there either, as a list without a name often stands for all.
also_in() {
	grep -l -E "^ \* also in:(.*) $1( |\$)" tests/vm/*.c | sed 's|.*/||; s/\.c$//' | grep . ||
		echo "none_is_also_in_$1"
}

# What programs print, of which each begins with "@start NAME" and ends with "@end STATUS"
merge() { tests/harness/merge "$@"; }

# Take another suite's TAP into this one as NAME's, without its numbers.
join() {
	awk -v name="$1" '
		sub(/^ok( [0-9]+)?( - )?/, "ok - " name ": ") ||
		sub(/^not ok( [0-9]+)?( - )?/, "not ok - " name ": ") { seen++ }
		sub(/^1\.\.0 # SKIP /, "") { print "ok - " name " # SKIP " $0; skipped = 1; next }
		/^1\.\./ { plan = substr($0, 4) + 0; planned = 1 }
		/^(ok|not ok|#)/ { print; fflush() }
		END {
			if (skipped)
				exit
			good = planned && plan == seen
			print good ? "ok" : "not ok", "- " name ": came to its end"
		}'
}

# The numbers. Status 0 if all is ok, there is any, and "@whole" came as the last line.
number() {
	awk '
		/^@whole$/ { whole = 1; next }
		sub(/^ok( [0-9]+)?/, "") { $0 = "ok " ++n $0 }
		sub(/^not ok( [0-9]+)?/, "") { $0 = "not ok " ++n $0; failed = 1 }
		{ print; fflush() }
		END {
			if (!whole || !n) {
				print "not ok", ++n, "- this script came to its end"
				failed = 1
			}
			print "1.." n
			exit failed
		}'
}

tap() {
	{
		# shellcheck disable=SC2046 # processes are words
		trap 'kill $(jobs -p) 2>/dev/null || :' EXIT
		echo "TAP version 13"
		"$@"
		echo "@whole"
	} | number
}

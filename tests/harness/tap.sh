# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Shared by all suites: TAP on stdout, progress on stderr. To be sourced by the "run"
# of a suite, which ends with
#
#	tap FUNCTION
#
# Tests are printed without numbers there, and get them at the end.

. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
self=$(realpath "$0")
# Its folder below tests/, and what its logs are called
suite=$(dirname "${self#"$top/tests/"}")
suite_name=${suite##*/}
cd "$top"
mkdir -p "$build/log" "$build/tests/$suite"
# Nothing is left beside the source.
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top/tests/harness

# Files of this run alone; not below $build, as the path of a socket has to be short.
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

# silent COMMAND...: runs that, and fails if it says anything
silent() {
	local said status=0

	said=$("$@" 2>&1) || status=$?
	[ "$status" != 0 ] || [ -n "$said" ] || return 0
	echo "${said:-status $status, but it did not say why}"
	return 1
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

# also_in WORD: the programs of tests/module/contract that are for another suite, too, which they say
# in their first comments: " * also in: WORD...". If there are none, it is one that is not
# there either, as a list without a name often stands for all.
also_in() {
	grep -l -E "^ \* also in:(.*) $1( |\$)" tests/module/contract/*.c | sed 's|.*/||; s/\.c$//' | grep . ||
		echo "none_is_also_in_$1"
}

# What programs print, of which each begins with "@start NAME" and ends with "@end STATUS"
merge() { tests/harness/merge "$@"; }

# Take another suite's TAP into this one as NAME's, without its numbers. (In Perl, as
# Debian's awk waits for 4 KB before it begins, and scripts/check shows how far a suite is.)
join() {
	NAME=$1 perl -ne '
		BEGIN { $| = 1; $name = $ENV{NAME} }
		$seen++ if s/^(ok|not ok)( [0-9]+)?( - )?/$1 - $name: /;
		if (s/^1\.\.0 # SKIP //) { print "ok - $name # SKIP $_"; $skipped = 1; next }
		$plan = $1 if /^1\.\.([0-9]+)/;
		print if /^(ok|not ok|#)/;
		END {
			print defined $plan && $plan == ($seen // 0) ? "ok" : "not ok",
				" - $name: came to its end\n" if !$skipped;
		}'
}

# The numbers. Status 0 if all is ok, there is any, and "@whole" came as the last line.
number() {
	perl -ne '
		BEGIN { $| = 1; $n = 0 }
		if (/^\@whole$/) { $whole = 1; next }
		if (/^(not )?ok/) { $n++; s/^((?:not )?ok)( [0-9]+)?/$1 $n/; $failed = 1 if $1 =~ /not/ }
		print;
		END {
			if (!$whole || !$n) {
				print "not ok ", ++$n, " - this script came to its end\n";
				$failed = 1;
			}
			print "1..$n\n";
			$? = $failed ? 1 : 0;
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

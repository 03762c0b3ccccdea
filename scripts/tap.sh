# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# One TAP stream of several suites. To be sourced.

# Take another suite's TAP into this one as NAME's, without its numbers.
tap_join() {
	awk -v name="$1" '
		sub(/^ok( [0-9]+)?( - )?/, "ok - " name ": ") ||
		sub(/^not ok( [0-9]+)?( - )?/, "not ok - " name ": ") { seen++ }
		/^1\.\./ { plan = substr($0, 4) + 0; planned = 1 }
		/^(ok|not ok|#)/ { print; fflush() }
		END {
			good = planned && plan == seen
			print good ? "ok" : "not ok", "- " name ": came to its end"
		}'
}

# Give them numbers again. The last line that comes in is "@whole". Status 0 if all is ok.
tap_number() {
	awk '
		/^@whole$/ { whole = 1; next }
		sub(/^ok/, "") { $0 = "ok " ++n $0 }
		sub(/^not ok/, "") { $0 = "not ok " ++n $0; failed = 1 }
		{ print; fflush() }
		END {
			if (!whole)
				print "not ok", ++n, "- this script came to its end"
			print "1.." n
			exit failed || !whole
		}'
}

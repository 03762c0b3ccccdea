#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tcl's `clock add TIME 1 day` goes forward over the gap in spring west of Greenwich, and back east
# of it.
#
# A day after 2:30 on the day before the clock is set forward is 2:30, which is not there. In New
# York Tcl 8.6.16 and 9.0.1 say 3:30, as most do; in Berlin they say 1:30, 23 hours later: a job
# that is put off by a day comes an hour early. It takes the offset of the wrong side, and which
# one that is depends on whether the zone is east or west of Greenwich. In autumn 1:30 or 2:30 is
# there twice: 8.6 takes the first one in New York and the second one in Berlin, 9.0 the first one
# in both. And `clock scan` of a time in the gap does as `clock add` in 8.6, and is an error in 9.0:
# a program that is moved to it fails on one day of the year.
#
# It matters to schedulers in Tcl (`after` with what `clock` says). twheel reckons it as cron does,
# the same in all zones (docs/cron.md).

. "$(dirname "$0")/lib.sh"

debian trixie tcl8.6=8.6.16+dfsg-1 tcl9.0=9.0.1+dfsg-2 tzdata=2026f-0+deb13u1
cat >"$work/gap.tcl" <<'EOF'
lassign $argv zone day do
set at [clock scan "$day [expr {$zone eq "America/New_York" && $do eq "autumn" ? 1 : 2}]:30" \
	-format {%Y-%m-%d %H:%M} -timezone :$zone]
if {$do ne "scan"} {
	set at [clock add $at 1 day -timezone :$zone]
}
puts [clock format $at -timezone :$zone -format {%m-%d %H:%M %z}]
EOF
tcl8() {
	TCL_LIBRARY=$tree/usr/share/tcltk/tcl8.6 in_tree usr/bin/tclsh8.6 "$work/gap.tcl" "$@" 2>&1 |
		head -n 1
}
tcl9() {
	env "TCL9.0_TM_PATH=$tree/usr/lib/tcl9.0/tcl9" TCL_LIBRARY="$tree/usr/lib/tcl9.0" \
		"$tree/lib64/ld-linux-x86-64.so.2" --library-path "$tree/usr/lib/x86_64-linux-gnu" \
		"$tree/usr/bin/tclsh9.0" "$work/gap.tcl" "$@" 2>&1 | head -n 1
}

for version in 8 9; do
	expect "Tcl $version, a day after 2:30, Berlin" "$(tcl$version Europe/Berlin 2027-03-27 spring)" \
		"03-28 01:30 +0100"
	expect "Tcl $version, a day after 2:30, New York" \
		"$(tcl$version America/New_York 2027-03-13 spring)" "03-14 03:30 -0400"
	expect "Tcl $version, a day after 1:30, New York, autumn" \
		"$(tcl$version America/New_York 2027-11-06 autumn)" "11-07 01:30 -0400"
done
expect "Tcl 8, a day after 2:30, Berlin, autumn" "$(tcl8 Europe/Berlin 2027-10-30 autumn)" \
	"10-31 02:30 +0100"
expect "Tcl 9, a day after 2:30, Berlin, autumn" "$(tcl9 Europe/Berlin 2027-10-30 autumn)" \
	"10-31 02:30 +0200"
expect "Tcl 8, 2:30 in the gap, Berlin" "$(tcl8 Europe/Berlin 2027-03-28 scan)" "03-28 01:30 +0100"
expect "Tcl 9, 2:30 in the gap, Berlin" "$(tcl9 Europe/Berlin 2027-03-28 scan)" \
	"unable to convert input string: invalid time (does not exist in this time-zone)"

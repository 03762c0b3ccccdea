#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# BYWEEKNO=53 of python-dateutil 2.9.0, rrule 2.8.1 and rrule-rust 3.1.1 gives days of week 52.
#
# 1 and 2 January of 2011, 2022 and 2039 are of week 52 of the year before. All three give them for
# BYWEEKNO=53, and leave them out for BYWEEKNO=52: for the days before the first week they reckon
# the weeks of the old year by the length of the new one. The years before, 2010, 2021 and 2038,
# begin with a Friday and have no week 53. 3.0.0 of dateutil does the same. Python's isocalendar()
# knows better, and so does rrule-temporal 2.2.8; but that takes a BYWEEKNO without BYDAY for one
# day a week, the day of DTSTART, where the three others give seven.
#
# It matters as dateutil is what others are tested against; rrule and rrule-rust agree with it, as
# they were written after it.

. "$(dirname "$0")/lib.sh"

debian trixie python3-dateutil=2.9.0-4 python3-six=1.17.0-1
npm_get rrule@2.8.1 rrule-rust@3.1.1 rrule-temporal@2.2.8
cat >"$work/weeks.py" <<'EOF'
import sys
from datetime import date, datetime
from dateutil.rrule import YEARLY, rrule

days = rrule(YEARLY, byweekno=int(sys.argv[1]), dtstart=datetime(2021, 12, 31), count=3)
print(*(day.date() for day in days))
EOF
dateutil() { PYTHONPATH=$tree/usr/lib/python3/dist-packages python3 "$work/weeks.py" "$1"; }
npm_rule() {
	NODE_PATH=$modules node "$(dirname "$0")/rrule-next.cjs" "$1" 20211231T000000Z \
		"FREQ=YEARLY;BYWEEKNO=$2" 3 | sed 's/T00:00//g'
}

expect "Python's calendar, 2 January 2022: week" \
	"$(python3 -c 'from datetime import date; print(date(2022, 1, 2).isocalendar()[1])')" 52
expect "dateutil, week 53" "$(dateutil 53)" "2022-01-01 2022-01-02 2026-12-28"
expect "dateutil, week 52" "$(dateutil 52)" "2021-12-31 2022-12-26 2022-12-27"
for package in rrule rrule-rust; do
	expect "$package, week 53" "$(npm_rule $package 53)" "2022-01-01 2022-01-02 2026-12-28"
done
expect "rrule-temporal, week 53" "$(npm_rule rrule-temporal 53)" "2027-01-01 2032-12-31 2038-01-01"

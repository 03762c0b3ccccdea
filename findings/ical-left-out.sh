#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Parts of a rule that ical.js 2.2.1 and rrule-rust 3.1.1 read, and leave out without a word.
#
# ical.js:
# - FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO, the Monday of week 20, is each Monday after the first;
# - FREQ=YEARLY;BYDAY=20MO, the twentieth Monday, is each Monday, too;
# - FREQ=WEEKLY;...;BYSETPOS=-1, the last working day of the week, is each working day;
# - RSCALE=CHINESE (RFC 7529), the Chinese new year, is the same day of each Gregorian year.
# rrule-rust does the last, and RSCALE=GREGORIAN;SKIP=BACKWARD is for it as if there were no SKIP:
# months without a 31st have no date. rrule 2.8.1 refuses both; rrule-temporal 2.2.8 has them all.
#
# It matters where ical.js is asked whether other calculators are right, and to calendars of
# holidays.

. "$(dirname "$0")/lib.sh"

npm_get ical.js@2.2.1 rrule-rust@3.1.1 rrule-temporal@2.2.8
rows() {
	while IFS='|' read -r package want; do
		expect "$package, $2" "$(NODE_PATH=$modules node "$(dirname "$0")/rrule-next.cjs" "$package" \
			"$1" "$2" 3 | sed 's/T09:00//g')" "$want"
	done
}

rows 20200511T090000Z 'FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO' <<'EOF'
ical.js|2020-05-18 2020-05-25 2020-06-01
rrule-temporal|2020-05-11 2021-05-17 2022-05-16
EOF
rows 20200518T090000Z 'FREQ=YEARLY;BYDAY=20MO' <<'EOF'
ical.js|2020-05-18 2020-05-25 2020-06-01
rrule-temporal|2020-05-18 2021-05-17 2022-05-16
EOF
rows 20200110T090000Z 'FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1' <<'EOF'
ical.js|2020-01-10 2020-01-13 2020-01-14
rrule-temporal|2020-01-10 2020-01-17 2020-01-24
EOF
rows 20260217T090000Z 'RSCALE=CHINESE;FREQ=YEARLY' <<'EOF'
ical.js|2026-02-17 2027-02-17 2028-02-17
rrule-rust|2026-02-17 2027-02-17 2028-02-17
EOF
rows 20240131T090000Z 'RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=BACKWARD' <<'EOF'
rrule-rust|2024-01-31 2024-03-31 2024-05-31
rrule-temporal|2024-01-31 2024-02-29 2024-03-31
EOF

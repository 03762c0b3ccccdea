#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# rrule 2.8.1 and rrule-rust 3.1.1 lose count in a rule of minutes with BYHOUR, or find nothing.
#
# Each 90 minutes from 9:00 on 1 January 2020, of these the ones in the hour from 3:00
# (FREQ=MINUTELY;INTERVAL=90;BYHOUR=3) are at 3:00 each day. Both say 3:30 and 3:00 in turn. With
# BYDAY=TU in addition both say that there is none at all, ever. dateutil 2.9.0, which both were
# written after, and rrule-temporal 2.2.8 are right. Where the interval divides the hour, nothing
# is lost.
#
# It matters to a job that is never run: a rule that is accepted, and empty.

. "$(dirname "$0")/lib.sh"

debian trixie python3-dateutil=2.9.0-4 python3-six=1.17.0-1
npm_get rrule@2.8.1 rrule-rust@3.1.1 rrule-temporal@2.2.8
cat >"$work/next.py" <<'EOF'
import itertools, sys
from datetime import datetime
from dateutil.rrule import rrulestr

rule = rrulestr(sys.argv[1], dtstart=datetime(2020, 1, 1, 9))
print(*(at.isoformat()[:16] for at in itertools.islice(rule, 3)))
EOF
rows() {
	while IFS='|' read -r package want; do
		case $package in
		dateutil) seen=$(PYTHONPATH=$tree/usr/lib/python3/dist-packages python3 "$work/next.py" "$1") ;;
		*) seen=$(NODE_PATH=$modules node "$(dirname "$0")/rrule-next.cjs" "$package" \
			20200101T090000Z "$1" 3) ;;
		esac
		expect "$package, $1" "$seen" "$want"
	done
}

rows 'FREQ=MINUTELY;INTERVAL=90;BYHOUR=3' <<'EOF'
dateutil|2020-01-02T03:00 2020-01-03T03:00 2020-01-04T03:00
rrule-temporal|2020-01-02T03:00 2020-01-03T03:00 2020-01-04T03:00
rrule|2020-01-02T03:30 2020-01-03T03:00 2020-01-04T03:30
rrule-rust|2020-01-02T03:30 2020-01-03T03:00 2020-01-04T03:30
EOF
rows 'FREQ=MINUTELY;INTERVAL=90;BYHOUR=3;BYDAY=TU' <<'EOF'
dateutil|2020-01-07T03:00 2020-01-14T03:00 2020-01-21T03:00
rrule-temporal|2020-01-07T03:00 2020-01-14T03:00 2020-01-21T03:00
rrule|none
rrule-rust|none
EOF

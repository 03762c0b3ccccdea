#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# APScheduler 3.11 of Python has no way out of the hour that comes twice: the next time of one is that
# time once more, or an earlier one.
#
# 3.11 takes zones of the standard library in place of pytz. Where the clock is set back, a daily time
# in that hour comes twice, which may be meant. After the second one, though, its CronTrigger says
# the same moment again, and for each 20 minutes, after 2:00 of the second round, 2:20 of the
# first. In spring, 2:30, which no clock shows, is 3:30.
#
# It matters to who asks such a trigger for times until one is in the future, or makes a list of them,
# and to who moves its jobs: twheel's schedules have each time once, by cron's rule (docs/cron.md).

. "$(dirname "$0")/lib.sh"

debian trixie python3-apscheduler=3.11.0-1 python3-tzlocal tzdata
cat >"$work/next.py" <<'EOF'
import datetime
import sys
import zoneinfo

from apscheduler.triggers.cron import CronTrigger

zone, start, fields = sys.argv[1:]
trigger = CronTrigger(timezone=zoneinfo.ZoneInfo(zone), **dict(field.split("=") for field in fields.split()))
now = datetime.datetime.fromisoformat(start).astimezone(trigger.timezone)
last, said = None, []
for _ in range(4):
    last = now = trigger.get_next_fire_time(last, now)
    said.append(last.astimezone(datetime.timezone.utc).strftime("%d.%H:%M"))
print(*said)
EOF
next() {
	PYTHONHOME=$tree/usr PYTHONPATH=$tree/usr/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1 \
		PYTHONTZPATH=$tree/usr/share/zoneinfo in_tree usr/bin/python3.13 "$work/next.py" "$@"
}

while IFS='|' read -r what zone start fields times; do
	expect "$what, in UTC" "$(next "$zone" "$start" "$fields")" "$times"
done <<'EOF'
2:30 in Berlin, in autumn|Europe/Berlin|2027-10-30T12:00:00+00:00|hour=2 minute=30|31.00:30 31.01:30 31.01:30 31.01:30
each 20 minutes there|Europe/Berlin|2027-10-31T00:50:00+00:00|minute=*/20|31.01:00 31.00:20 31.00:40 31.01:00
each hour in New York|America/New_York|2027-11-07T04:30:00+00:00|minute=0|07.05:00 07.06:00 07.06:00 07.06:00
1:45 on Lord Howe|Australia/Lord_Howe|2027-04-03T01:00:00+00:00|hour=1 minute=45|03.14:45 03.15:15 03.15:15 03.15:15
2:30 in Berlin, in spring|Europe/Berlin|2027-03-27T12:00:00+00:00|hour=2 minute=30|28.01:30 29.00:30 30.00:30 31.00:30
EOF

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ical 9.0.0 of Python, by which Home Assistant keeps its calendars, says a meeting that was moved
# at its old time and at its new one.
#
# Who moves one meeting of a series writes an event with the series' UID and the old time as its
# RECURRENCE-ID, as every calendar program does. recurring-ical-events 3.3.3 says it once, at the
# new time, and so do libical and ical.js. In ical's timeline of a calendar that was read both are
# there, with a zone, in UTC, and for whole days; a meeting that was called off (STATUS:CANCELLED)
# is there twice.
#
# It matters to who takes such a timeline as the days on which something is to run, or not to.
# twheel's CALENDAR has what was moved at its new time alone (docs/cron.md).

. "$(dirname "$0")/lib.sh"

debian trixie python3-ical=9.0.0-2 python3-recurring-ical-events=3.3.3-2 python3-icalendar=6.0.1-2 \
	tzdata
cat >"$work/days.py" <<'EOF'
import datetime
import sys

program, series, moved = sys.argv[1:]
EVENT = "BEGIN:VEVENT\nUID:series@example.org\nDTSTAMP:20260101T000000Z\nSUMMARY:Stocktaking\n%s\nEND:VEVENT\n"
TEXT = ("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//example//EN\n"
        + EVENT % (series.replace(",", "\n") + "\nRRULE:FREQ=WEEKLY;COUNT=4")
        + EVENT % moved.replace(",", "\n") + "END:VCALENDAR\n").replace("\n", "\r\n")
FIRST, LAST = (datetime.datetime(2026, month, 1, tzinfo=datetime.timezone.utc) for month in (1, 3))
if program == "ical":
    from ical.calendar_stream import IcsCalendarStream
    calendar = IcsCalendarStream.calendar_from_ics(TEXT)
    times = [event.dtstart for event in calendar.timeline_tz(datetime.timezone.utc).overlapping(FIRST, LAST)]
else:
    import icalendar
    import recurring_ical_events
    calendar = icalendar.Calendar.from_ical(TEXT)
    times = [event["DTSTART"].dt for event in recurring_ical_events.of(calendar).between(FIRST, LAST)]
print(*sorted(time.strftime("%d.%H" if isinstance(time, datetime.datetime) else "%d") for time in times))
EOF
days() {
	PYTHONHOME=$tree/usr PYTHONPATH=$tree/usr/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1 \
		PYTHONTZPATH=$tree/usr/share/zoneinfo in_tree usr/bin/python3.13 "$work/days.py" "$@"
}

while IFS='|' read -r what series moved once twice; do
	expect "$what, recurring-ical-events" "$(days recurring-ical-events "$series" "$moved")" "$once"
	expect "$what, ical" "$(days ical "$series" "$moved")" "$twice"
done <<'EOF'
in UTC|DTSTART:20260105T090000Z,DURATION:PT1H|RECURRENCE-ID:20260112T090000Z,DTSTART:20260113T110000Z,DURATION:PT1H|05.09 13.11 19.09 26.09|05.09 12.09 13.11 19.09 26.09
with a zone|DTSTART;TZID=Europe/Berlin:20260105T090000,DURATION:PT1H|RECURRENCE-ID;TZID=Europe/Berlin:20260112T090000,DTSTART;TZID=Europe/Berlin:20260113T110000,DURATION:PT1H|05.09 13.11 19.09 26.09|05.09 12.09 13.11 19.09 26.09
whole days|DTSTART;VALUE=DATE:20260105|RECURRENCE-ID;VALUE=DATE:20260112,DTSTART;VALUE=DATE:20260113|05 13 19 26|05 12 13 19 26
EOF
expect "called off, ical" "$(days ical "DTSTART:20260105T090000Z,DURATION:PT1H" \
	"RECURRENCE-ID:20260112T090000Z,DTSTART:20260112T090000Z,DURATION:PT1H,STATUS:CANCELLED")" \
	"05.09 12.09 12.09 19.09 26.09"

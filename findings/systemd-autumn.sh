#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# systemd 257 rests for an hour when the clock is set back: OnCalendar=*:0/5 is not each five
# minutes.
#
# In the night to 25 October 2026, 3:00 becomes 2:00 in Berlin. A calendar of systemd.time(7) that
# names any hour and every fifth, tenth or thirtieth minute has no elapse in the hour that comes
# again: after 2:55 of summer time (0:55 UTC) the next one is 3:00 (2:00 UTC), 65 minutes later.
# OnCalendar=hourly has a gap of two hours. On Lord Howe, whose clock is set by half an hour, the
# half hour is left out. 252.39 and 262.1 say the same, with the zone in the expression, too.
# A calendar in UTC goes on.
#
# It matters for what watches or collects, and to who moves a timer to a crontab: for cron a line
# that begins with a star runs in both hours, and so it does in twheeld (docs/cron.md).

. "$(dirname "$0")/lib.sh"

debian trixie systemd=257.13-1~deb13u1 tzdata=2026f-0+deb13u1
export TZDIR=$tree/usr/share/zoneinfo
in_tree usr/bin/systemd-analyze --version | head -n 1

# elapses ZONE FROM CALENDAR: three elapses, in UTC
elapses() {
	TZ=$1 in_tree usr/bin/systemd-analyze calendar --base-time="$2 UTC" --iterations=3 "$3" |
		sed -n 's/.* \(..:..\):00 UTC$/\1/p' | xargs
}

expect "Berlin, *:0/5, in UTC" "$(elapses Europe/Berlin '2026-10-25 00:50' '*:0/5')" \
	"00:55 02:00 02:05"
expect "Berlin, hourly, in UTC" "$(elapses Europe/Berlin '2026-10-24 23:30' hourly)" \
	"00:00 02:00 03:00"
expect "Lord Howe, *:0/10, in UTC" "$(elapses Australia/Lord_Howe '2026-04-04 14:45' '*:0/10')" \
	"14:50 15:30 15:40"
expect "UTC, *:0/5" "$(elapses UTC '2026-10-25 00:50' '*:0/5')" "00:55 01:00 01:05"

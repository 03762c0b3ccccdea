#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# systemd-cron 2.5.1 makes "the 13th and each Friday" of a crontab to "Friday the 13th".
#
# Its crontab(5) promises what cron does: where the day of the month and that of the week are both
# given, either is enough. Its generator joins both into one OnCalendar= of systemd, for which both
# must match. So `0 9 13 * 5`, some sixty times a year with cron, becomes `Fri *-*-13`, once to
# three times, and `0 9 1-31 * 1`, daily with cron, Mondays only. Nothing is said of it. 2.8.2 does
# the same.
#
# It matters as systemd-cron is installed in place of cron, with the crontabs that are there.
# (And its timers rest in autumn: systemd-autumn.sh.)

. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || die "the generator is run in a chroot: be root"
debian trixie systemd-cron=2.5.1-2 bash coreutils
mkdir -p "$tree"/{etc/cron.d,units,var/spool/cron/crontabs}
echo root:x:0:0:root:/root:/bin/bash >"$tree/etc/passwd"
cat >"$tree/var/spool/cron/crontabs/root" <<'EOF'
0 9 13 * 5 true thirteenth
0 9 1-31 * 1 true range
0 9 13 * * true day
EOF
chroot "$tree" /usr/lib/systemd/system-generators/systemd-crontab-generator /units /units /units

# What became of the line with such a command
calendar() {
	local timer

	timer=$(grep -l "true $1\"" "$tree"/units/cron-root-root-*.timer)
	sed -n 's/^OnCalendar=//p' "$timer"
}

expect "0 9 13 * 5" "$(calendar thirteenth)" 'Fri *-*-13 9:0:00'
expect "0 9 1-31 * 1" "$(calendar range | cut -c 1-14)..." 'Mon *-*-1,2,3,...'
expect "0 9 13 * *" "$(calendar day)" '*-*-13 9:0:00'

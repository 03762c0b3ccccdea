#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Symfony's Scheduler 6.4: each "1 month" is a month, each "P1M" is 31 days.
#
# A periodical trigger takes an interval as words or as ISO 8601 has it. "1 day" stays at eight
# when the clock is set; "P1D" is 24 hours and moves to seven. "1 month" is the same day of each
# month, but is reckoned from the last one: what begins on 31 January comes on the 3rd from March
# on, for ever. "P1M" becomes seconds, those of January, whenever it begins: from 24 October it
# comes each 31 days, and leaves the 24th in December.
#
# It matters to who writes a payroll's interval in one form or the other. twheel has no months in
# @every; a line of cron or a calendar has them (docs/cron.md).

. "$(dirname "$0")/lib.sh"

debian trixie php8.4-cli=8.4.27-1~deb13u1 php-symfony-scheduler=6.4.50+dfsg-0+deb13u1
cat >"$work/next.php" <<'EOF'
<?php
spl_autoload_register(function ($class) {
	require getenv('PHP').'/'.str_replace('\\', '/', $class).'.php';
});
date_default_timezone_set('Europe/Berlin');
$at = (new DateTimeImmutable($argv[2]))->modify('-1 second');
$trigger = new Symfony\Component\Scheduler\Trigger\PeriodicalTrigger($argv[1], $argv[2]);
for ($i = 0; $i < 4; $i++) {
	$at = $trigger->getNextRunDate($at);
	echo $i ? ' ' : '', $at->format('m-d.H');
}
EOF
next_times() {
	PHP=$tree/usr/share/php in_tree usr/bin/php8.4 -n \
		-d extension_dir="$(echo "$tree"/usr/lib/php/2*)" -d extension=ctype "$work/next.php" "$@"
}

while IFS='|' read -r every from want; do
	expect "every $every from $from" "$(next_times "$every" "$from")" "$want"
done <<'EOF'
1 day|2026-10-24 08:00|10-24.08 10-25.08 10-26.08 10-27.08
P1D|2026-10-24 08:00|10-24.08 10-25.07 10-26.07 10-27.07
1 month|2026-10-24 08:00|10-24.08 11-24.08 12-24.08 01-24.08
P1M|2026-10-24 08:00|10-24.08 11-24.07 12-25.07 01-25.07
P1M|2026-02-10 08:00|02-10.08 03-13.08 04-13.09 05-14.09
1 month|2026-01-31 08:00|01-31.08 03-03.08 04-03.08 05-03.08
EOF

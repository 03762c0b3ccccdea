#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# cron-expression 3.4.0, by which Laravel and Symfony reckon: `LW` has days that are no last
# workday, and `*/90` is half past each hour.
#
# It takes `L` and `15W`, as Quartz does, but not `L-3` ("impossible"). `LW`, Quartz' last workday
# of the month, it takes, and gives a day that is not: the 30th of December 2026, a Sunday at the
# end of January 2027, the first of February. A step that is longer than its field, for which cron
# has the field's first value, wraps around: each ninety minutes is minute 30 of each hour, each
# thirty hours the hour 6.
#
# It matters to who moves such lines to another scheduler, where they mean something else, and to
# who trusts that what is accepted is understood. twheel takes LW as Quartz does, and refuses a step
# that is too long (docs/cron.md).

. "$(dirname "$0")/lib.sh"

debian trixie php8.4-cli=8.4.27-1~deb13u1 php-dragonmantank-cron-expression=3.4.0-1
cat >"$work/next.php" <<'EOF'
<?php
spl_autoload_register(function ($class) {
	require getenv('PHP').'/'.str_replace('\\', '/', $class).'.php';
});
try {
	$cron = new Cron\CronExpression($argv[1]);
	$at = new DateTime('2026-12-01 00:00 UTC');
	for ($i = 0; $i < 4; $i++) {
		$at = $cron->getNextRunDate($at, 0, false, 'UTC');
		echo $i ? ' ' : '', $at->format($argv[2]);
	}
} catch (RuntimeException $e) {
	echo $e->getMessage();
}
EOF
next_times() {
	PHP=$tree/usr/share/php in_tree usr/bin/php8.4 -n \
		-d extension_dir="$(echo "$tree"/usr/lib/php/2*)" -d extension=ctype "$work/next.php" "$@"
}

expect "'0 9 LW * *'" "$(next_times '0 9 LW * *' Dm-d)" "Wed12-30 Sun01-31 Mon02-01 Mon03-01"
expect "'0 9 L * *'" "$(next_times '0 9 L * *' Dm-d)" "Thu12-31 Sun01-31 Sun02-28 Wed03-31"
expect "'0 9 L-3 * *'" "$(next_times '0 9 L-3 * *' Dm-d)" "Impossible CRON expression"
expect "'*/90 * * * *'" "$(next_times '*/90 * * * *' H:i)" "00:30 01:30 02:30 03:30"
expect "'0 */30 * * *'" "$(next_times '0 */30 * * *' d-H:i)" "01-06:00 02-06:00 03-06:00 04-06:00"

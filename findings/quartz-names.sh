#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Quartz 2.3.2 takes expressions that it reads but half: a step after names, W or # in a list.
#
# - `MON-FRI/2` is each weekday, and `JAN-DEC/3` each month, though `2-6/2` is Monday, Wednesday and
#   Friday: the step is dropped where the range is of names;
# - `1,15W`, the 1st and the weekday nearest to the 15th, is the weekday nearest to the 1st alone;
# - `SUN,MON#1`, each Sunday and the first Monday, is the first Sunday alone.
# None is refused, though a list with L is. In autumn, each half hour has none in the first of the
# two hours from 2:00 in Berlin: after 1:30 of summer time it is 2:00 of winter time, 90 minutes
# later.
#
# It matters to who moves such lines: what they say is not what they did (docs/cron.md, "From
# Quartz"). Wants a JDK, 11 or later.

. "$(dirname "$0")/lib.sh"

"$top/scripts/archive" trixie update
"$top/scripts/archive" trixie unpack "$tree" libquartz2-java=2.3.2-4 libslf4j-java=1.7.32-2
cat >"$work/Next.java" <<'EOF'
import java.text.SimpleDateFormat;
import java.time.Instant;
import java.util.Date;
import java.util.TimeZone;
import org.quartz.CronExpression;

class Next {
	public static void main(String[] arg) throws Exception {
		TimeZone zone = TimeZone.getTimeZone(arg[1]);
		SimpleDateFormat format = new SimpleDateFormat(arg[3]);
		CronExpression line = new CronExpression(arg[0]);
		Date at = Date.from(Instant.parse(arg[2]));

		format.setTimeZone(zone);
		line.setTimeZone(zone);
		for (int i = 0; i < 4; i++) {
			at = line.getNextValidTimeAfter(at);
			System.out.print((i > 0 ? ", " : "") + format.format(at));
		}
	}
}
EOF
jars=$tree/usr/share/java
next() { java -cp "$jars/quartz2.jar:$jars/slf4j-api.jar" "$work/Next.java" "$@" 2>"$work/log"; }

java -version 2>&1 | head -n 1
from=2026-12-01T13:00:00Z day='MM-dd EEE'
expect "0 0 12 ? * MON-FRI/2" "$(next '0 0 12 ? * MON-FRI/2' UTC $from "$day")" \
	"12-02 Wed, 12-03 Thu, 12-04 Fri, 12-07 Mon"
expect "0 0 12 ? * 2-6/2" "$(next '0 0 12 ? * 2-6/2' UTC $from "$day")" \
	"12-02 Wed, 12-04 Fri, 12-07 Mon, 12-09 Wed"
expect "0 0 12 1 JAN-DEC/3 ?" "$(next '0 0 12 1 JAN-DEC/3 ?' UTC $from "$day")" \
	"01-01 Fri, 02-01 Mon, 03-01 Mon, 04-01 Thu"
expect "0 0 12 1,15W * ?" "$(next '0 0 12 1,15W * ?' UTC $from "$day")" \
	"01-01 Fri, 02-01 Mon, 03-01 Mon, 04-01 Thu"
expect "0 0 12 ? * SUN,MON#1" "$(next '0 0 12 ? * SUN,MON#1' UTC $from "$day")" \
	"12-06 Sun, 01-03 Sun, 02-07 Sun, 03-07 Sun"
expect "0 0/30 * * * ? in Berlin" \
	"$(next '0 0/30 * * * ?' Europe/Berlin 2026-10-24T23:00:00Z 'HH:mm XXX')" \
	"01:30 +02:00, 02:00 +01:00, 02:30 +01:00, 03:00 +01:00"

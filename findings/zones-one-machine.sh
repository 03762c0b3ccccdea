#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# One up-to-date Debian 13 has three opinions on what time it is in Winnipeg and Havana in the
# winter of 2026.
#
# British Columbia, Alberta and Manitoba gave up setting the clock in 2026, and Cuba does not set it
# back that year (tzdata 2026b, c, e and f). Of Debian 13 as of November 2026
# - what reads tzdata 2026f (the C library, Python, systemd, cron, twheeld) has all of them;
# - OpenJDK 25.0.5, with rules of its own, has all but Cuba (26.0.2.1 of unstable has British
#   Columbia alone);
# - ICU 76.1, and with it JavaScript's Intl and libical's RSCALE, has none: Debian's updates of
#   tzdata don't reach it.
# So a job of 9:00 in Winnipeg is run at 14:00 or at 15:00 UTC, by what schedules it.
#
# It matters where a schedule's zone is handed on: say times in UTC between programs, and update
# Java and Node.js, too, when a zone's rules change. Wants to be root, for chroot.

. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || die "java is run in a chroot: be root"
debian trixie tzdata=2026f-0+deb13u1 libicu76=76.1-4 python3-icu=2.14-1+b3 python3=3.13.5-1 \
	openjdk-25-jdk-headless=25.0.5+8-1~deb13u1 coreutils
zones=(America/Vancouver America/Edmonton America/Winnipeg America/Havana)
cat >"$work/zones.py" <<'EOF'
import sys
from datetime import datetime, timezone
from zoneinfo import ZoneInfo
import icu

at = datetime(2026, 12, 15, tzinfo=timezone.utc)
for zone in sys.argv[2:]:
    if sys.argv[1] == "icu":
        print(sum(icu.TimeZone.createTimeZone(zone).getOffset(at.timestamp(), False)) // 3600000)
    else:
        print(at.astimezone(ZoneInfo(zone)).utcoffset().total_seconds() // 3600)
EOF
cat >"$tree/Zones.java" <<'EOF'
import java.time.Instant;
import java.time.ZoneId;

class Zones {
	public static void main(String[] zones) {
		for (String zone : zones)
			System.out.println(ZoneId.of(zone).getRules()
				.getOffset(Instant.parse("2026-12-15T00:00:00Z")).getTotalSeconds() / 3600);
	}
}
EOF
python() {
	PYTHONHOME=$tree/usr PYTHONTZPATH=$tree/usr/share/zoneinfo in_tree usr/bin/python3 \
		"$work/zones.py" "$@" | sed 's/\.0$//' | xargs
}
java() {
	mkdir -p "$tree/proc"
	unshare --mount --pid --fork --mount-proc="$tree/proc" chroot "$tree" \
		/usr/lib/jvm/java-25-openjdk-amd64/bin/java /Zones.java "$@" | xargs
}

echo "hours from UTC in ${zones[*]}"
expect "Python and tzdata 2026f" "$(python zoneinfo "${zones[@]}")" "-7 -6 -5 -4"
expect "OpenJDK 25.0.5" "$(java "${zones[@]}")" "-7 -6 -5 -5"
expect "ICU 76.1" "$(python icu "${zones[@]}")" "-8 -7 -6 -5"

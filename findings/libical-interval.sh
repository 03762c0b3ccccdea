#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# libical 3.0.20 keeps the INTERVAL of a rule in 16 bits, and forgets it beside BYHOUR.
#
# FREQ=SECONDLY;INTERVAL=86399, a day less a second, is taken without an error, and repeats each
# 20,863 seconds: what is left of it in 16 bits. FREQ=HOURLY;INTERVAL=5;BYHOUR=3, which is at 3:00
# each fifth day, repeats each day. The second is so in ical.js 2.2.1, too, which was written after
# libical. rrule-rust 3.1.1 has 16 bits, too, but refuses what does not fit; dateutil is right in
# both.
#
# It matters to who takes libical for schedules: docs/cron.md says which parts twheeld takes.

. "$(dirname "$0")/lib.sh"

debian trixie libical3t64=3.0.20-1+b1 python3=3.13.5-1
cat >"$work/expand.py" <<'EOF'
import ctypes, sys
from datetime import datetime, timezone

expand = ctypes.CDLL("libical.so.3").icalrecur_expand_recurrence
expand.argtypes = ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.POINTER(ctypes.c_long)
start = int(datetime(2020, 1, 1, 9, tzinfo=timezone.utc).timestamp())
times = (ctypes.c_long * 4)()
expand(sys.argv[1].encode(), start, 4, times)
print(*(datetime.fromtimestamp(at, timezone.utc).strftime("%m-%dT%H:%M:%S") for at in times))
EOF
libical() { PYTHONHOME=$tree/usr in_tree usr/bin/python3 "$work/expand.py" "$1"; }

expect "SECONDLY;INTERVAL=86399" "$(libical 'FREQ=SECONDLY;INTERVAL=86399')" \
	"01-01T09:00:00 01-01T14:47:43 01-01T20:35:26 01-02T02:23:09"
expect "SECONDLY;INTERVAL=20863" "$(libical 'FREQ=SECONDLY;INTERVAL=20863')" \
	"01-01T09:00:00 01-01T14:47:43 01-01T20:35:26 01-02T02:23:09"
expect "HOURLY;INTERVAL=5;BYHOUR=3" "$(libical 'FREQ=HOURLY;INTERVAL=5;BYHOUR=3')" \
	"01-02T03:00:00 01-03T03:00:00 01-04T03:00:00 01-05T03:00:00"
npm_get ical.js@2.2.1 rrule-rust@3.1.1
seen() {
	NODE_PATH=$modules node "$(dirname "$0")/rrule-next.cjs" "$1" 20200101T090000Z "$2" 3 2>&1
}
expect "ical.js, HOURLY;INTERVAL=5;BYHOUR=3" "$(seen ical.js 'FREQ=HOURLY;INTERVAL=5;BYHOUR=3')" \
	"2020-01-01T09:00 2020-01-02T03:00 2020-01-03T03:00"
expect "rrule-rust, SECONDLY;INTERVAL=86399" \
	"$(seen rrule-rust 'FREQ=SECONDLY;INTERVAL=86399' | grep -o -m 1 'Invalid INTERVAL.*')" \
	"Invalid INTERVAL value: 86399"

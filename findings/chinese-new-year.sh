#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The Chinese new year of 2027 and of 2030 is a day wrong in ICU 76.1, and so in libical 3.0.20.
#
# RSCALE=CHINESE;FREQ=YEARLY (RFC 7529) repeats the new year. libical asks ICU, which reckons the
# moon itself: 7 February 2027 and 2 February 2030. The calendar has 6 February 2027, as the new
# moon is a few minutes before midnight there, and 3 February 2030, as it is a few minutes after
# it. lunar 2.2, whose years are a table, says these. ICU 78 says the same as 76, and so do what
# asks it: JavaScript's Intl in Node.js 20, and rrule-temporal.
#
# It matters to calendars of holidays, and to who tests one library by another: all with ICU agree.

. "$(dirname "$0")/lib.sh"

debian trixie libical3t64=3.0.20-1+b1 libicu76=76.1-4 python3=3.13.5-1 lunar=2.2-9
cat >"$work/years.py" <<'EOF'
import ctypes
from datetime import datetime, timezone

expand = ctypes.CDLL("libical.so.3").icalrecur_expand_recurrence
expand.argtypes = ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.POINTER(ctypes.c_long)
start = int(datetime(2026, 2, 17, tzinfo=timezone.utc).timestamp())
times = (ctypes.c_long * 6)()
expand(b"RSCALE=CHINESE;FREQ=YEARLY", start, 6, times)
print(*(datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d") for at in times))
EOF
by_table() {
	for year in {2026..2031}; do
		in_tree usr/bin/lunar -i "$year" 1 1 | sed -n 's/^Solar : \([0-9.]*\)\.0.*/\1/p'
	done | tr . ' ' | xargs printf '%d-%02d-%02d '
}

expect "libical and ICU" "$(PYTHONHOME=$tree/usr in_tree usr/bin/python3 "$work/years.py")" \
	"2026-02-17 2027-02-07 2028-01-26 2029-02-13 2030-02-02 2031-01-23"
expect "lunar's table" "$(by_table)" \
	"2026-02-17 2027-02-06 2028-01-26 2029-02-13 2030-02-03 2031-01-23 "

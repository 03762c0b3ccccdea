#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A day of the month and a day of the week in one crontab line: the 13th and each Friday, or
# Friday the 13th? Eight libraries of npm.
#
# In cron, either is enough where both days are restricted. node-cron 4.6.0 and @breejs/later 4.2.0
# want both: `0 9 13 * 5` fires once to three times a year. Where a star with a step is one of the
# two, Vixie's cron and its heirs want both, too (cronie-cronnext.sh), and the six other libraries
# take either: `0 9 */2 * 1` is odd Mondays there, and odd days and Mondays here. A range of all
# values, as 1-31, is no restriction for cron 4.4.0 and cron-schedule 6.0.0: Mondays only, where it
# is every day for others. @datasert/cronjs-matcher 1.4.0 takes 1-7 as a week without its Sunday.
#
# It matters to who moves lines from one to another: each is accepted, none says a word. twheel's
# lines mean what they do in cron (docs/cron.md).

. "$(dirname "$0")/lib.sh"

npm_get cron@4.4.0 cron-parser@5.10.6 node-cron@4.6.0 cronosjs@1.7.1 \
	@datasert/cronjs-matcher@1.4.0 croner@11.0.1 cron-schedule@6.0.0 @breejs/later@4.2.0
rows() {
	while IFS='|' read -r package want; do
		expect "$package: '$1'" "$(NODE_PATH=$modules TZ=UTC node "$(dirname "$0")/cron-next.cjs" \
			"$package" "$1" UTC 2026-12-01T10:00:00Z 5 | sed 's/ 09:00+0//g; s/,//g')" "$want"
	done
}

rows '0 9 13 * 5' <<'EOF'
croner|12-04 12-11 12-13 12-18 12-25
node-cron|08-13 10-13 04-13 07-13 09-13
@breejs/later|08-13 10-13 04-13 07-13 09-13
EOF
rows '0 9 */2 * 1' <<'EOF'
node-cron|12-07 12-21 01-11 01-25 02-01
croner|12-03 12-05 12-07 12-09 12-11
cron|12-03 12-05 12-07 12-09 12-11
cron-parser|12-03 12-05 12-07 12-09 12-11
cron-schedule|12-03 12-05 12-07 12-09 12-11
cronosjs|12-03 12-05 12-07 12-09 12-11
@datasert/cronjs-matcher|12-03 12-05 12-07 12-09 12-11
EOF
rows '0 9 1-31 * 1' <<'EOF'
croner|12-02 12-03 12-04 12-05 12-06
cron-parser|12-02 12-03 12-04 12-05 12-06
cron|12-07 12-14 12-21 12-28 01-04
cron-schedule|12-07 12-14 12-21 12-28 01-04
EOF
rows '0 9 13 * 1-7' <<'EOF'
croner|12-02 12-03 12-04 12-05 12-06
@datasert/cronjs-matcher|12-02 12-03 12-04 12-05 12-07
EOF

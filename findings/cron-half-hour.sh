#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Six cron libraries of npm where the clock is set by half an hour: one goes back in time, and
# stays there.
#
# On Lord Howe, 2:00 becomes 1:30 on 5 April 2026, and 2:00 becomes 2:30 on 4 October. Asked again
# and again for what comes next, every fifteen minutes is in April
# - with cron 4.4.0: 1:45 before, 1:30 after, and 1:45 before once more, the half hour for ever;
# - with cron-parser 5.10.6 and @datasert/cronjs-matcher 1.4.0: the second half hour is left out;
# - with node-cron 4.6.0 and cronosjs 1.7.1: the first one is left out;
# - with croner 11.0.1: all of it.
# Daily at 2:15, which is not there on 4 October, is with cron twice on that day, once too early;
# with cronosjs at 2:45, with croner at 2:30, and with the other three on the day after. And every
# fifteen minutes on that day goes back from 2:45 to 2:30 with @datasert/cronjs-matcher, and lacks
# both with cron-parser.
#
# It matters as tests with Berlin or New York don't show it: cron, cron-parser and croner are right
# there. (node-cron, cronosjs and @datasert/cronjs-matcher leave out one of the two hours there, too.)

. "$(dirname "$0")/lib.sh"

npm_get cron@4.4.0 cron-parser@5.10.6 node-cron@4.6.0 cronosjs@1.7.1 \
	@datasert/cronjs-matcher@1.4.0 croner@11.0.1
rows() {
	while IFS='|' read -r package want; do
		expect "$package: '$1'" "$(NODE_PATH=$modules node "$(dirname "$0")/cron-next.cjs" "$package" \
			"$1" Australia/Lord_Howe "$2" "$3")" "$want"
	done
}

rows '*/15 * * * *' 2026-04-04T14:30:00Z 5 <<'EOF'
cron|04-05 01:45+11, 04-05 01:30+10:30, 04-05 01:45+11, 04-05 01:30+10:30, 04-05 01:45+11
cron-parser|04-05 01:45+11, 04-05 02:00+10:30, 04-05 02:15+10:30, 04-05 02:30+10:30, 04-05 02:45+10:30
node-cron|04-05 01:45+10:30, 04-05 02:00+10:30, 04-05 02:15+10:30, 04-05 02:30+10:30, 04-05 02:45+10:30
cronosjs|04-05 01:45+10:30, 04-05 02:00+10:30, 04-05 02:15+10:30, 04-05 02:30+10:30, 04-05 02:45+10:30
@datasert/cronjs-matcher|04-05 01:30+11, 04-05 01:45+11, 04-05 02:00+10:30, 04-05 02:15+10:30, 04-05 02:30+10:30
croner|04-05 01:45+11, 04-05 01:30+10:30, 04-05 01:45+10:30, 04-05 02:00+10:30, 04-05 02:15+10:30
EOF
rows '15 2 * * *' 2026-10-03T05:00:00Z 2 <<'EOF'
cron|10-04 01:45+10:30, 10-04 02:45+11
cron-parser|10-05 02:15+11, 10-06 02:15+11
node-cron|10-05 02:15+11, 10-06 02:15+11
cronosjs|10-04 02:45+11, 10-05 02:15+11
@datasert/cronjs-matcher|10-05 02:15+11, 10-06 02:15+11
croner|10-04 02:30+11, 10-05 02:15+11
EOF
rows '*/15 * * * *' 2026-10-03T15:00:00Z 5 <<'EOF'
cron-parser|10-04 01:45+10:30, 10-04 03:00+11, 10-04 03:15+11, 10-04 03:30+11, 10-04 03:45+11
@datasert/cronjs-matcher|10-04 01:30+10:30, 10-04 01:45+10:30, 10-04 02:30+11, 10-04 02:45+11, 10-04 02:30+11
EOF

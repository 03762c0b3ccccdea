#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# mcron 1.0.8 runs what a crontab has in month 1 in February, and what it has in month 12 in January.
#
# GNU's cron in Guile reads Vixie's crontabs, too. It takes the number of a month for one that
# counts from 0, as C's struct tm does: each is a month late, and 0, which cron refuses, is January.
# Names are right: `feb` is February. A star with a step is that of cron. Nothing is said of it; the
# line is accepted, and a yearly one is noticed a year later.
#
# It matters to who tries a crontab on another cron before moving it: `mcron -s 10`, which says when
# the next ten would run, is handy for that, and wrong here. Months of twheel's are those of cron.

. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || die "mcron finds crontabs at a home: it is run in a chroot, so be root"
debian bookworm mcron=1.0.8-1.1 libfaketime=0.9.10-2.1 bash coreutils tzdata
mkdir -p "$tree"/{dev,root/.config/cron,tmp}
echo root:x:0:0:root:/root:/bin/bash >"$tree/etc/passwd"

# The first two times of such a line after 8 December 2026
next() {
	echo "$1 true" >"$tree/root/.config/cron/line.vixie"
	chroot "$tree" env HOME=/root TZ=UTC LANG=C.UTF-8 GUILE_AUTO_COMPILE=0 FAKETIME='@2026-12-08 00:00:00' \
		LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1 mcron -s 2 2>/dev/null |
		sed -n 's/^[A-Z][a-z][a-z] \(.*\) +0000$/\1/p' | tr -s ' ' | paste -sd ,
}

expect "0 9 1 1 *" "$(next '0 9 1 1 *')" 'Feb 1 09:00:00 2027,Feb 1 09:00:00 2028'
expect "0 9 1 12 *" "$(next '0 9 1 12 *')" 'Jan 1 09:00:00 2027,Jan 1 09:00:00 2028'
expect "0 9 1 0 *" "$(next '0 9 1 0 *')" 'Jan 1 09:00:00 2027,Jan 1 09:00:00 2028'
expect "0 9 1 feb *" "$(next '0 9 1 feb *')" 'Feb 1 09:00:00 2027,Feb 1 09:00:00 2028'
expect "0 9 1 */6 *" "$(next '0 9 1 */6 *')" 'Jan 1 09:00:00 2027,Jul 1 09:00:00 2027'

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# cronnext of cronie 1.7.2 says another day than cronie's own crond runs the line on.
#
# `0 9 */2 * 1` has both days, one of them a star with a step. crond wants both then: it runs the
# line on Monday, 7 December 2026, and not on the 14th, an even day. cronnext(1), which comes with
# it to say when the next job is due, says both Mondays: for it a star is no restriction, its step
# is forgotten. Programs that wake a machine for cron's next job ask cronnext.
#
# The daemon runs in a chroot, on a clock that libfaketime makes twenty times as fast, and only
# its log is looked at. Wants to be root, for chroot.

. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || die "crond is run in a chroot: be root"
debian trixie cronie=1.7.2-4 libfaketime=0.9.10+2024-06-05+gba9ed5b2-0.6 bash coreutils tzdata
line='0 9 */2 * 1 true monday'
mkdir -p "$tree"/{etc/cron.d,dev/shm,run,tmp,root,var/spool/cron/crontabs}
echo root:x:0:0:root:/root:/bin/bash >"$tree/etc/passwd"
echo root:x:0: >"$tree/etc/group"
echo "$line" >"$tree/var/spool/cron/crontabs/root"
chmod 600 "$tree/var/spool/cron/crontabs/root"
[ -e "$tree/dev/null" ] || mknod -m 666 "$tree/dev/null" c 1 3

# Ten seconds before nine, three minutes long at most.
crond() {
	local log=$work/crond

	timeout 9 chroot "$tree" env TZ=UTC FAKETIME="@2026-12-$1 08:58:50 x20" \
		LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1 \
		/usr/sbin/crond -n -x sch -m off >"$log" 2>&1 || :
	[ "$(grep -c Target "$log")" -gt 1 ] || die "crond did not come past nine: $(tail -n 1 "$log")"
	! grep -q 'cmd="true monday"' "$log" && echo no || echo yes
}

expect "crond runs it on 7 December" "$(crond 07)" yes
expect "crond runs it on 14 December" "$(crond 14)" no
echo "$line" >"$work/crontab"
for day in 07 14; do
	seen=$(TZ=UTC in_tree usr/bin/cronnext -t "$(date -u -d "2026-12-$day 08:00" +%s)" "$work/crontab")
	expect "cronnext on $day December" "$(date -u -d "@${seen##* }" +'%m-%d %H:%M')" "12-$day 09:00"
done

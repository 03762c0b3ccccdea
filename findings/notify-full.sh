#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# PostgreSQL 17: a queue of notifications that was full stays full when whoever held it up is gone.
#
# A session that listens, and stays in a transaction, holds up the queue; once it is full, NOTIFY
# fails for everybody. Then the session ends its transaction, and ends itself. Nobody listens any
# more, nothing is waited for, and NOTIFY goes on failing, seconds later, too: only who notifies with
# success, or ends as a listener, moves the tail, and nobody can. What mends it is to ask how full it
# is: pg_notification_queue_usage() itself moves the tail, and answers 0.
#
# It matters to who takes LISTEN and NOTIFY for wake-ups: after that error ask for the usage, or
# have a listener that ends and begins anew. Wants root, for a chroot.

. "$(dirname "$0")/lib.sh"

version=17.12-0+deb13u1
debian trixie postgresql-17=$version postgresql-client-17=$version dash coreutils
[ "$(id -u)" = 0 ] || die "not root"
bin=usr/lib/postgresql/17/bin
install -d -m 777 "$tree/tmp" "$tree/dev"
echo postgres:x:65534:65534::/tmp:/bin/sh >"$tree/etc/passwd"
cat >"$work/inside" <<'END'
set -e
tree=$1 bin=$2
mount --rbind /dev "$tree/dev"
run() { chroot --userspec=65534:65534 "$tree" env LC_ALL=C "$@"; }
run "/$bin/initdb" -D /tmp/data -A trust -U postgres --no-sync -c dynamic_shared_memory_type=mmap \
	>/dev/null
exec chroot --userspec=65534:65534 "$tree" env LC_ALL=C "/$bin/postgres" -D /tmp/data -k /tmp \
	-c listen_addresses= -c dynamic_shared_memory_type=mmap -c fsync=off \
	-c max_notify_queue_pages=64
END
unshare --mount --propagation private sh "$work/inside" "$tree" "$bin" >"$work/server.log" 2>&1 &
servers+=($!)

export PGOPTIONS="-c client_min_messages=error"
sql() { in_tree "$bin/psql" -h "$tree/tmp" -U postgres -Atq "$@" 2>&1 | head -n 1; }
notify() {
	local said

	said=$(sql -c "SELECT count(pg_notify('y', repeat('x', 7000) || n)) FROM generate_series(1, ${1:-1}) n")
	case $said in
	*'too many notifications'*)	echo full ;;
	[0-9]*)	echo fine ;;
	*)	echo "$said" ;;
	esac
}

for _ in $(seq 60); do
	[ "$(sql -c 'SELECT 1')" != 1 ] || break
	kill -0 "${servers[0]}" || die "$(tail -n 1 "$work/server.log")"
	sleep 0.3
done
sql -c "SHOW server_version"
coproc listener { in_tree "$bin/psql" -h "$tree/tmp" -U postgres -Atq 2>&1; }
# shellcheck disable=SC2154 # coproc sets it
pid=$listener_PID
printf '%s\n' 'LISTEN x;' BEGIN\; "SELECT 'there';" >&"${listener[1]}"
read -r -t 30 there <&"${listener[0]}"
expect "a listener in a transaction" "$there" there
said=fine
while [ "$said" = fine ]; do
	said=$(notify 10)
done
expect "NOTIFY, at last" "$said" full
printf '%s\n' COMMIT\; '\q' >&"${listener[1]}"
wait "$pid" || :
expect "listeners and transactions that are left" "$(sql -c "SELECT count(*) FROM pg_stat_activity
	WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")" 0
said=''
for _ in 1 2 3; do
	sleep 2
	said+="$(notify) "
done
expect "NOTIFY after 2, 4 and 6 s" "$said" "full full full "
expect "pg_notification_queue_usage()" "$(sql -c 'SELECT pg_notification_queue_usage()')" 0
expect "NOTIFY" "$(notify)" fine

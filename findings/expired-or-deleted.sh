#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A key that is given a deadline in the past: Redis 8.0.2 says `del`, Valkey 8.1.1 says `expired`.
#
# Who hears of due work by keyspace notifications listens for `expired`. With PEXPIREAT, EXPIREAT
# or GETEX ... PXAT and a time that is over, as after an outage, Redis deletes the key at once and
# notifies `del`; Valkey, which came from it, notifies `expired`. Redis' work of that kind is lost
# without an error. Fields of hashes (HPEXPIREAT; Redis 8.0.6, Valkey 9.1.2) differ in the same
# way: `hdel` there, `hexpired` here. With a deadline that comes, both notify `expired`.
#
# It matters to who moves between the two, and to queues that fill themselves again from a database.

. "$(dirname "$0")/lib.sh"

debian trixie redis-server=5:8.0.2-3+deb13u3 valkey-server=8.1.1+dfsg1-3+deb13u3
npm_get ioredis@6.0.0
cat >"$work/events.cjs" <<'EOF'
const { default: Redis } = require("ioredis");

(async () => {
	const server = new Redis({ path: process.argv[2] }), ear = new Redis({ path: process.argv[2] });
	const heard = [];

	await ear.psubscribe("__keyevent@0__:*");
	ear.on("pmessage", (pattern, channel) => heard.push(channel.split(":")[1]));
	for (const command of process.argv.slice(3))
		await server.call(...command.split(" "));
	// What was heard before this one is all that there will be.
	await server.set("end", "");
	while (heard.filter((event) => event === "set").length < 2)
		await new Promise((done) => setTimeout(done, 10));
	console.log(heard.slice(1, -1).join(" "));
	process.exit();
})();
EOF
events() { node "$work/events.cjs" "$work/$1" "${@:2}"; }

for name in redis valkey; do
	serve usr/bin/$name-server --port 0 --unixsocket "$work/$name" --save '' --dir "$work" \
		--notify-keyspace-events KEA
	for ((i = 0; i < 100; i++)); do
		[ ! -S "$work/$name" ] || break
		sleep 0.1
	done
done
for command in "PEXPIREAT job 1" "EXPIREAT job 1" "GETEX job PXAT 1"; do
	expect "Redis, $command" "$(events redis "SET job x" "$command")" del
	expect "Valkey, $command" "$(events valkey "SET job x" "$command")" expired
done
for name in redis valkey; do
	expect "$name, PEXPIRE job 20" "$(events $name "SET job x" "PEXPIRE job 20" "BLPOP no 0.5")" \
		"expire expired"
done

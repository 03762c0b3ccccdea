#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# BullMQ 6.7.0 loses the order of delayed jobs that are due at one millisecond after September 2039.
#
# A delayed job's score in the sorted set is its time in milliseconds times 4,096, plus a number
# that counts those of the same millisecond, so that they come out as they went in. Scores are
# doubles: from 2^41 ms, 7 September 2039, the sum has more than 53 bits, the number is rounded
# away, and jobs of one millisecond are sorted by their ids as texts: 10 before 9. Of jobs that are
# due in 2030 the order is kept, also where there are more than 4,096 of them: these spill into
# the next millisecond.
#
# It matters to who fills a queue with what is due "never", or by the contract's end, and counts on
# first in, first out.

. "$(dirname "$0")/lib.sh"

debian trixie valkey-server=8.1.1+dfsg1-3+deb13u3
npm_get bullmq@6.7.0 ioredis@6.0.0
serve usr/bin/valkey-server --port 0 --unixsocket "$work/valkey" --save '' --dir "$work"
cat >"$work/order.cjs" <<'EOF'
const { Queue } = require("bullmq"), { default: Redis } = require("ioredis");

(async () => {
	const path = process.argv[2], due = Date.UTC(+process.argv[3], 0, 1), count = +process.argv[4];
	const server = new Redis({ path }), queue = new Queue("q", { connection: { path } });
	const timestamp = Date.now(), opts = { timestamp, delay: due - timestamp };

	await server.flushall();
	await queue.addBulk(Array.from({ length: count }, () => ({ name: "job", data: {}, opts })));
	const ids = await server.zrange("bull:q:delayed", 0, -1);
	console.log(count > 12 ? ids.every((id, i) => +id === i + 1) : ids.join(" "));
	process.exit();
})();
EOF
order() { node "$work/order.cjs" "$work/valkey" "$@"; }

for ((i = 0; i < 100; i++)); do
	[ ! -S "$work/valkey" ] || break
	sleep 0.1
done
expect "12 jobs that are due in 2030, by id" "$(order 2030 12)" "1 2 3 4 5 6 7 8 9 10 11 12"
expect "5,000 that are due in 2030 are in order" "$(order 2030 5000)" true
expect "12 jobs that are due in 2040, by id" "$(order 2040 12)" "1 10 11 12 2 3 4 5 6 7 8 9"

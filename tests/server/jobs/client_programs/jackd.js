// SPDX-License-Identifier: GPL-2.0
//
// jackd.js PORT: a conversation by the npm package jackd.

const assert = require('assert');
const Jackd = require('jackd');

async function states(c) {
	const id = await c.put('text', { priority: 7, ttr: 60 });
	assert.strictEqual((await c.peek(id)).payload.toString(), 'text');
	const job = await c.reserve();
	assert.deepStrictEqual([job.id, job.payload.toString()], [id, 'text']);
	await c.touch(id);
	await c.release(id, { priority: 3, delay: 1000 });
	assert.strictEqual((await c.peekDelayed()).id, id);
	assert.match(await c.statsJob(id), /\nstate: delayed\n(.*\n)*pri: 3\n/);
	await c.kickJob(id);
	await c.reserveJob(id);
	await c.bury(id, 9);
	assert.strictEqual((await c.peekBuried()).id, id);
	assert.strictEqual(await c.kick(10), 1);
	assert.strictEqual((await c.peekReady()).id, id);
	await c.delete(id);
	await assert.rejects(c.delete(id), /NOT_FOUND/);
}

async function many(producer, consumer) {
	const bodies = Array.from({ length: 200 }, (_, n) => String(n % 10).repeat(1 + n * 20));
	const ids = await Promise.all(bodies.map((b) => producer.put(b)));
	for (const [n, id] of ids.entries()) {
		const job = await consumer.reserve();
		assert.deepStrictEqual([job.id, job.payload.toString()], [id, bodies[n]]);
		await consumer.delete(id);
	}
	const later = consumer.reserve();
	const id = await producer.put({ later: true }, { delay: 1 });
	assert.strictEqual((await later).id, id);
	await consumer.delete(id);
	await assert.rejects(consumer.reserveWithTimeout(0), /TIMED_OUT/);
}

async function main() {
	const to = { host: '127.0.0.1', port: Number(process.argv[2]) };
	const c = new Jackd();
	const d = new Jackd();
	await c.connect(to);
	await d.connect(to);
	await c.use('jack');
	for (const one of [c, d]) {
		assert.strictEqual(await one.watch('jack'), 2);
		assert.strictEqual(await one.ignore('default'), 1);
	}
	assert.strictEqual(await c.listTubesWatched(), '---\n- jack\n');
	await states(c);
	await many(c, d);
	assert.match(await c.stats(), /\ncurrent-jobs-ready: 0\n/);
	await c.quit();
	await d.quit();
}

main().catch((error) => {
	console.error(error);
	process.exit(1);
});

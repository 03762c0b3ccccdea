// SPDX-License-Identifier: GPL-2.0
//
// node-beanstalk.js PORT: a conversation by the npm package node-beanstalk.

const assert = require('assert');
const { Client, Pool } = require('node-beanstalk');

const to = { host: '127.0.0.1', port: Number(process.argv[2]) };

async function states(c) {
	const put = await c.put({ some: ['thing', 1] }, 60, 7, 0);
	assert.strictEqual(put.state, 'ready');
	const job = await c.reserveWithTimeout(5);
	assert.deepStrictEqual(job, { id: put.id, payload: { some: ['thing', 1] } });
	assert.strictEqual(await c.touch(put.id), true);
	assert.strictEqual(await c.release(put.id, 3, 1000), 'delayed');
	assert.strictEqual((await c.peekDelayed()).id, put.id);
	const stats = await c.statsJob(put.id);
	assert.deepStrictEqual([stats.state, stats.pri, stats.delay, stats.reserves, stats.releases],
		['delayed', 3, 1000, 1, 1]);
	assert.strictEqual(await c.kickJob(put.id), true);
	assert.strictEqual((await c.reserveJob(put.id)).id, put.id);
	assert.strictEqual(await c.bury(put.id, 9), true);
	assert.strictEqual(await c.kick(10), 1);
	assert.strictEqual(await c.delete(put.id), true);
	assert.strictEqual(await c.delete(put.id), false);
	assert.strictEqual(await c.reserveWithTimeout(0), null);
}

async function lists(c) {
	assert.deepStrictEqual((await c.listTubes()).sort(), ['default', 'node']);
	assert.strictEqual((await c.statsTube('node'))['total-jobs'], 1);
	assert.strictEqual(await c.statsTube('nowhere'), null);
	assert.strictEqual(await c.pauseTube('node', 0), true);
	assert.strictEqual((await c.stats())['cmd-pause-tube'], 1);
}

async function pool() {
	const p = new Pool({ capacity: 5, clientOptions: to });
	const work = Array.from({ length: 50 }, async (_, n) => {
		const c = await p.connect();
		try {
			await c.use('pool');
			return (await c.put(n, 60, 0, 0)).id;
		} finally {
			await c.releaseClient();
		}
	});
	const ids = await Promise.all(work);
	assert.strictEqual(new Set(ids).size, 50);
	await p.disconnect();
}

async function main() {
	const c = new Client(to);
	await c.connect();
	await c.use('node');
	await c.watch('node');
	await c.ignore('default');
	await states(c);
	await lists(c);
	await pool();
	await c.disconnect();
}

main().catch((error) => {
	console.error(error);
	process.exit(1);
});

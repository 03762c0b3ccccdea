// SPDX-License-Identifier: GPL-2.0
//
// croner.mjs CRONER <LINES: for each line of zone, expression and time, with tabs between, when
// npm's croner says that it fires next; 0 if never.
import { readFileSync } from 'node:fs';

const { Cron } = await import(process.argv[2]);
const lines = readFileSync(0, 'utf8').split('\n').filter((line) => line);
for (const line of lines) {
	const [zone, text, time] = line.split('\t');
	try {
		const next = new Cron(text, { timezone: zone, paused: true }).nextRun(new Date(time * 1000));
		console.log(next ? next.getTime() / 1000 : 0);
	} catch (error) {
		console.log('wrong', error.message);
	}
}

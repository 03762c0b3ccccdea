// SPDX-License-Identifier: GPL-2.0
//
// cron-next.cjs PACKAGE LINE ZONE FROM COUNT: what PACKAGE of npm says of the next times of LINE.
const [name, line, timezone, from, count] = process.argv.slice(2);
const start = new Date(from), n = +count;
const RealDate = Date;

// What only knows the present gets FROM for it.
function pretend() {
	globalThis.Date = class extends RealDate {
		constructor(...given) { super(...(given.length ? given : [+start])); }
		static now() { return +start; }
	};
}

const ways = {
	cron() {
		const { CronTime } = require("cron"), time = new CronTime(line, timezone), all = [];

		for (let at = start; all.length < n; all.push(at))
			at = time.getNextDateFrom(at, timezone).toJSDate();
		return all;
	},
	"cron-parser"() {
		const { CronExpressionParser } = require("cron-parser");
		const next = CronExpressionParser.parse(line, { tz: timezone, currentDate: start });

		return Array.from({ length: n }, () => next.next().toDate());
	},
	"node-cron"() {
		pretend();
		return require("node-cron").createTask(line, () => {}, { timezone }).getNextRuns(n);
	},
	cronosjs() {
		const { CronosExpression } = require("cronosjs");

		return CronosExpression.parse(line, { timezone }).nextNDates(start, n);
	},
	"@datasert/cronjs-matcher"() {
		const { getFutureMatches } = require("@datasert/cronjs-matcher");

		return getFutureMatches(line, { startAt: start.toISOString(), matchCount: n, timezone });
	},
	croner() {
		const { Cron } = require("croner");

		return new Cron(line, { timezone, paused: true }).nextRuns(n, start);
	},
	"cron-schedule": () => require("cron-schedule").parseCronExpression(line).getNextDates(n, start),
	"@breejs/later"() {
		const later = require("@breejs/later");

		return later.schedule(later.parse.cron(line)).next(n, start);
	},
};

const format = new Intl.DateTimeFormat("en-GB", { timeZone: timezone, day: "2-digit",
	month: "2-digit", hour: "2-digit", minute: "2-digit", timeZoneName: "shortOffset" });
console.log(ways[name]().map((at) => {
	const part = {};

	for (const { type, value } of format.formatToParts(new RealDate(at)))
		part[type] = value;
	return `${part.month}-${part.day} ${part.hour}:${part.minute}${part.timeZoneName.slice(3)}`;
}).join(", "));
process.exit();

// SPDX-License-Identifier: GPL-2.0
//
// rrule-next.cjs PACKAGE DTSTART RRULE COUNT: the first dates of a rule by PACKAGE of npm.
const [name, start, rule, count] = process.argv.slice(2);
const text = `DTSTART:${start}\nRRULE:${rule}`, n = +count;

// 20260101T090000Z, or a Date, as 2026-01-01T09:00
const show = (at) => (at instanceof Date ? at.toISOString() : String(at)).slice(0, 16)
	.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d*Z?/, "$1-$2-$3T$4:$5");

const ways = {
	rrule: () => require("rrule").rrulestr(text).all((at, i) => i < n),
	"rrule-rust": () => require("rrule-rust").RRuleSet.fromString(text).all(n),
	"rrule-temporal"() {
		const { RRuleTemporal } = require("rrule-temporal");

		return new RRuleTemporal({ rruleString: text }).all((at, i) => i < n);
	},
	"ical.js"() {
		const ical = require("ical.js").default ?? require("ical.js"), all = [];
		const from = start.replace(/(....)(..)(..)T(..)(..)(..)/, "$1-$2-$3T$4:$5:$6");
		const next = ical.Recur.fromString(rule).iterator(ical.Time.fromString(from));

		for (let at; all.length < n && (at = next.next());)
			all.push(String(at));
		return all;
	},
};

console.log(ways[name]().slice(0, n).map(show).join(" ") || "none");

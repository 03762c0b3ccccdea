// SPDX-License-Identifier: GPL-2.0
/*
 * ical.mjs MODULES <TEXTS: for each .ics file, a string of JSON in a line, the first dates of its
 * event by ical.js, as an array
 */
import readline from 'readline';

const {default: ICAL} = await import(process.argv[2] + '/ical.js/dist/ical.js');

for await (const line of readline.createInterface({input: process.stdin})) {
	const calendar = new ICAL.Component(ICAL.parse(JSON.parse(line)));
	const event = new ICAL.Event(calendar.getFirstSubcomponent('vevent'));
	const dates = event.iterator(), found = [];

	for (let date = dates.next(); date && found.length < 20 && date.year < 2042; date = dates.next())
		found.push(date.toString());
	console.log(JSON.stringify(found));
}

// SPDX-License-Identifier: GPL-2.0
//
// Shows what v1/status says, anew every two seconds while somebody looks. Whatever has a name
// was named by others: it becomes text, never markup. Ages are by the server's clock alone.
'use strict';

(() => {
	const EVERY = 2000, PATIENCE = 9000, OLD = 15000;
	const $ = id => document.getElementById(id);
	const nodes = new Map();	// of this database that were seen, also those that have gone
	let last = null, awaySince = null, timer = null, asking = false;

	const number = n => n.toLocaleString();
	const clock = ms => new Date(ms).toLocaleTimeString();

	const UNITS = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];

	// The first two units that count: 3 h 20 min
	const span = seconds => {
		let left = Math.max(0, Math.round(seconds));
		const words = [];

		for (const [size, unit] of UNITS) {
			if (left >= size && words.length < 2)
				words.push(`${Math.floor(left / size)} ${unit}`);
			left %= size;
		}
		return words.join(' ') || '0 s';
	};

	const short = seconds => seconds < 1 ? `${+(seconds * 1000).toPrecision(3)} ms` : span(seconds);

	const distance = seconds => {
		if (!seconds)
			return 'now';
		return seconds > 0 ? `in ${span(seconds)}` : `${span(-seconds)} ago`;
	};

	// A cell that has a time: in the zone of who looks, with its distance from the server's now
	const time = (iso, now) => {
		if (!iso)
			return 'never';
		const at = Date.parse(iso), seconds = Math.round((at - now) / 1000);
		const far = Math.abs(seconds) > 86400 ? new Date(at).toLocaleString() : clock(at);

		return {
			text: `${far} (${distance(seconds)})`,
			title: iso,
		};
	};

	const set = (element, text) => {
		if (element.textContent !== text)
			element.textContent = text;
	};

	const set_cell = (cell, value) => {
		const what = typeof value === 'object' ? value : { text: String(value) };

		if (what.meter !== undefined) {
			const meter = cell.firstElementChild ||
				cell.appendChild(document.createElement('meter'));

			meter.max = what.most || 1;
			meter.value = what.meter;
			meter.title = what.title;
			return;
		}
		set(cell, what.text);
		cell.title = what.title || '';
		cell.className = what.wrong ? 'wrong' : '';
	};

	// Cells are filled, not replaced, so that a selected text stays selected. The first is a header.
	const fill = (body, rows) => {
		while (body.rows.length > rows.length)
			body.deleteRow(-1);
		rows.forEach((cells, i) => {
			const row = body.rows[i] || body.insertRow();

			cells.forEach((value, j) => {
				let cell = row.cells[j];

				if (!cell) {
					cell = document.createElement(j ? 'td' : 'th');
					if (!j)
						cell.scope = 'row';
					row.append(cell);
				}
				set_cell(cell, value);
			});
		});
	};

	const rows = (id, all) => fill($(id).tBodies[0], all);

	const how_many = (list, which) => list.all > list.shown.length ?
		`${number(list.shown.length)} of ${number(list.all)}: ${which}` : number(list.all);

	const note = (id, words) => set($(`${id}-note`), words.filter(Boolean).join('; '));

	// From when is the database's answer? It is pale where that is long ago, or none came since.
	const age = (id, list, { server, now }, what) => {
		const shared = server.store === 'database';
		const old = shared && (list.failed || now - list.at > OLD);

		$(id).classList.toggle('old', old);
		if (!shared && !list.failed)
			return [];
		return [list.failed && `the ${shared ? 'database' : 'store'} does not tell ${what}`,
			list.at ? `${what} as of ${clock(list.at)}` : `${what} not known yet`];
	};

	const show_server = ({ server }) => {
		const pairs = [
			['Version', server.version], ['Runs for', span(server.uptime)],
			['Store', server.store === 'database' ? 'a database that servers share' : 'a folder'],
			['New jobs', server.draining ? 'refused: it drains' : 'taken'],
			['Clients', `${number(server.connections)}, ${number(server.workers)} of them workers`],
			['Put', number(server.puts)], ['Timed out', number(server.timeouts)],
		];

		if (server.site)
			pairs.push(['Site', server.site]);
		if (server.waits > 1)
			pairs.push(['The store does not answer', `for ${span(server.waits)}`]);
		set($('name'), server.name);
		document.title = `twheeld ${server.name}`;
		$('server').replaceChildren(...pairs.map(([name, value]) => {
			const group = document.createElement('div');

			group.append(document.createElement('dt'), document.createElement('dd'));
			group.firstChild.textContent = name;
			group.lastChild.textContent = value;
			return group;
		}));
	};

	// A schedule that is newer than the store's answer has no known run.
	const last_run = (one, now) => {
		if (one.last)
			return time(one.last.time, now);
		return one.last === undefined ? 'not known yet' : '';
	};

	const show_schedules = all => {
		const { schedules, now } = all, wrong = ['failed', 'buried', 'missed'];

		note('schedules', [
			how_many(schedules, 'those that come next'),
			schedules.paused && `${number(schedules.paused)} paused`,
			schedules.wrong && `${number(schedules.wrong)} lines of tabs are wrong`,
			...age('schedules', schedules, all, 'last runs'),
		]);
		rows('schedules', schedules.shown.map(one => [
			one.name, one.when, one.zone, one.tube,
			last_run(one, now),
			one.last ? { text: one.last.result, wrong: wrong.includes(one.last.result) } : '',
			one.paused ? 'paused' : time(one.next, now),
		]));
	};

	const show_tubes = all => {
		const { tubes, server } = all;
		const shown = tubes.shown.sort((a, b) => a.name < b.name ? -1 : 1);

		note('tubes', [
			tubes.at && how_many(tubes, 'those with most jobs'),
			...age('tubes', tubes, all, 'jobs'),
			server.store === 'database' &&
				'put and deleted: by clients of this server, while it has the tube in use',
		]);
		rows('tubes', shown.map(one => [
			one.paused ? { text: `${one.name} (paused)`, wrong: true } : one.name,
			number(one.ready), number(one.reserved), number(one.delayed),
			{ text: number(one.buried), wrong: one.buried > 0 },
			number(one.waiting), number(one.puts), number(one.deletes),
		]));
	};

	// A server that was killed is in the list for the lease, and then only this page knows of it.
	const show_nodes = all => {
		const { nodes: listed, server } = all;

		$('nodes-all').hidden = server.store !== 'database';
		note('nodes', age('nodes', listed, all, 'servers'));
		// A server that has just begun may not know yet.
		if (!listed.at)
			return;
		const here = new Set(listed.shown.map(one => one.session));

		// A server that is not shown has gone only where the list has all of them.
		if (listed.all > listed.shown.length)
			nodes.clear();
		for (const one of listed.shown)
			nodes.set(one.session, { ...one, seen: listed.at - one.silent * 1000 });
		for (const session of nodes.keys()) {
			if (nodes.size > 2 * Math.max(listed.shown.length, 10) && !here.has(session))
				nodes.delete(session);
		}
		rows('nodes', [...nodes.values()].map(one => {
			const silent = (listed.at - one.seen) / 1000, gone = !here.has(one.session);

			return [
				one.self ? `${one.name} (this one)` : one.name, one.site, String(one.session),
				{ text: `${span(silent)} ago${gone ? ': gone' : ''}`, wrong: gone || silent > 3 },
				gone ? '' : number(one.reserved),
			];
		}));
	};

	const sum = counts => counts.reduce((a, b) => a + b, 0);

	// The upper bound of the bucket in which the quantile lies
	const quantile = (counts, bounds, share) => {
		const all = sum(counts);
		let so_far = 0;

		if (!all)
			return '';
		for (let i = 0; i < bounds.length; i++) {
			so_far += counts[i];
			if (so_far >= share * all)
				return `≤ ${short(bounds[i])}`;
		}
		return `> ${short(bounds[bounds.length - 1])}`;
	};

	const show_lateness = ({ lateness }) => {
		const kinds = [lateness.jobs, lateness.schedules, lateness.commits];
		const { bounds } = lateness;
		const used = lateness.jobs.map((_, i) => kinds.some(counts => counts[i]));
		const from = used.indexOf(true), to = used.lastIndexOf(true);
		const cells = i => kinds.flatMap(counts => [number(counts[i]), {
			meter: counts[i], most: Math.max(...counts), title: `${counts[i]} of ${sum(counts)}`,
		}]);
		const row = (name, each) => [name, ...kinds.flatMap(counts => [each(counts), ''])];

		rows('lateness', from < 0 ? [] : used.slice(from, to + 1).map((_, i) => [
			from + i < bounds.length ? short(bounds[from + i]) : 'more', ...cells(from + i),
		]));
		fill($('lateness').tFoot, [
			row('half of all', counts => quantile(counts, bounds, 0.5)),
			row('p99', counts => quantile(counts, bounds, 0.99)),
			row('all', counts => number(sum(counts))),
		]);
	};

	const show = all => {
		for (const part of [show_server, show_schedules, show_tubes, show_nodes, show_lateness])
			part(all);
	};

	const say_away = why => {
		awaySince = awaySince || Date.now();
		set($('away'), `The server does not answer since ${clock(awaySince)} (${why}).` +
			(last ? ` What stands below is of ${clock(last.now)}.` : ''));
		document.body.classList.add('away');
	};

	const say_there = () => {
		awaySince = null;
		set($('away'), '');
		document.body.classList.remove('away');
	};

	const ask = async () => {
		asking = true;
		try {
			const answer = await fetch('v1/status', { signal: AbortSignal.timeout(PATIENCE) });

			if (!answer.ok)
				throw new Error(`status ${answer.status}`);
			last = await answer.json();
			show(last);
			say_there();
		} catch (error) {
			say_away(error.message);
		}
		asking = false;
		ask_later();
	};

	// A hidden page asks for nothing: nobody looks at it.
	const ask_later = () => {
		clearTimeout(timer);
		if (!document.hidden)
			timer = setTimeout(ask, EVERY);
	};

	document.addEventListener('visibilitychange', () => {
		if (!document.hidden && !asking) {
			clearTimeout(timer);
			ask();
		}
	});
	ask();
})();

// SPDX-License-Identifier: GPL-2.0
//
// The server makes the pages. This says times by the clock of who looks, too, has what is shown made
// anew every few seconds while somebody looks, and lets a form be sent once.
'use strict';

(() => {
	const EVERY = 2000, PATIENCE = 9000;
	const away = document.getElementById('away');
	let awaySince = null, timer = null, asking = false;

	// "2027-01-31 07:00:00", as the server writes it
	const here = at => {
		const two = number => String(number).padStart(2, '0');

		return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ` +
			`${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
	};

	const say_here = root => {
		for (const time of root.querySelectorAll('time')) {
			const text = here(new Date(time.dateTime));

			if (text === time.textContent)
				continue;
			const small = document.createElement('small');
			const [day, clock] = text.split(' ');

			small.className = 'here';
			small.textContent = (time.textContent.startsWith(day) ? '' : `${day} `) +
				`${clock.slice(0, 5)} here`;
			(time.nextElementSibling || time).after(' ', small);
		}
	};

	// What is the same stays, so that what is marked stays marked; and so does what has the focus.
	const take = text => {
		const told = new DOMParser().parseFromString(text, 'text/html');

		say_here(told);
		for (const old of document.querySelectorAll('[data-live]')) {
			const fresh = told.getElementById(old.id);

			if (fresh && fresh.innerHTML !== old.innerHTML &&
			    !old.contains(document.activeElement))
				old.replaceWith(document.importNode(fresh, true));
		}
	};

	const say_away = why => {
		awaySince = awaySince || new Date();
		away.textContent = `The server does not answer since ${here(awaySince)} (${why}).` +
			' What stands below is of before that.';
		document.body.classList.add('away');
	};

	const ask = async () => {
		asking = true;
		try {
			const answer = await fetch(location.href, { signal: AbortSignal.timeout(PATIENCE) });

			if (!answer.ok)
				throw new Error(`status ${answer.status}`);
			take(await answer.text());
			awaySince = null;
			away.textContent = '';
			document.body.classList.remove('away');
		} catch (error) {
			say_away(error.message);
		}
		asking = false;
		ask_later();
	};

	// A hidden page asks for nothing: nobody looks at it.
	const ask_later = () => {
		clearTimeout(timer);
		if (!document.hidden && document.querySelector('[data-live]'))
			timer = setTimeout(ask, EVERY);
	};

	// A second click while the first is under way would do it twice.
	const allow = (root, may) => {
		for (const button of root.querySelectorAll('button'))
			button.disabled = !may;
	};

	document.addEventListener('submit', event => {
		if (event.target.method === 'post')
			allow(event.target, false);
	});
	window.addEventListener('pageshow', () => allow(document, true));
	document.addEventListener('visibilitychange', () => {
		if (!document.hidden && !asking)
			ask_later();
	});
	say_here(document);
	ask_later();
})();

// SPDX-License-Identifier: GPL-2.0
/*
 * The first page: what needs somebody, schedules, tubes; and what page_server.c has of servers.
 *
 * Each time, all schedules are looked at, in turns between which clients are served; those that are
 * shown are kept in a heap. So it takes the same memory for any number of them.
 */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cron/schedule.h"
#include "cron/tabs_reader.h"
#include "jobs/settings.h"
#include "web/how.h"
#include "web/html.h"
#include "web/json.h"
#include "web/page.h"
#include "web/status.h"
#include "when/calendar.h"
#include "when/zone.h"

/* Clients have their turn after so long. */
#define TURN (MILLISECOND / 4)
#define ROWS 50
#define PAGES_MOST 200
#define NEEDS_MOST 30
enum order { BY_NAME, BY_NEXT, BY_LAST, BY_RESULT, ORDERS };

static const char *const order_words[ORDERS] = { "name", "next", "last", "result" };

/* The first so many of those that were found; each is held. The last of them is at the top. */
struct picked {
	size_t most, count;
	enum order order;
	struct schedule **heap;
};

struct view {
	struct ask *ask;
	struct event *turn;
	struct schedule *next;		/* held */
	char *words;			/* that a name, a tube or a line has; or NULL */
	int how;			/* or HOWS: any */
	int64_t page, now;
	size_t count[HOWS], found;
	struct picked needs, shown;
};

static struct event_base *loop;

/** page_start - be ready for those who look */
void page_start(struct event_base *base)
{
	loop = base;
}

/* Schedules */

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* What is the same for others comes by name, so that rows keep their places. */
static int compare(const struct schedule *a, const struct schedule *b, enum order order)
{
	int64_t now = alarm_wall();
	int by = 0;

	if (!a->definition || !b->definition)
		return !a->definition - !b->definition;
	if (order == BY_NEXT)
		by = compare_numbers(how_next(a), how_next(b));
	else if (order == BY_LAST)
		by = compare_numbers(b->last.time, a->last.time);
	else if (order == BY_RESULT)
		by = how_is(a, now) - how_is(b, now);
	return by ? by : strcmp(a->name, b->name);
}

static bool comes_after(const struct picked *picked, size_t a, size_t b)
{
	return compare(picked->heap[a], picked->heap[b], picked->order) > 0;
}

static void swap(struct picked *picked, size_t a, size_t b)
{
	struct schedule *one = picked->heap[a];

	picked->heap[a] = picked->heap[b];
	picked->heap[b] = one;
}

static void sink(struct picked *picked, size_t at)
{
	for (size_t child; (child = 2 * at + 1) < picked->count; at = child) {
		if (child + 1 < picked->count && comes_after(picked, child + 1, child))
			child++;
		if (!comes_after(picked, child, at))
			break;
		swap(picked, child, at);
	}
}

static void pick(struct picked *picked, struct schedule *schedule)
{
	if (picked->count == picked->most) {
		if (compare(schedule, picked->heap[0], picked->order) >= 0)
			return;
		schedule_release(picked->heap[0]);
		picked->heap[0] = schedule_hold(schedule);
		sink(picked, 0);
		return;
	}
	if (!(picked->count & (picked->count - 1)))
		picked->heap = must(realloc(picked->heap, 2 * (picked->count + 1) *
					    sizeof(*picked->heap)));
	picked->heap[picked->count] = schedule_hold(schedule);
	for (size_t at = picked->count++; at && comes_after(picked, at, (at - 1) / 2);
	     at = (at - 1) / 2)
		swap(picked, at, (at - 1) / 2);
}

/* The last of those that are left, which is still held */
static struct schedule *last_picked(struct picked *picked)
{
	struct schedule *last = picked->heap[0];

	picked->heap[0] = picked->heap[--picked->count];
	sink(picked, 0);
	return last;
}

static void forget_picked(struct picked *picked)
{
	while (picked->count)
		schedule_release(picked->heap[--picked->count]);
	free(picked->heap);
	picked->heap = NULL;
}

static bool fits(const struct view *view, const struct schedule *schedule, enum how how)
{
	const char *words = view->words;

	return (view->how == HOWS || (int)how == view->how) &&
		(!words || strcasestr(schedule->name, words) ||
		 strcasestr(schedule->definition->tube, words) ||
		 strcasestr(schedule->definition->when, words));
}

static void look_at(struct view *view, struct schedule *schedule)
{
	enum how how = how_is(schedule, view->now);

	view->count[how]++;
	if (how != HOW_FINE)
		pick(&view->needs, schedule);
	if (!fits(view, schedule, how))
		return;
	view->found++;
	pick(&view->shown, schedule);
}

/* Rows */

static const struct zone *zone_of(const struct schedule *schedule)
{
	const char *zone = schedule->definition ? schedule->definition->zone : "";

	return must(zone_get(*zone ? zone : NULL));
}

static void add_time(struct evbuffer *out, const char *label, int64_t ns,
		     const struct schedule *schedule, int64_t now)
{
	const struct zone *zone = zone_of(schedule);

	html_add(out, "<td data-of=\"%r\" class=\"time\">", label);
	html_time(out, ns, zone, now);
	html_add(out, "</td>");
	zone_put((struct zone *)zone);
}

static void add_name(struct evbuffer *out, const struct schedule *schedule)
{
	html_add(out, "<tr><th scope=\"row\"><a href=\"%/schedules/%u\">%s</a></th>",
		 schedule->name, schedule->name);
}

/** page_add_tube - the tube of a schedule as a link; those of ON=each-worker are among all */
void page_add_tube(struct evbuffer *out, const struct definition *definition)
{
	html_add(out, definition->each_worker ? "<a href=\"%/#tubes-all\">%s</a>" :
		 "<a href=\"%/tubes/%u\">%s</a>", definition->tube, definition->tube);
}

static void add_result(struct evbuffer *out, const struct schedule *schedule, int64_t now)
{
	const struct run_row *last = &schedule->last;
	enum how how = how_is(schedule, now);
	const char *word = last->time ? json_of_result(last) : last->schedule ? "none yet" : "";
	bool is_open = last->time && last->result == RUN_OPEN;

	html_add(out, "<td data-of=\"Result\"%r>%s%r</td>",
		 how < HOW_PAUSED ? " class=\"wrong\"" : "", word,
		 how == HOW_LATE ? ", late" : how > HOW_LATE || !is_open ? "" :
		 how == HOW_FAILED ? ", before it failed" : ", before it missed");
}

static void add_schedule(struct evbuffer *out, const struct schedule *schedule, int64_t now)
{
	const struct definition *definition = schedule->definition;

	add_name(out, schedule);
	html_add(out, "<td data-of=\"When\"><code>%s</code> <small>%s</small></td>",
		 definition->when, definition->zone);
	if (schedule_is_paused(schedule))
		html_add(out, "<td data-of=\"Next\">paused</td>");
	else
		add_time(out, "Next", how_next(schedule), schedule, now);
	if (schedule->last.time)
		add_time(out, "Last", schedule->last.time, schedule, now);
	else
		html_add(out, "<td data-of=\"Last\">%r</td>", schedule->last.schedule ? "" :
			 "not known yet");
	add_result(out, schedule, now);
	html_add(out, "<td data-of=\"Tube\">");
	page_add_tube(out, definition);
	html_add(out, "</td></tr>\n");
}

/* What needs somebody */

static void add_need(struct evbuffer *out, const struct schedule *schedule, int64_t now)
{
	enum how how = how_is(schedule, now);

	add_name(out, schedule);
	html_add(out, "<td data-of=\"How\" class=\"%r\">%s</td>", how < HOW_PAUSED ? "wrong" : "",
		 how == HOW_FAILED && schedule->ended == RUN_BURIED ? "failed: its job is buried" :
		 how == HOW_FAILED ? "failed" : how == HOW_MISSED ? "missed: no job was made" :
		 how == HOW_PAUSED && schedule->definition->paused ? "paused by its line" :
		 how == HOW_PAUSED ? "paused" :
		 schedule->open_time ? "open for long" : "not made in time");
	if (how == HOW_PAUSED)
		html_add(out, "<td data-of=\"Time\"></td>");
	else
		add_time(out, "Time", how < HOW_LATE ? schedule->ended_time :
			 schedule->open_time ? schedule->open_time : how_next(schedule), schedule,
			 now);
	html_add(out, "<td data-of=\"Line\">%s:%d</td></tr>\n", schedule->file,
		 (int64_t)schedule->definition->line);
}

/* Gives how many jobs of a tube need somebody. */
static int64_t letters_of(const json_t *tube)
{
	int64_t letters = json_number(tube, "buried");

	if (settings_is_dead_letter(json_text(tube, "name")))
		letters += json_number(tube, "ready") + json_number(tube, "delayed");
	return letters;
}

static void add_letters(struct evbuffer *out)
{
	const json_t *tube;
	size_t i;

	json_array_foreach(page_shown_of("tubes"), i, tube) {
		const char *name = json_text(tube, "name");

		if (letters_of(tube))
			html_add(out, "<tr><th scope=\"row\"><a href=\"%/tubes/%u\">%s</a></th>"
				 "<td data-of=\"How\" class=\"wrong\">%d %r</td><td data-of=\"Time\">"
				 "</td><td data-of=\"Line\"></td></tr>\n", name, name,
				 letters_of(tube), settings_is_dead_letter(name) ? "dead letters" :
				 "buried jobs");
	}
}

static void add_wrong(struct evbuffer *out)
{
	const char *line;

	if (tabs_reader_wrong())
		html_add(out, "<h3>Lines of tabs that are wrong: %d</h3>\n<ul id=\"wrong\">\n",
			 (int64_t)tabs_reader_wrong());
	for (size_t i = 0; (line = tabs_reader_wrong_line(i)); i++)
		html_add(out, "<li class=\"wrong\">%s</li>\n", line);
	if (tabs_reader_wrong())
		html_add(out, "</ul>\n");
	if (*schedule_differs())
		html_add(out, "<p class=\"wrong\">Servers with other tabs: %s</p>\n",
			 schedule_differs());
}

static void add_needs(struct evbuffer *out, struct view *view)
{
	static const char *const heads[] = { "Name", "How", "Time", "Line" };
	struct picked *needs = &view->needs;
	size_t count = needs->count, all = view->count[HOW_FAILED] + view->count[HOW_MISSED] +
		view->count[HOW_LATE] + view->count[HOW_PAUSED];
	struct schedule *last_first[NEEDS_MOST];

	html_add(out, "<section data-live aria-labelledby=\"needs-title\" id=\"needs-all\">"
		 "<h2 id=\"needs-title\">What needs somebody</h2>\n<p class=\"note\">");
	for (int how = 0; how < HOW_FINE; how++)
		html_add(out, "%r<a href=\"?how=%r#schedules-all\">%d %r</a>", how ? ", " : "",
			 how_words[how], (int64_t)view->count[how], how_words[how]);
	html_add(out, "</p>\n");
	html_table(out, "needs", heads, ARRAY_SIZE(heads));
	for (size_t i = count; i--;)
		last_first[i] = last_picked(needs);
	for (size_t i = 0; i < count; i++) {
		if (last_first[i]->definition)
			add_need(out, last_first[i], view->now);
		schedule_release(last_first[i]);
	}
	add_letters(out);
	html_end_table(out);
	if (count < all)
		html_add(out, "<p class=\"note\">These are the first %d of %d.</p>\n",
			 (int64_t)count, (int64_t)all);
	add_wrong(out);
	html_add(out, "</section>\n");
}

/* All schedules */

static void add_link(struct evbuffer *out, const struct view *view, int64_t page, const char *text)
{
	html_add(out, " <a href=\"?q=%u&amp;how=%r&amp;sort=%r&amp;page=%d#schedules-all\">%r</a>",
		 view->words ? view->words : "", view->how == HOWS ? "" : how_words[view->how],
		 order_words[view->shown.order], page, text);
}

static void add_choice(struct evbuffer *out, const char *name, const char *label,
		       const char *const *words, size_t count, size_t chosen)
{
	html_add(out, "<label>%r <select name=\"%r\">", label, name);
	for (size_t i = 0; i < count; i++)
		html_add(out, "<option value=\"%r\"%r>%r</option>", words[i],
			 i == chosen ? " selected" : "", *words[i] ? words[i] : "all");
	html_add(out, "</select></label>\n");
}

static void add_form(struct evbuffer *out, const struct view *view)
{
	static const char *const hows[] = { "", "failed", "missed", "late", "paused", "fine" };

	html_add(out, "<form role=\"search\" action=\"%/#schedules-all\">"
		 "<label>Search <input type=\"search\" name=\"q\" value=\"%s\"></label>\n",
		 view->words ? view->words : "");
	add_choice(out, "how", "Show", hows, ARRAY_SIZE(hows), view->how == HOWS ? 0 :
		   view->how + 1);
	add_choice(out, "sort", "Sort by", order_words, ORDERS, view->shown.order);
	html_add(out, "<button>Show</button></form>\n");
}

static void add_schedules(struct evbuffer *out, struct view *view)
{
	static const char *const heads[] = { "Name", "When", "Next", "Last", "Result", "Tube" };
	struct picked *shown = &view->shown;
	size_t before = (view->page - 1) * ROWS;
	size_t count = shown->count > before ? shown->count - before : 0;
	struct schedule *rows[ROWS];

	html_add(out, "<section aria-labelledby=\"schedules-title\" id=\"schedules-all\">"
		 "<h2 id=\"schedules-title\">Schedules</h2>\n");
	add_form(out, view);
	html_add(out, "<div data-live id=\"schedules-live\">"
		 "<p class=\"note\" id=\"schedules-note\">%d to %d of %d. %r</p>\n",
		 (int64_t)(count ? before + 1 : 0), (int64_t)(before + count),
		 (int64_t)view->found, page_age_of("schedules"));
	html_table(out, "schedules", heads, ARRAY_SIZE(heads));
	for (size_t i = count; i--;)
		rows[i] = last_picked(shown);
	for (size_t i = 0; i < count; i++) {
		if (rows[i]->definition)
			add_schedule(out, rows[i], view->now);
		schedule_release(rows[i]);
	}
	html_end_table(out);
	html_add(out, "<nav aria-label=\"Pages of schedules\"><p>");
	if (view->page > 1)
		add_link(out, view, view->page - 1, "before these");
	if (before + count < view->found && view->page < PAGES_MOST)
		add_link(out, view, view->page + 1, "after these");
	html_add(out, "</p></nav></div></section>\n");
}

/* Tubes, as status.c tells them */

static int compare_tubes(const void *a, const void *b)
{
	return strcmp(json_text(*(const json_t *const *)a, "name"),
		      json_text(*(const json_t *const *)b, "name"));
}

static void add_tube(struct evbuffer *out, const json_t *tube)
{
	static const struct {
		const char *name, *label;
	} columns[] = {
		{ "ready", "Ready" }, { "reserved", "Reserved" }, { "delayed", "Delayed" },
		{ "buried", "Buried" }, { "waiting", "Waiting clients" }, { "puts", "Put" },
		{ "deletes", "Deleted" },
	};
	const char *name = json_text(tube, "name");

	html_add(out, "<tr><th scope=\"row\"><a href=\"%/tubes/%u\">%s</a>%r</th>", name, name,
		 json_is_true(json_object_get(tube, "paused")) ? " (paused)" : "");
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		int64_t number = json_number(tube, columns[i].name);

		html_add(out, "<td data-of=\"%r\"%r>%d</td>", columns[i].label,
			 i == 3 && number ? " class=\"wrong\"" : "", number);
	}
	html_add(out, "</tr>\n");
}

static void add_tubes(struct evbuffer *out)
{
	static const char *const heads[] = {
		"Name", "Ready", "Reserved", "Delayed", "Buried", "Waiting clients", "Put",
		"Deleted",
	};
	const json_t *shown = page_shown_of("tubes"), *one;
	size_t count = json_array_size(shown), i;
	const json_t **all = must(calloc(count + 1, sizeof(*all)));

	json_array_foreach(shown, i, one)
		all[i] = one;
	qsort(all, count, sizeof(*all), compare_tubes);
	html_add(out, "<section data-live aria-labelledby=\"tubes-title\" id=\"tubes-all\">"
		 "<h2 id=\"tubes-title\">Tubes</h2>\n<p class=\"note\" id=\"tubes-note\">%d of %d:"
		 " those with buried jobs, and those with most. Put and deleted: by clients of this"
		 " server, while it has the tube in use. %r</p>\n", (int64_t)count,
		 json_number(json_object_get(status_made(), "tubes"), "all"), page_age_of("tubes"));
	html_table(out, "tubes", heads, ARRAY_SIZE(heads));
	for (i = 0; i < count; i++)
		add_tube(out, all[i]);
	html_end_table(out);
	html_add(out, "</section>\n");
	free(all);
}

/* The answer */

static void forget_view(struct view *view)
{
	schedule_release(view->next);
	forget_picked(&view->needs);
	forget_picked(&view->shown);
	event_free(view->turn);
	free(view->words);
}

static void lost(struct ask *ask)
{
	forget_view(ask->more);
	http_end(ask);
}

static void show(struct view *view)
{
	struct ask *ask = view->ask;
	struct evbuffer *out = html_begin(ask, "Schedules and jobs");

	page_add_server(out);
	add_needs(out, view);
	add_schedules(out, view);
	add_tubes(out);
	if (!strcmp(json_text(json_object_get(status_made(), "server"), "store"), "database"))
		page_add_nodes(out);
	page_add_lateness(out);
	forget_view(view);
	html_end(ask, HTTP_OK, out);
}

static void go_on(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval now;
	int64_t until = commit_now() + TURN;
	struct view *view = arg;

	while (view->next) {
		struct schedule *one = view->next;

		if (one->definition)
			look_at(view, one);
		view->next = schedule_hold(one->hash.next);
		schedule_release(one);
		if (commit_now() < until)
			continue;
		event_add(view->turn, &now);
		return;
	}
	show(view);
}

static int chosen(struct ask *ask, const char *name, const char *const *words, int count,
		  int otherwise)
{
	char *said = http_query(ask, name);

	for (int i = 0; said && i < count; i++)
		if (!strcmp(said, words[i]))
			otherwise = i;
	free(said);
	return otherwise;
}

static void known(struct ask *ask)
{
	struct view *view;
	int64_t page = 1;

	if (!http_number(ask, "page", PAGES_MOST, &page))
		return;
	view = zalloc(sizeof(*view));
	free(ask->more);
	ask->more = view;
	ask->go_on = lost;
	view->ask = ask;
	view->turn = must(evtimer_new(loop, go_on, view));
	view->next = schedule_hold(schedule_first());
	view->words = http_query(ask, "q");
	view->now = alarm_wall();
	view->how = chosen(ask, "how", how_words, HOWS, HOWS);
	view->page = page ? page : 1;
	view->needs = (struct picked){ .most = NEEDS_MOST, .order = BY_RESULT };
	view->shown = (struct picked){
		.most = view->page * ROWS, .order = chosen(ask, "sort", order_words, ORDERS, 0),
	};
	go_on(-1, 0, view);
}

/** page_home - the first page */
void page_home(struct ask *ask)
{
	status_wait(ask, known);
}

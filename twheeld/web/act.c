// SPDX-License-Identifier: GPL-2.0
/*
 * What is done by pages: a question first, and then what came of it.
 *
 * The same functions do it as for programs. What they answer becomes a sentence on the page of the
 * schedule or the tube.
 */
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "web/act.h"
#include "web/html.h"
#include "web/json.h"

static const struct act {
	const char *kind, *name;
	const char *label;	/* of the button */
	const char *means, *done;
	const char *fields;	/* markup */
} acts[] = {
	{ "schedules", "pause", "Pause", "It makes no jobs until it is resumed.",
	  "It is paused.", "" },
	{ "schedules", "resume", "Resume", "It makes jobs again. What was due while it was paused"
	  " is left out.", "It is resumed.", "" },
	{ "schedules", "run", "Run now", "Its jobs are made now, beside its times.", "Jobs made",
	  "" },
	{ "schedules", "backfill", "Backfill", "The jobs of times that are over are made, but for"
	  " those that have theirs.", "Jobs made",
	  "<label>From <input name=\"from\" required placeholder=\"2027-01-01T00:00\"></label>\n"
	  "<label>To <input name=\"to\" required placeholder=\"2027-01-02T00:00\"></label>\n" },
	{ "tubes", "kick", "Kick", "So many buried jobs are ready again; if none is buried, delayed"
	  " ones.", "Jobs kicked", "<label>How many <input name=\"count\" type=\"number\" min=\"1\""
	  " value=\"1\" required></label>\n" },
	{ "tubes", "back", "Send back", "Jobs that came here as dead letters go back to the tubes"
	  " from which they came, the oldest first, and have all their tries again.",
	  "Jobs sent back",
	  "<label>How many, or all <input name=\"count\" type=\"number\" min=\"1\"></label>\n"
	  "<label>Milliseconds between two <input name=\"every\" type=\"number\" min=\"0\""
	  " value=\"0\" required></label>\n" },
	{ "jobs", "kick", "Kick", "It is ready again.", "Jobs kicked", "" },
	{ "jobs", "back", "Send back", "It goes back to the tube from which it came as a dead"
	  " letter.", "Jobs sent back", "" },
	{ "jobs", "delete", "Delete", "It is gone for good.", "Jobs deleted", "" },
};

static const struct act *act_find(const char *kind, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(acts); i++)
		if ((!kind || !strcmp(kind, acts[i].kind)) && !strcmp(name, acts[i].name))
			return &acts[i];
	return NULL;
}

/* The act that a path is for: /schedules/NAME/pause */
static const struct act *act_of(struct ask *ask)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(ask->request));

	for (size_t i = 0; i < ARRAY_SIZE(acts); i++) {
		size_t length = strlen(acts[i].kind);

		if (!strncmp(path + 1, acts[i].kind, length) && path[1 + length] == '/' &&
		    !strcmp(strrchr(path, '/') + 1, acts[i].name))
			return &acts[i];
	}
	return NULL;
}

/* Who may operate a tube alone can only kick there, as a dead letter goes to any tube. */
static bool may(const struct ask *ask, const struct act *act)
{
	bool of_tube = !strcmp(act->kind, "tubes") && !strcmp(act->name, "kick");

	return ask->operates && (of_tube || !ask->some_tubes);
}

/** act_may - may who asks do what that path is for? */
bool act_may(struct ask *ask)
{
	return may(ask, act_of(ask));
}

/** act_link - lead to the question, if who looks may do that; @tube: of a job, or NULL */
void act_link(struct ask *ask, struct evbuffer *out, const char *kind, const char *name,
	      const char *act, const char *tube)
{
	if (!may(ask, act_find(kind, act)))
		return;
	html_add(out, "<a class=\"act\" href=\"%/%r/%u/%r", kind, name, act);
	if (tube)
		html_add(out, "?tube=%u", tube);
	html_add(out, "\">%r</a>\n", act_find(kind, act)->label);
}

/** act_ask - ask whether it is meant */
void act_ask(struct ask *ask)
{
	const struct act *act = act_of(ask);
	bool job = !strcmp(act->kind, "jobs");
	char *title, *tube = job ? http_query(ask, "tube") : NULL;
	struct evbuffer *out;

	if (asprintf(&title, "%s: %s%s?", act->label, job ? "job " : "", ask->name) < 0)
		must(NULL);
	out = html_begin(ask, title);
	html_add(out, "<p>%r</p>\n<form method=\"post\">"
		 "<input type=\"hidden\" name=\"form\" value=\"%s\">", act->means, ask->form_token);
	if (tube)
		html_add(out, "<input type=\"hidden\" name=\"tube\" value=\"%s\">", tube);
	html_add(out, "%r<button>%r</button> ", act->fields, act->label);
	if (!job || tube)
		html_add(out, "<a href=\"%/%r/%u\">No</a>", job ? "tubes" : act->kind,
			 job ? tube : ask->name);
	html_add(out, "</form>\n");
	html_end(ask, HTTP_OK, out);
	free(title);
	free(tube);
}

/** act_log - say in the log who does it, also if he does not wait for what comes of it */
void act_log(struct ask *ask)
{
	char *path = must(strdup(evhttp_uri_get_path(evhttp_request_get_evhttp_uri(ask->request))));

	for (char *at = path; *at; at++)
		if (*at <= ' ' || *at > '~')
			*at = '?';
	inform("web: %s, by %s", path, ask->who);
	free(path);
}

/** act_done - it was done: lead to the page that says so */
void act_done(struct ask *ask, const json_t *json)
{
	const struct act *act = act_of(ask);
	char *tube = http_query(ask, "tube"), *to, *path;
	const json_t *made = json_object_get(json, "made");
	bool job = !strcmp(act->kind, "jobs");

	to = must(evhttp_uriencode(job ? tube ? tube : "default" : ask->name, -1, 0));
	if (asprintf(&path, "../../%s/%s?done=%s&count=%lld", job ? "tubes" : act->kind, to,
		     act->name, (long long)(made ? json_integer_value(made) :
				 json_number(json, "count"))) < 0)
		must(NULL);
	http_redirect(ask, path);
	free(path);
	free(to);
	free(tube);
}

/** act_say - say what was done, on the page to which that led */
void act_say(struct ask *ask, struct evbuffer *out)
{
	char *done = http_query(ask, "done"), *count = http_query(ask, "count");
	const struct act *act = done ? act_find(NULL, done) : NULL;

	if (act && count && *count && !count[strspn(count, "0123456789")])
		html_add(out, "<p role=\"status\" class=\"done\">%r%r%s</p>\n", act->done,
			 strchr(act->done, '.') ? "" : ": ", strchr(act->done, '.') ? "" : count);
	free(done);
	free(count);
}

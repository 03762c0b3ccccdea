// SPDX-License-Identifier: GPL-2.0
/*
 * Tabs that are kept in the store, for all of its servers: "twheel jobs push".
 *
 * They are the body of one job, of the tube TABS_TUBE, whose delay does not end: an object of JSON
 * whose "files" has a text for each name. So a push is a put that replaces by a key, and is there
 * as a whole or not at all.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cron/pushed.h"
#include "cron/tabs_reader.h"
#include "store/commit.h"
#include "store/store.h"
#include "when/tab.h"

static struct pushed now;
static json_t *files;		/* of the last one that was right, or NULL */
static void (*on_change)(void);

static bool is_tab(const char *name, const json_t *text)
{
	return json_is_string(text) && !strchr(name, '/') && tabs_reader_is_tab(name) &&
		tab_name(name);
}

/* Gives false, having complained, if it is not what twheel(1) puts. */
static bool parse_tabs(const char *text, size_t size)
{
	json_t *all = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL), *one;
	json_t *new = json_object_get(all, "files");
	const char *by = json_string_value(json_object_get(all, "by")), *name;
	const char *at = json_string_value(json_object_get(all, "at"));
	bool fine = json_is_object(new);

	json_object_foreach(new, name, one)
		fine = fine && is_tab(name, one);
	if (fine) {
		json_decref(files);
		files = json_incref(new);
		inform("%zu tabs are those that %s pushed at %s", json_object_size(files),
		       by ? by : "somebody", at ? at : "some time");
	} else {
		complain("%s: what is there has no tabs that twheel jobs push has put; %s",
			 TABS_TUBE, "those from before are used");
	}
	json_decref(all);
	return fine;
}

/** pushed_version - that of what is known, for the next question */
int64_t pushed_version(void)
{
	return now.version;
}

static bool is_known(const struct pushed *pushed)
{
	if (!pushed->text)
		return pushed->version ? pushed->version == now.version : !now.text;
	return now.text && pushed->size == now.size && !memcmp(pushed->text, now.text, now.size);
}

/** pushed_take - what the store has now. Others are read if it has changed */
void pushed_take(const struct pushed *pushed)
{
	bool known = is_known(pushed);

	/* No reading sees half of a change: the next look finds it. */
	if (!known && tabs_reader_goes_on())
		return;
	now.version = pushed->version;
	if (known)
		return;
	free(now.text);
	now.text = NULL;
	now.size = pushed->size;
	if (pushed->text) {
		now.text = must(malloc(pushed->size + 1));
		memcpy(now.text, pushed->text, pushed->size);
		if (!parse_tabs(now.text, now.size))
			return;
	} else {
		json_decref(files);
		files = NULL;
		inform("there are no tabs any more that were pushed");
	}
	if (on_change)
		on_change();
}

/** pushed_look - look at a store whose reading does not wait */
void pushed_look(void)
{
	struct pushed pushed = { 0 };

	if (!store->pushed || !store->pushed(&pushed))
		return;
	pushed_take(&pushed);
	free(pushed.text);
}

/** pushed_start - look once, while the store is read; @changed: is called when it has others */
void pushed_start(void (*changed)(void))
{
	pushed_look();
	on_change = changed;
}

/** pushed_file - the text of one of the tabs, and its name; NULL: there are no more */
const char *pushed_file(size_t at, const char **text, size_t *size)
{
	const char *name;
	json_t *one;

	json_object_foreach(files, name, one) {
		if (at--)
			continue;
		*text = json_string_value(one);
		*size = json_string_length(one);
		return name;
	}
	return NULL;
}

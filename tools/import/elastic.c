// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs of Elastic-Job, as lines of a tab, whichever of its files they are in: YAML, properties, or
 * XML of Spring. A job becomes a schedule with shards; the body has what its class got.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "import.h"

#define BLANKS " \t"

enum elastic_key {
	ELASTIC_CLASS, ELASTIC_BEAN, ELASTIC_TYPE, ELASTIC_PARAMETER, ELASTIC_CRON, ELASTIC_ZONE,
	ELASTIC_SHARDS, ELASTIC_ITEMS, ELASTIC_MISFIRE, ELASTIC_DISABLED, ELASTIC_COMMAND,
	ELASTIC_KEYS
};

struct elastic_job {
	const char *name;
	const char *values[ELASTIC_KEYS];
};

/* Compare without hyphens: files have shardingTotalCount and sharding-total-count. */
static bool is_same_key(const char *key, const char *name)
{
	for (; *key; key++)
		if (!strchr("-_.", *key) && tolower((unsigned char)*key) != *name++)
			return false;
	return !*name;
}

/* What does not matter here is left out. */
static void take(struct elastic_job *job, const char *key, const char *value)
{
	static const struct {
		const char *name;
		enum elastic_key key;
	} keys[] = {
		{ "elasticjobclass", ELASTIC_CLASS }, { "class", ELASTIC_CLASS },
		{ "elasticjobtype", ELASTIC_TYPE }, { "jobtype", ELASTIC_TYPE },
		{ "jobparameter", ELASTIC_PARAMETER }, { "cron", ELASTIC_CRON },
		{ "timezone", ELASTIC_ZONE }, { "shardingtotalcount", ELASTIC_SHARDS },
		{ "shardingitemparameters", ELASTIC_ITEMS }, { "misfire", ELASTIC_MISFIRE },
		{ "disabled", ELASTIC_DISABLED }, { "scriptcommandline", ELASTIC_COMMAND },
		{ "jobref", ELASTIC_BEAN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (*value && is_same_key(key, keys[i].name))
			job->values[keys[i].key] = value;
}

static bool is_number(const char *text)
{
	return *text && strlen(text) < 7 && !text[strspn(text, "0123456789")];
}

/* {"0":"A","1":"B"} of 0=A,1=B; NULL: it is not so */
static json_t *items_of(const char *text)
{
	json_t *items = need(json_object());
	char *copy = need(strdup(text)), *rest = copy, *item;

	while (items && (item = strsep(&rest, ","))) {
		char *equals = strchr(item, '=');

		item += strspn(item, BLANKS);
		if (equals)
			*equals = 0;
		if (equals && is_number(item)) {
			json_object_set_new(items, item, json_string(equals + 1));
		} else {
			json_decref(items);
			items = NULL;
		}
	}
	free(copy);
	return items;
}

/* The body, without the bracket at its end: after it come the shard, and how many there are. */
static char *body_of(const struct elastic_job *job, json_t *items)
{
	static const struct {
		const char *name;
		enum elastic_key key;
	} parts[] = {
		{ "class", ELASTIC_CLASS }, { "bean", ELASTIC_BEAN }, { "type", ELASTIC_TYPE },
		{ "parameter", ELASTIC_PARAMETER },
	};
	json_t *body = need(json_object());
	char *text;

	json_object_set_new(body, "job", json_string(job->name));
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (job->values[parts[i].key])
			json_object_set_new(body, parts[i].name,
					    json_string(job->values[parts[i].key]));
	if (items)
		json_object_set(body, "items", items);
	text = need(json_dumps(body, JSON_COMPACT | JSON_ENSURE_ASCII));
	json_decref(body);
	text[strlen(text) - 1] = 0;
	return text;
}

static void print_job(struct import *import, const struct elastic_job *job, const char *when,
		      json_t *items)
{
	FILE *tab = import->tab;
	char *body;

	fputs(when, tab);
	import_schedule_name(import, job->name);
	/* So that no worker that runs commands has them */
	if (!job->values[ELASTIC_COMMAND])
		fputs(" TUBE=elastic-job", tab);
	if (job->values[ELASTIC_ZONE])
		import_java_zone(import, job->values[ELASTIC_ZONE]);
	if (job->values[ELASTIC_SHARDS])
		fprintf(tab, " SHARDS=%s", job->values[ELASTIC_SHARDS]);
	if (job->values[ELASTIC_DISABLED] && import_is_true(job->values[ELASTIC_DISABLED]))
		fputs(" PAUSED=yes", tab);
	fprintf(tab, " OVERLAP=no MISFIRE=%s ",
		import_is_true(job->values[ELASTIC_MISFIRE]) ? "once" : "skip");
	if (job->values[ELASTIC_COMMAND]) {
		import_percent(import, job->values[ELASTIC_COMMAND]);
		fputs("\n", tab);
		import_name(import, "%s: Elastic-Job gives its script the sharding context "
			    "as a last word; add %%s and %%n where it wants them",
			    job->name);
		return;
	}
	body = body_of(job, items);
	import_percent(import, body);
	fputs(",\"item\":%s,\"of\":%n}\n", tab);
	free(body);
}

/* Why there can't be a line of it, or NULL */
static const char *check_job(const struct elastic_job *job, const json_t *items)
{
	const char *const *values = job->values;

	for (unsigned int i = 0; i < ELASTIC_KEYS; i++)
		if (values[i] && strstr(values[i], "${"))
			return "it has a ${...} of Spring: put the value there";
	if (strstr(job->name, "${"))
		return "its name is a ${...} of Spring: put the value there";
	if (!values[ELASTIC_CRON])
		return "it has no cron: twheel jobs run, or put, is what makes such a job";
	if (values[ELASTIC_ZONE] && !import_is_word(values[ELASTIC_ZONE]))
		return "this is no timeZone";
	if (values[ELASTIC_SHARDS] && !is_number(values[ELASTIC_SHARDS]))
		return "shardingTotalCount is no number";
	if (values[ELASTIC_ITEMS] && !items)
		return "shardingItemParameters are not like 0=A,1=B";
	if (values[ELASTIC_COMMAND] && strpbrk(values[ELASTIC_COMMAND], "\r\n"))
		return "its script has several lines: put it into a file";
	return NULL;
}

/**
 * import_elastic - a job, as a line of the tab, or as a comment that says why there is none
 * @values: texts, by the names of its settings, in words like theirs or like-theirs
 * @misfire: what its misfire is where @values have none: the schema of the XML has true, and the
 *	starter of Spring Boot, from 3.0 on, has false, whatever its manual says
 */
void import_elastic(struct import *import, const char *name, json_t *values, const char *misfire)
{
	struct elastic_job job = { .name = name, .values[ELASTIC_MISFIRE] = misfire };
	json_t *value, *items = NULL;
	const char *key, *why;
	unsigned int count;
	char when[200];

	json_object_foreach(values, key, value)
		take(&job, key, json_string_value(value));
	if (job.values[ELASTIC_ITEMS])
		items = items_of(job.values[ELASTIC_ITEMS]);
	why = check_job(&job, items);
	count = import_take_fields(why ? "" : job.values[ELASTIC_CRON], when, sizeof(when));
	if (!why && count != 6 && count != 7)
		why = "its cron has no six or seven fields of less than 200 characters";
	if (!why)
		why = import_quartz_odd(when);
	if (why) {
		import_leave_out(import, name, "%s", why);
	} else {
		import_fields(import, count);
		print_job(import, &job, when, items);
	}
	import_place(import);
	json_decref(items);
}

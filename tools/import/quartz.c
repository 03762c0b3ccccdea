// SPDX-License-Identifier: GPL-2.0
/*
 * The jobs and triggers of Quartz' quartz_jobs.xml, as lines of a tab. libxml2 reads it.
 *
 * A trigger becomes a schedule; a job's name, class and data map become the JSON of its jobs'
 * bodies. What Quartz itself reads oddly is named and left out, as nobody can know what was meant.
 */
#include <ctype.h>
#include <jansson.h>
#include <libxml/hash.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "import.h"

#define COUNT_MOST 1000
#define PRI_OF_FIVE 1029	/* less the priority of Quartz: 1024 for its default */

struct quartz {
	struct import *import;
	xmlNode *schedule;
	xmlHashTable *jobs;	/* of it, by their names */
	size_t triggers;
};

static bool is_called(const xmlNode *node, const char *name)
{
	return node->type == XML_ELEMENT_NODE && !strcmp((const char *)node->name, name);
}

static xmlNode *find(const xmlNode *in, const char *name)
{
	for (xmlNode *node = in ? in->children : NULL; node; node = node->next)
		if (is_called(node, name))
			return node;
	return NULL;
}

/* The text of an element in another one, without blanks around it; NULL: there is none, or "" */
static char *text_in(const xmlNode *in, const char *name)
{
	const xmlNode *node = find(in, name);
	char *text = node ? (char *)xmlNodeGetContent(node) : NULL, *begin = text, *copy;
	size_t length;

	if (!text)
		return NULL;
	begin += strspn(begin, " \t\r\n");
	length = strlen(begin);
	while (length && strchr(" \t\r\n", begin[length - 1]))
		length--;
	copy = length ? need(strndup(begin, length)) : NULL;
	xmlFree(text);
	return copy;
}

/* GROUP.NAME, of which a schedule's name is made; the group DEFAULT goes without saying. */
static char *name_in(const xmlNode *in, const char *name, const char *group)
{
	char *first = text_in(in, group), *last = text_in(in, name), *both;

	if (!first || !strcmp(first, "DEFAULT"))
		both = need(strdup(last ? last : ""));
	else if (asprintf(&both, "%s.%s", first, last ? last : "") < 0)
		need(NULL);
	free(first);
	free(last);
	return both;
}

/* If two jobs have the same name, the first one counts. */
static void note_jobs(struct quartz *quartz)
{
	for (xmlNode *node = quartz->schedule->children; node; node = node->next) {
		char *name = is_called(node, "job") ? name_in(node, "name", "group") : NULL;

		if (name)
			xmlHashAddEntry(quartz->jobs, BAD_CAST name, node);
		free(name);
	}
}

static void add_data(json_t *data, const xmlNode *in)
{
	const xmlNode *map = find(in, "job-data-map");

	for (xmlNode *entry = map ? map->children : NULL; entry; entry = entry->next) {
		char *key = is_called(entry, "entry") ? text_in(entry, "key") : NULL;
		char *value = key ? text_in(entry, "value") : NULL;

		if (key)
			json_object_set_new(data, key, json_string(value ? value : ""));
		free(key);
		free(value);
	}
}

/* The body: what the scheduler had given to the job. A trigger's data goes before the job's. */
static char *body_of(const char *job, const xmlNode *node, const xmlNode *trigger)
{
	char *class = text_in(node, "job-class"), *text;
	json_t *data = need(json_object()), *body = need(json_object());

	add_data(data, node);
	add_data(data, trigger);
	json_object_set_new(body, "job", json_string(job));
	if (class)
		json_object_set_new(body, "class", json_string(class));
	if (json_object_size(data))
		json_object_set(body, "data", data);
	text = need(json_dumps(body, JSON_COMPACT | JSON_ENSURE_ASCII));
	json_decref(data);
	json_decref(body);
	free(class);
	return text;
}

static const char *misfire_of(const char *text, bool simple)
{
	if (!text || !strcmp(text, "MISFIRE_INSTRUCTION_SMART_POLICY") ||
	    !strcmp(text, "MISFIRE_INSTRUCTION_FIRE_ONCE_NOW") ||
	    !strcmp(text, "MISFIRE_INSTRUCTION_FIRE_NOW"))
		return "once";
	if (!strcmp(text, "MISFIRE_INSTRUCTION_IGNORE_MISFIRE_POLICY"))
		return "all:1000";
	if (!strcmp(text, "MISFIRE_INSTRUCTION_DO_NOTHING") ||
	    (simple && strstr(text, "RESCHEDULE_NEXT")))
		return "skip";
	return simple && strstr(text, "RESCHEDULE_NOW") ? "once" : NULL;
}

/* Is a time of the file, like 2027-01-01T00:00:00Z, over? Its zone does not matter much. */
static bool is_over(const char *text)
{
	struct tm tm = { 0 };

	return strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) && timegm(&tm) < time(NULL) - 86400;
}

/* What a trigger has that a line can't have; NULL: nothing */
static const char *find_unlike(const xmlNode *trigger)
{
	char *start = text_in(trigger, "start-time"), *end = text_in(trigger, "end-time");
	char *calendar = text_in(trigger, "calendar-name"), *zone = text_in(trigger, "time-zone");
	const char *why = NULL;

	if ((zone && !import_is_word(zone)) || (start && !import_is_word(start)) ||
	    (end && !import_is_word(end)))
		why = "there is a blank in its time-zone, start-time or end-time";
	else if (calendar)
		why = "it has a calendar, which is not in the file: write its days to a file of "
		      "CALENDAR=";
	free(start);
	free(end);
	free(calendar);
	free(zone);
	return why;
}

/* When a cron trigger fires; to be freed; NULL, after it was said why not */
static char *when_of_cron(struct quartz *quartz, const xmlNode *trigger)
{
	char *text = text_in(trigger, "cron-expression");
	const char *why = "there is no cron-expression";
	unsigned int blanks = 0;

	for (char *at = text; at && *at; at++)
		*at = isspace((unsigned char)*at) ? ' ' : *at;
	if (text)
		why = import_quartz_odd(text);
	if (why) {
		import_leave_out(quartz->import, text ? text : "", "%s", why);
		free(text);
		return NULL;
	}
	for (const char *at = text; *at; at++)
		blanks += *at == ' ' && at[1] != ' ';
	import_fields(quartz->import, blanks + 1);
	return text;
}

static char *when_of_simple(struct quartz *quartz, const xmlNode *trigger)
{
	char *count = text_in(trigger, "repeat-count"), *start = text_in(trigger, "start-time");
	char *interval = text_in(trigger, "repeat-interval"), *when = NULL;
	long long ms = interval ? atoll(interval) : 0, repeats = count ? atoll(count) : 0;
	bool whole = ms >= 1000 && ms % 1000 == 0;

	if (whole && start && repeats > 0 && repeats < COUNT_MOST) {
		if (asprintf(&when, "@every %llds FROM=%s COUNT=%lld", ms / 1000, start,
			     repeats + 1) < 0)
			need(NULL);
	} else if (whole && repeats == -1) {
		if (asprintf(&when, "@every %llds%s%s", ms / 1000, start ? " FROM=" : "",
			     start ? start : "") < 0)
			need(NULL);
		if (!start)
			import_tell(quartz->import, "@every counts from 1970 on, and not from when "
				    "the scheduler starts");
	} else if ((!count || !strcmp(count, "0")) && start) {
		if (asprintf(&when, "@at %s", start) < 0)
			need(NULL);
	} else {
		import_leave_out(quartz->import, "", "a simple trigger is known here that repeats "
				 "in whole seconds, for ever, or from a start-time less than "
				 "1000 times, or has a start-time and does not repeat");
	}
	free(count);
	free(start);
	free(interval);
	return when;
}

static void print_trigger(struct quartz *quartz, const xmlNode *trigger, const char *when,
			  const char *misfire, const char *body)
{
	char *name = name_in(trigger, "name", "group"), *zone = text_in(trigger, "time-zone");
	char *priority = text_in(trigger, "priority"), *start = text_in(trigger, "start-time");
	char *end = text_in(trigger, "end-time");
	FILE *tab = quartz->import->tab;

	fputs(when, tab);
	import_schedule_name(quartz->import, name);
	/* So that no worker that runs commands has them */
	fputs(" TUBE=quartz", tab);
	if (zone)
		import_java_zone(quartz->import, zone);
	if (priority && atoi(priority) > 0 && atoi(priority) <= PRI_OF_FIVE)
		fprintf(tab, " PRI=%d", PRI_OF_FIVE - atoi(priority));
	if (start && *when != '@' && !is_over(start))
		fprintf(tab, " START=%s", start);
	if (end)
		fprintf(tab, " END=%s", end);
	fprintf(tab, " MISFIRE=%s ", misfire);
	import_percent(quartz->import, body);
	putc('\n', tab);
	free(start);
	free(end);
	free(name);
	free(zone);
	free(priority);
}

static void import_trigger(struct quartz *quartz, const xmlNode *trigger)
{
	bool simple = is_called(trigger, "simple");
	char *job = name_in(trigger, "job-name", "job-group"), *when = NULL, *body;
	char *name = name_in(trigger, "name", "group");
	char *instruction = text_in(trigger, "misfire-instruction");
	const char *misfire = misfire_of(instruction, simple);
	const xmlNode *node = xmlHashLookup(quartz->jobs, BAD_CAST job);
	const char *why = find_unlike(trigger);

	quartz->import->line = xmlGetLineNo((xmlNode *)trigger);
	if (!simple && !is_called(trigger, "cron"))
		why = "cron and simple triggers are known here; five fields say most of what "
		      "these say";
	else if (!node)
		why = "there is no job of that name in the file";
	else if (!misfire)
		why = "its misfire-instruction has no like here";
	if (why)
		import_leave_out(quartz->import, name, "%s", why);
	else
		when = simple ? when_of_simple(quartz, trigger) : when_of_cron(quartz, trigger);
	if (when) {
		body = body_of(job, node, trigger);
		print_trigger(quartz, trigger, when, misfire, body);
		free(body);
	}
	import_place(quartz->import);
	free(when);
	free(job);
	free(name);
	free(instruction);
}

static void import_schedule(struct quartz *quartz)
{
	quartz->jobs = need(xmlHashCreate(0));
	note_jobs(quartz);
	for (xmlNode *node = quartz->schedule->children; node; node = node->next) {
		if (!is_called(node, "trigger"))
			continue;
		for (xmlNode *inner = node->children; inner; inner = inner->next) {
			if (inner->type != XML_ELEMENT_NODE)
				continue;
			quartz->triggers++;
			import_trigger(quartz, inner);
		}
	}
	xmlHashFree(quartz->jobs, NULL);
}

static xmlDoc *read_document(const char *text, size_t size, const char **why)
{
	xmlDoc *document = xmlReadMemory(text, size, NULL, NULL, XML_PARSE_NONET |
					 XML_PARSE_NOERROR | XML_PARSE_NOWARNING);

	*why = "libxml2 can't read it";
	/* Some words of those can be gigabytes. */
	if (document && document->intSubset && document->intSubset->entities) {
		*why = "it has entities of its own, which are not read: put their texts there";
		xmlFreeDoc(document);
		document = NULL;
	}
	return document;
}

static void import_quartz(struct import *import, const xmlNode *root)
{
	struct quartz quartz = { .import = import };

	import_tell(import, "jobs and triggers of Quartz");
	for (xmlNode *node = root->children; node; node = node->next) {
		quartz.schedule = node;
		if (is_called(node, "schedule"))
			import_schedule(&quartz);
	}
	import->line = 0;
	if (!quartz.triggers)
		import_leave_out(import, import->path, "there is no trigger in it");
	else
		import_tell(import, "a worker reserves the jobs of tube quartz: their bodies "
			    "have the class and the data of the job. Jobs with @DisallowConcurrentExecution need "
			    "OVERLAP=wait, which only their class says");
}

/* import_xml - the triggers of a file of Quartz, or Elastic-Job's jobs of one of Spring */
void import_xml(struct import *import, const char *text, size_t size)
{
	const char *why;
	xmlDoc *document = read_document(text, size, &why);
	xmlNode *root = document ? xmlDocGetRootElement(document) : NULL;

	if (root && is_called(root, "job-scheduling-data"))
		import_quartz(import, root);
	else if (root && is_called(root, "beans"))
		import_spring(import, root);
	else
		import_leave_out(import, import->path, "%s", !root ? why :
				 "this XML is not known: Quartz' has job-scheduling-data in it, and "
				 "Spring's has beans");
	xmlFreeDoc(document);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Kubernetes' CronJobs, and jobs of Elastic-Job, as lines of a tab. libyaml reads them.
 *
 * A CronJob goes on being run by Kubernetes: the job's body has its Job made by kubectl.
 */
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "import.h"

struct yaml {
	struct import *import;
	yaml_document_t document;
	size_t jobs;
};

/* The value of a key; NULL: there is none */
static yaml_node_t *find(struct yaml *yaml, yaml_node_t *in, const char *key)
{
	if (!in || in->type != YAML_MAPPING_NODE)
		return NULL;
	for (yaml_node_pair_t *pair = in->data.mapping.pairs.start;
	     pair < in->data.mapping.pairs.top; pair++) {
		yaml_node_t *name = yaml_document_get_node(&yaml->document, pair->key);

		if (name && name->type == YAML_SCALAR_NODE &&
		    !strcmp((char *)name->data.scalar.value, key))
			return yaml_document_get_node(&yaml->document, pair->value);
	}
	return NULL;
}

/* NULL: it is no text, or null */
static const char *text_in(yaml_node_t *node)
{
	const char *text;

	if (!node || node->type != YAML_SCALAR_NODE)
		return NULL;
	text = (const char *)node->data.scalar.value;
	return *text && strcmp(text, "null") && strcmp(text, "~") ? text : NULL;
}

static const char *text_of(struct yaml *yaml, yaml_node_t *in, const char *key)
{
	return text_in(find(yaml, in, key));
}

static bool is_number(const char *text)
{
	return *text && strlen(text) < 7 && !text[strspn(text, "0123456789")];
}

/* Kubernetes */

/* Five fields, @daily, or @every 90s; what follows those would be the job's body. */
static bool is_schedule(const char *when, unsigned int count)
{
	if (*when != '@')
		return count == 5;
	return count == 1 || (count == 2 && !strncmp(when, "@every ", strlen("@every ")));
}

static const char *check_cronjob(struct yaml *yaml, yaml_node_t *spec, const char *schedule)
{
	const char *zone = text_of(yaml, spec, "timeZone");
	const char *policy = text_of(yaml, spec, "concurrencyPolicy");
	const char *late = text_of(yaml, spec, "startingDeadlineSeconds");

	if (!schedule)
		return "it has no schedule";
	if (strstr(schedule, "TZ="))
		return "a zone in schedule: say it as timeZone";
	if (policy && !strcmp(policy, "Replace"))
		return "concurrencyPolicy: Replace has no like here: a job that runs is not ended";
	if (zone && !import_is_word(zone))
		return "this is no timeZone";
	return late && (!is_number(late) || atoi(late) < 1 || atoi(late) > 86400) ?
		"startingDeadlineSeconds is from 1 to 86400 here" : NULL;
}

static void print_cronjob(struct yaml *yaml, yaml_node_t *spec, const char *when,
			  const char *space, const char *name)
{
	const char *zone = text_of(yaml, spec, "timeZone");
	const char *policy = text_of(yaml, spec, "concurrencyPolicy");
	const char *late = text_of(yaml, spec, "startingDeadlineSeconds");
	const char *suspend = text_of(yaml, spec, "suspend");
	FILE *tab = yaml->import->tab;

	fputs(when, tab);
	import_schedule_name(yaml->import, name);
	if (zone)
		fprintf(tab, " CRON_TZ=%s", zone);
	else
		import_name(yaml->import, "%s has no timeZone: Kubernetes takes that of its "
			    "controller, and the tab that of this machine",
			    name);
	if (policy && !strcmp(policy, "Forbid"))
		fputs(" OVERLAP=no", tab);
	if (suspend && import_is_true(suspend))
		fputs(" PAUSED=yes", tab);
	fprintf(tab, late ? " MISFIRE=skip MISFIRE_AFTER=%s" : " MISFIRE=once", late);
	fputs(" kubectl", tab);
	if (space)
		fprintf(tab, " -n %s", space);
	fprintf(tab, " create job --from=cronjob/%s %s-$(date +%%%%s)\n", name, name);
}

static void import_cronjob(struct yaml *yaml, yaml_node_t *node)
{
	yaml_node_t *metadata = find(yaml, node, "metadata"), *spec = find(yaml, node, "spec");
	const char *name = text_of(yaml, metadata, "name");
	const char *space = text_of(yaml, metadata, "namespace");
	const char *schedule = text_of(yaml, spec, "schedule"), *why;
	char when[200];
	unsigned int count = import_take_fields(schedule ? schedule : "", when, sizeof(when));

	yaml->jobs++;
	yaml->import->line = node->start_mark.line + 1;
	why = check_cronjob(yaml, spec, schedule);
	if (!name || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-")] ||
	    (space && space[strspn(space, "abcdefghijklmnopqrstuvwxyz0123456789-")]))
		why = "it has no name, or one that Kubernetes does not take";
	else if (!why && !is_schedule(when, count))
		why = "its schedule has no five fields of less than 200 characters";
	if (why) {
		import_leave_out(yaml->import, name ? name : "", "%s", why);
	} else {
		import_fields(yaml->import, 5);
		print_cronjob(yaml, spec, when, space, name);
	}
	import_place(yaml->import);
}

/* A CronJob, or a List of them */
static void import_kubernetes(struct yaml *yaml, yaml_node_t *node)
{
	const char *kind = text_of(yaml, node, "kind");
	yaml_node_t *items = find(yaml, node, "items");

	if (kind && !strcmp(kind, "CronJob")) {
		import_cronjob(yaml, node);
	} else if (kind && items && items->type == YAML_SEQUENCE_NODE) {
		for (yaml_node_item_t *item = items->data.sequence.items.start;
		     item < items->data.sequence.items.top; item++) {
			yaml_node_t *one = yaml_document_get_node(&yaml->document, *item);

			kind = text_of(yaml, one, "kind");
			if (kind && !strcmp(kind, "CronJob"))
				import_cronjob(yaml, one);
		}
	}
}

/* Elastic-Job */

static void take_values(struct yaml *yaml, json_t *values, yaml_node_t *in)
{
	if (!in || in->type != YAML_MAPPING_NODE)
		return;
	for (yaml_node_pair_t *pair = in->data.mapping.pairs.start;
	     pair < in->data.mapping.pairs.top; pair++) {
		yaml_node_t *key = yaml_document_get_node(&yaml->document, pair->key);
		const char *name = key->type == YAML_SCALAR_NODE ?
			(const char *)key->data.scalar.value : "";
		const char *text = text_in(yaml_document_get_node(&yaml->document, pair->value));

		if (text)
			json_object_set_new(values, name, json_string(text));
	}
}

static void import_elastic_job(struct yaml *yaml, yaml_node_t *key, yaml_node_t *node)
{
	json_t *values = need(json_object());

	yaml->jobs++;
	yaml->import->line = key->start_mark.line + 1;
	take_values(yaml, values, node);
	take_values(yaml, values, find(yaml, node, "props"));
	import_elastic(yaml->import, (const char *)key->data.scalar.value, values, "false");
	json_decref(values);
}

static void import_elastics(struct yaml *yaml, yaml_node_t *jobs)
{
	for (yaml_node_pair_t *pair = jobs->data.mapping.pairs.start;
	     pair < jobs->data.mapping.pairs.top; pair++) {
		yaml_node_t *key = yaml_document_get_node(&yaml->document, pair->key);

		if (key && key->type == YAML_SCALAR_NODE)
			import_elastic_job(yaml, key, yaml_document_get_node(&yaml->document,
									     pair->value));
	}
}

static void import_document(struct yaml *yaml)
{
	yaml_node_t *root = yaml_document_get_root_node(&yaml->document);
	yaml_node_t *elastic = find(yaml, root, "elasticjob");
	yaml_node_t *jobs = find(yaml, elastic ? elastic : root, "jobs");

	if (elastic && jobs && jobs->type == YAML_MAPPING_NODE)
		import_elastics(yaml, jobs);
	else
		import_kubernetes(yaml, root);
}

/* import_yaml - the CronJobs, or jobs of Elastic-Job, of all documents of a file */
void import_yaml(struct import *import, const char *text, size_t size)
{
	struct yaml yaml = { .import = import };
	bool fine = true, more = true;
	yaml_parser_t parser;

	if (!yaml_parser_initialize(&parser))
		need(NULL);
	import_tell(import, "YAML, of Kubernetes or Elastic-Job");
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
	while (more && fine) {
		fine = yaml_parser_load(&parser, &yaml.document);
		if (!fine)
			break;
		more = yaml_document_get_root_node(&yaml.document);
		if (more)
			import_document(&yaml);
		yaml_document_delete(&yaml.document);
	}
	import->line = fine ? 0 : parser.problem_mark.line + 1;
	if (!fine)
		import_leave_out(import, import->path, "libyaml can't read it: %s",
				 parser.problem ? parser.problem : "");
	else if (!yaml.jobs)
		import_leave_out(import, import->path, "there is neither a CronJob in it, nor "
				 "elasticjob with jobs");
	yaml_parser_delete(&parser);
}

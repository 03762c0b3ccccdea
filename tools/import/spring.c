// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs of Elastic-Job in XML of Spring: elasticjob:job since its version 3, and before that
 * job:simple, job:dataflow and job:script.
 */
#include <stdlib.h>
#include <string.h>

#include "import.h"

static const char *const kinds[] = { "job", "simple", "dataflow", "script" };

static bool is_job(const xmlNode *node)
{
	const char *space = node->ns ? (const char *)node->ns->href : "";

	if (!strstr(space, "elasticjob") && !strstr(space, "ddframe/job"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp((const char *)node->name, kinds[i]))
			return true;
	return false;
}

static void take(json_t *values, const char *key, xmlChar *text)
{
	if (key && text)
		json_object_set_new(values, key, json_string((char *)text));
	xmlFree(text);
}

/* <props><prop key="script.command.line">...</prop></props> */
static void take_props(json_t *values, const xmlNode *props)
{
	for (xmlNode *node = props->children; node; node = node->next) {
		xmlChar *key = node->type == XML_ELEMENT_NODE ?
			xmlGetProp(node, BAD_CAST "key") : NULL;

		if (key)
			take(values, (char *)key, xmlNodeGetContent(node));
		xmlFree(key);
	}
}

static void import_job(struct import *import, const xmlNode *node)
{
	const xmlAttr *attribute = node->properties;
	json_t *values = need(json_object());
	const char *name;

	for (; attribute; attribute = attribute->next)
		take(values, (const char *)attribute->name,
		     xmlNodeListGetString(node->doc, attribute->children, 1));
	for (xmlNode *inner = node->children; inner; inner = inner->next)
		if (inner->type == XML_ELEMENT_NODE &&
		    !strcmp((const char *)inner->name, "props"))
			take_props(values, inner);
	name = json_string_value(json_object_get(values, "id"));
	import->line = xmlGetLineNo((xmlNode *)node);
	import_elastic(import, name ? name : "", values, "true");
	json_decref(values);
}

/* Gives how many there are; beans may be in beans, for each profile. */
static size_t import_jobs(struct import *import, xmlNode *in)
{
	size_t jobs = 0;

	for (xmlNode *node = in->children; node; node = node->next) {
		if (node->type != XML_ELEMENT_NODE)
			continue;
		if (is_job(node)) {
			import_job(import, node);
			jobs++;
		} else if (!strcmp((const char *)node->name, "beans")) {
			jobs += import_jobs(import, node);
		}
	}
	return jobs;
}

/* import_spring - the jobs of Elastic-Job among the beans of a file */
void import_spring(struct import *import, xmlNode *root)
{
	import_tell(import, "beans of Spring");
	if (import_jobs(import, root))
		return;
	import->line = 0;
	import_leave_out(import, import->path, "there is no job of Elastic-Job in it. Triggers of "
			 "Quartz are known as quartz_jobs.xml: write theirs as lines of a tab");
}

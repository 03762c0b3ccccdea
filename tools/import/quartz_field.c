// SPDX-License-Identifier: GPL-2.0
/*
 * What Quartz reads oddly in a cron expression, whichever file it stands in.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "import.h"

/* Is there one of the letters L and W, which are no part of a name, or a #? */
static bool has_letter(const char *field)
{
	for (; *field; field++)
		if (!strncmp(field, "JUL", 3) || !strncmp(field, "WED", 3))
			field += 2;
		else if (strchr("LW#", *field))
			return true;
	return false;
}

/* Lists of which Quartz 2.3.2 takes a part, and steps that it drops */
static const char *find_odd(const char *field, const char **what)
{
	const char *slash = strchr(field, '/');

	*what = field;
	if (strchr(field, ',') && has_letter(field))
		return "Quartz takes a part of such a list alone (1,15W is 1W, SUN,MON#1 the "
		       "first Sunday)";
	if (slash && slash > field && isalpha((unsigned char)slash[-1]))
		return "Quartz drops a step after a name (MON-FRI/2 is MON-FRI)";
	return NULL;
}

/**
 * import_quartz_odd - does Quartz take an expression as it stands there?
 * @text: six or seven fields with single blanks; out: in capitals, as Quartz reads them
 *
 * Return: what it reads oddly, or refuses; NULL: nothing.
 */
const char *import_quartz_odd(char *text)
{
	static char why[300];
	char *copy, *rest, *field, *fields[8];
	const char *odd = NULL, *what = NULL;
	unsigned int count = 0;

	for (char *at = text; *at; at++)
		*at = toupper((unsigned char)*at);
	copy = need(strdup(text));
	rest = copy;
	while ((field = strsep(&rest, " ")))
		if (*field && count < ARRAY_SIZE(fields))
			fields[count++] = field;
	if (count != 6 && count != 7)
		odd = "these are no six or seven fields";
	else if (strcmp(fields[3], "?") && strcmp(fields[5], "?"))
		odd = "Quartz wants a ? as one of the two days";
	for (unsigned int i = 0; i < count && !odd; i++)
		odd = find_odd(fields[i], &what);
	if (odd)
		snprintf(why, sizeof(why), "%s%.60s%s%s", what ? "'" : "", what ? what : "",
			 what ? "': " : "", odd);
	free(copy);
	return odd ? why : NULL;
}

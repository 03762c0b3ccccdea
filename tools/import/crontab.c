// SPDX-License-Identifier: GPL-2.0
/*
 * Crontabs, as lines of a tab: those of a user, those of the system, in which a user stands before
 * each command, and anacron's.
 *
 * What fires, and when, is as with the cron that had them. Debian's is it, unless cronie is said:
 * what the two, or a tab, read otherwise is named. Variables go to the line of a worker.
 */
#include <ctype.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "import.h"

#define BLANKS " \t"
#define FIELDS_MOST 6
/* Debian's timer starts anacron then, and again each hour */
#define ANACRON_STARTS (7 * 60 + 30)
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

struct line {
	char *text;
	bool zero;		/* there is a byte of 0 in it */
};

struct variable {
	char *name, *value;
};

/* Who runs jobs of a user in an environment, and in which tube they are */
struct worker {
	char *user;		/* "": the crontab is a user's */
	char *environment;	/* words of env(1) */
	char *shell, *tube;	/* the shell is a word of one */
};

struct crontab {
	struct import *import;
	struct line *lines;
	size_t count;
	bool of_system, cronie, debian;
	bool anacron;		/* it is an anacrontab, whose jobs begin at a minute of the day */
	unsigned int start;
	unsigned int words;	/* that say when */
	bool carriage;		/* there are lines with CR LF */
	struct variable *variables;
	size_t nr_variables;
};

/* Lines */

static void read_lines(struct crontab *crontab, FILE *file)
{
	size_t room = 0, length;
	char *line = NULL;
	ssize_t got;

	while ((got = getline(&line, &room, file)) > 0) {
		struct line *one;

		crontab->lines = need(realloc(crontab->lines, (crontab->count + 1) *
					      sizeof(*crontab->lines)));
		one = &crontab->lines[crontab->count++];
		length = got - (line[got - 1] == '\n');
		if (length && line[length - 1] == '\r') {
			crontab->carriage = true;
			length--;
		}
		line[length] = 0;
		one->zero = strlen(line) < length;
		one->text = need(strdup(line));
	}
	free(line);
}

static const char *text_of(const struct crontab *crontab, size_t number)
{
	const char *text = crontab->lines[number].text;
	size_t mark = strlen(BYTE_ORDER_MARK);

	if (!number && !strncmp(text, BYTE_ORDER_MARK, mark))
		text += mark;
	return text + strspn(text, BLANKS);
}

/* A word is taken from the line; what follows it is there after blanks. */
static char *take_word(char **line)
{
	char *word = *line + strspn(*line, BLANKS);

	*line = word + strcspn(word, BLANKS);
	if (**line)
		*(*line)++ = 0;
	*line += strspn(*line, BLANKS);
	return word;
}

/* What a line that is a job begins with; cronie has a "-" before it for "not in the log". */
static bool is_job(const char *text)
{
	text += *text == '-';
	return *text && strchr("0123456789*@", *text);
}

/* Read a word, or a text between quotes; gives the text after it, or NULL. */
static const char *take_quoted(const char *at, const char *stops, char **word)
{
	const char *end = strchr("'\"", *at) && *at ? strchr(at + 1, *at) : NULL;

	if (*at && strchr("'\"", *at)) {
		*word = end ? strndup(at + 1, end - at - 1) : NULL;
		return end ? end + 1 : NULL;
	}
	*word = need(strndup(at, strcspn(at, stops)));
	return at + strlen(*word);
}

/* NAME = VALUE, as cron takes it. Gives false if it is no such line. */
static bool take_variable(const char *text, struct variable *variable)
{
	const char *at = take_quoted(text, " \t=", &variable->name);
	size_t length;

	if (!at || at[strspn(at, BLANKS)] != '=') {
		free(at ? variable->name : NULL);
		return false;
	}
	at += strspn(at, BLANKS) + 1;
	at = take_quoted(at + strspn(at, BLANKS), "", &variable->value);
	if (!at || at[strspn(at, BLANKS)]) {
		free(variable->name);
		free(at ? variable->value : NULL);
		return false;
	}
	length = strlen(variable->value);
	while (length && strchr(BLANKS, variable->value[length - 1]))
		variable->value[--length] = 0;
	return true;
}

/* What a file is */

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(word, *words))
			return true;
	return false;
}

/* Words of the shell, and programs that crontabs have, also where they are not installed */
static bool is_program(const char *word)
{
	static const char *const words[] = {
		"cd", "test", "[", "[[", "if", "for", "while", "until", "case", "export", "echo",
		"exec", "eval", ".", "source", "set", "umask", "ulimit", "true", "false", ":",
		"php", "python", "python2", "python3", "perl", "ruby", "node", "java", "bash", "sh",
		"zsh", "ksh", "curl", "wget", "rsync", "docker", "npm", "bundle", "rake", "sudo",
		"flock", "certbot", "mysqldump", "pg_dump", "chronic", "aws", "nice", "ionice",
		"sleep", "timeout", "env", "find", "rm", "tar", "logger", "systemctl", NULL,
	};
	static const char *const folders[] = {
		"/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin",
	};
	char path[300];

	if (is_one_of(word, words))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		if (snprintf(path, sizeof(path), "%s/%s", folders[i], word) < (int)sizeof(path) &&
		    access(path, X_OK) == 0)
			return true;
	return false;
}

/* Can't it be a name? */
static bool is_command(const char *word)
{
	static const char chars[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-";

	return word[strspn(word, chars)] || is_program(word);
}

static bool is_user(const char *word)
{
	static const char *const words[] = {
		"root", "www-data", "apache", "nobody", "daemon", "munin", "smmsp", "amavis",
		"logcheck", "uucp", "ubuntu", "ec2-user", "vagrant", "tomcat", "zabbix",
		"postgres", "gitlab", NULL,
	};

	/* Users of Debian, which might be commands as well */
	static const char *const either[] = {
		"backup", "bin", "games", "git", "list", "mail", "man", "mysql", "news", "proxy",
		"redis", "sync", "sys", NULL,
	};

	return is_one_of(word, words) || (getpwnam(word) && !is_one_of(word, either));
}

/* A field of a time, where a user or a command should be: the line has six or seven */
static bool is_field(const char *word)
{
	static const char names[] = "sunmontuewedthufrisat";

	if (strchr("0123456789*?L", *word) && !word[strspn(word, "0123456789*?,-/#LW")])
		return true;
	for (size_t i = 0; i + 3 < sizeof(names); i += 3)
		if (!strncasecmp(word, names + i, 3) && (!word[3] || strchr("-,#L", word[3])))
			return true;
	return false;
}

/* Is the word a user, 1, or the beginning of a command, -1? 0: it may be either. */
static int sort_of(const char *word, const char *rest)
{
	char next[40];

	if (is_field(word))
		return 0;
	if (!*rest)
		return -1;
	if (is_user(word))
		return !is_command(word);
	if (is_command(word))
		return getpwnam(word) ? 0 : -1;
	snprintf(next, sizeof(next), "%.*s", (int)strcspn(rest, BLANKS), rest);
	return is_program(next);
}

/* A copy of the text after the fields of a job, to be freed */
static char *after_fields(const struct crontab *crontab, const char *text, char **copy)
{
	char *rest = *copy = need(strdup(text));
	unsigned int words = text[*text == '-'] == '@' ? 1 : crontab->words;

	while (words--)
		take_word(&rest);
	return rest;
}

/* By all its lines: has it users? Gives 0 if that is not clear. */
static int sort_of_file(const struct crontab *crontab, char *example, size_t room)
{
	size_t users = 0, commands = 0, jobs = 0;

	for (size_t i = 0; i < crontab->count; i++) {
		const char *text = text_of(crontab, i);
		struct variable variable;
		char *copy, *rest, *word;
		int sort;

		if (take_variable(text, &variable)) {
			free(variable.name);
			free(variable.value);
			continue;
		}
		if (!is_job(text))
			continue;
		rest = after_fields(crontab, text, &copy);
		word = take_word(&rest);
		sort = sort_of(word, rest);
		users += sort > 0;
		commands += sort < 0;
		if (!sort && !is_field(word)) {
			snprintf(example, room, "%s", word);
			crontab->import->line = i + 1;
		}
		jobs += !is_field(word);
		free(copy);
	}
	if (users && commands)
		snprintf(example, room,
			 "some lines have a user after the time, and some have none");
	if (!users != !commands)
		return users ? 1 : -1;
	return jobs ? 0 : -1;
}

static bool decide(struct crontab *crontab, bool of_system)
{
	struct import *import = crontab->import;
	enum crontab_kind said = import->jobs->crontab;
	char example[100] = "";
	int sort = sort_of_file(crontab, example, sizeof(example));
	bool mixed = strchr(example, ' ');

	crontab->of_system = said == CRONTAB_ANY ? sort > 0 || (!sort && !mixed && of_system) :
		said == CRONTAB_SYSTEM;
	if (said != CRONTAB_ANY || sort || (of_system && !mixed))
		return true;
	import_leave_out(import, import->path, mixed ?
			 "%s: say --user or --system, and import again" :
			 "is '%s' after the time a user, or a command? Say --user or --system, "
			 "and import again",
			 example);
	return false;
}

/* Variables, and workers */

static struct variable *find_variable(struct crontab *crontab, const char *name)
{
	for (size_t i = 0; i < crontab->nr_variables; i++)
		if (!strcmp(crontab->variables[i].name, name))
			return &crontab->variables[i];
	return NULL;
}

static const char *value_of(struct crontab *crontab, const char *name)
{
	struct variable *variable = find_variable(crontab, name);

	return variable ? variable->value : NULL;
}

static void set_variable(struct crontab *crontab, const struct variable *variable)
{
	struct variable *old = find_variable(crontab, variable->name);

	if (!old) {
		crontab->variables = need(realloc(crontab->variables, (crontab->nr_variables + 1) *
						  sizeof(*crontab->variables)));
		old = &crontab->variables[crontab->nr_variables++];
		old->name = need(strdup(variable->name));
	} else {
		free(old->value);
	}
	old->value = need(strdup(variable->value));
}

/* As one word of the shell */
static void print_quoted(FILE *to, const char *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,=-";

	if (*text && !text[strspn(text, plain)]) {
		fputs(text, to);
		return;
	}
	putc('\'', to);
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", to);
		else
			putc(*text, to);
	putc('\'', to);
}

static char *quoted(const char *text)
{
	size_t size;
	char *word;
	FILE *to = need(open_memstream(&word, &size));

	print_quoted(to, text);
	fclose(to);
	return word;
}

static char *environment_of(struct crontab *crontab)
{
	const char *home = value_of(crontab, "HOME");
	size_t size;
	char *text;
	FILE *to = need(open_memstream(&text, &size));

	if (home) {
		fputs(" -C ", to);
		print_quoted(to, home);
	}
	for (size_t i = 0; i < crontab->nr_variables; i++) {
		fprintf(to, " %s=", crontab->variables[i].name);
		print_quoted(to, crontab->variables[i].value);
	}
	fclose(to);
	return text;
}

/* The tube of jobs of a user, in the environment that holds here */
static const char *tube_of(struct crontab *crontab, const char *user)
{
	struct import *import = crontab->import;
	char *environment = environment_of(crontab);
	const char *shell = value_of(crontab, "SHELL");
	unsigned int others = 0;
	struct worker *worker;

	for (size_t i = 0; i < import->nr_workers; i++) {
		worker = &import->workers[i];
		if (strcmp(worker->user, user))
			continue;
		if (!strcmp(worker->environment, environment)) {
			free(environment);
			return worker->tube;
		}
		others++;
	}
	import->workers = need(realloc(import->workers,
				       (import->nr_workers + 1) * sizeof(*worker)));
	worker = &import->workers[import->nr_workers++];
	*worker = (struct worker){ .environment = environment, .user = need(strdup(user)),
				   .shell = quoted(shell && *shell ? shell : "sh") };
	if (others ? asprintf(&worker->tube, "%s-%u", *user ? user : "default", others + 1) < 0 :
	    asprintf(&worker->tube, "%s", *user ? user : "default") < 0)
		need(NULL);
	return worker->tube;
}

/* import_crontabs_end - say which workers have what cron had set for the commands of all files */
void import_crontabs_end(struct import *import)
{
	for (size_t i = 0; i < import->nr_workers; i++) {
		struct worker *worker = &import->workers[i];

		if (*worker->environment) {
			say("the worker of tube %s, as %s: twheel-run -n 1 -t %s env%s %s",
			    worker->tube, *worker->user ? worker->user : "the crontab's user",
			    worker->tube, worker->environment, worker->shell);
			fprintf(import->tab, "# worker: twheel-run -n 1 -t %s env%s %s\n",
				worker->tube, worker->environment, worker->shell);
		}
		free(worker->user);
		free(worker->environment);
		free(worker->shell);
		free(worker->tube);
	}
	free(import->workers);
}

static void take_zone(struct crontab *crontab, const char *text, const char *value)
{
	struct import *import = crontab->import;

	if (crontab->debian) {
		import_tell(import, "CRON_TZ has no effect in Debian's cron, and is left out");
		fprintf(import->tab, "# %s\n", text);
		return;
	}
	if (!crontab->cronie)
		import_name(import, "CRON_TZ=%s has no effect in Debian's cron; cronie heeds it, "
			    "and so does the tab. Say --debian or --cronie",
			    value);
	fprintf(import->tab, "CRON_TZ=%s\n", value);
	import->zone = true;
}

static void take_delay(struct crontab *crontab, const char *text, const char *value)
{
	struct import *import = crontab->import;

	if (!*value || strlen(value) > 4 || value[strspn(value, "0123456789")] ||
	    atoi(value) > 1440) {
		import_leave_out(import, text, "RANDOM_DELAY is minutes, from 0 to 1440");
		return;
	}
	if (!crontab->cronie && !crontab->anacron)
		import_name(import, "RANDOM_DELAY=%s has no effect in Debian's cron; to cronie it "
			    "is minutes, JITTER=%smin here. Say --debian or --cronie",
			    value, value);
	fprintf(import->tab, "JITTER=%smin\n", value);
	import->jitter = true;
}

/* Hours, of which the first is that in which anacron is started */
static void take_hours(struct crontab *crontab, const char *text, const char *value)
{
	unsigned int first, last;

	if (sscanf(value, "%2u-%2u", &first, &last) != 2 || first > 23 || last > 24) {
		import_leave_out(crontab->import, text, "START_HOURS_RANGE is hours, like 3-22");
		return;
	}
	crontab->start = first * 60;
	fprintf(crontab->import->tab, "# %s\n", text);
}

static void take_mail(struct import *import, const struct variable *variable)
{
	if (!*variable->value)
		import_tell(import, "%s is empty: as in cron, no mail is sent", variable->name);
	else
		import_name(import, "%s=%s: no mail is sent. twheel jobs history and the metrics "
			    "say what has failed; a command can send its output itself",
			    variable->name, variable->value);
}

static void take_setting(struct crontab *crontab, const char *text,
			 const struct variable *variable)
{
	static const char *const mail[] = {
		"MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING", NULL,
	};
	static const char *const own[] = { "LOGNAME", "USER", NULL };
	static const char chars[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	struct import *import = crontab->import;

	if (!strcmp(variable->name, "CRON_TZ")) {
		take_zone(crontab, text, variable->value);
		return;
	}
	if (!strcmp(variable->name, "RANDOM_DELAY") && !crontab->debian) {
		take_delay(crontab, text, variable->value);
		return;
	}
	if (!strcmp(variable->name, "START_HOURS_RANGE") && crontab->anacron) {
		take_hours(crontab, text, variable->value);
		return;
	}
	if (!*variable->name || isdigit(*variable->name) ||
	    variable->name[strspn(variable->name, chars)]) {
		import_leave_out(import, text, "this is no line of a crontab");
		return;
	}
	for (const char *at = variable->value; *at; at++)
		if (iscntrl((unsigned char)*at) && *at != '\t') {
			import_leave_out(import, text, "there is a control character in the value");
			return;
		}
	if (is_one_of(variable->name, mail)) {
		take_mail(import, variable);
	} else if (is_one_of(variable->name, own)) {
		import_tell(import, "%s is what cron itself sets, and is left out", variable->name);
	} else {
		import_name(import, "%s=%s: jobs have no environment; the line of their worker "
			    "has it",
			    variable->name, variable->value);
		set_variable(crontab, variable);
	}
	fprintf(import->tab, "# %s\n", text);
}

/* Jobs */

/*
 * What the shell gets, where a percent sign and perhaps a backslash have one before it. Gives
 * false if there is input for it, after a percent sign that has none.
 */
static bool take_command(const struct crontab *crontab, const char *command, char *to, bool *halved)
{
	*halved = false;
	for (; *command; command++) {
		if (*command == '%')
			return false;
		if (*command == '\\' && command[1] == '%') {
			command++;
		} else if (*command == '\\' && command[1] == '\\') {
			*halved = !crontab->cronie;
			*to++ = *command++;
			if (*halved)
				continue;
		}
		*to++ = *command;
	}
	*to = 0;
	return true;
}

static void print_command(struct import *import, const char *command)
{
	size_t word = strcspn(command, BLANKS);

	/* The body must not begin with a word that would be an option. */
	if (memchr(command, '=', word) || !strncmp(command, "--", 2))
		fputs("-- ", import->tab);
	import_percent(import, command);
}

static const char *name_of_field(unsigned int field)
{
	static const char *const names[] = {
		"minute", "hour", "day of the month", "month", "day of the week",
	};

	return names[field];
}

/*
 * The fields of a time, as a tab has them. Gives why there are none, or NULL. Where one of the two
 * days never fits, the other one decides; but with a star, both have to fit.
 */
static const char *take_fields(struct crontab *crontab, char **when, char **made)
{
	static char why[200];
	const char *program = crontab->cronie ? "cronie" : "Debian's cron";
	bool empty[5] = { false };

	for (unsigned int i = 0; i < 5; i++) {
		enum cron_reading reading;

		made[i] = need(malloc(2 * strlen(when[i]) + 16));
		reading = cron_field(i, when[i], crontab->cronie, made[i]);
		empty[i] = reading == CRON_EMPTY;
		snprintf(why, sizeof(why), "%s takes no '%.60s' as the %s, and runs it never",
			 program, when[i], name_of_field(i));
		if (reading == CRON_REFUSED)
			return why;
		if (reading == CRON_OTHER)
			import_name(crontab->import, "'%s' as the %s is '%s' to %s, and so it is "
				    "in the tab",
				    when[i], name_of_field(i), made[i], program);
	}
	for (unsigned int i = 0; i < 5; i++) {
		unsigned int other = i == CRON_DAY ? CRON_WEEKDAY : CRON_DAY;

		if (!empty[i])
			continue;
		snprintf(why, sizeof(why), "'%.60s' as the %s never is to %s, and it runs it never",
			 when[i], name_of_field(i), program);
		if ((i != CRON_DAY && i != CRON_WEEKDAY) || empty[other] || *when[other] == '*')
			return why;
		strcpy(made[i], "*");
		import_name(crontab->import, "'%s' as the %s never is to %s: the %s alone "
			    "decides, in the tab, too",
			    when[i], name_of_field(i), program, name_of_field(other));
	}
	return NULL;
}

/* With six fields, programs count the days of the week in two ways. */
static const char *check_seconds(char **when)
{
	static char why[300];

	if (!strpbrk(when[5], "0123456789") || when[5][0] == '*')
		return NULL;
	snprintf(why, sizeof(why), "'%.60s' as the day of the week: in six fields 1 is Sunday to "
		 "Quartz and twheeld, and Monday to node-cron, croner, Spring and Go's cron: "
		 "write names, like MON-FRI",
		 when[5]);
	return why;
}

static const char *check_nickname(const char *name)
{
	static const char *const names[] = {
		"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly",
		NULL,
	};

	if (!strcmp(name, "@reboot"))
		return "@reboot is no time: let a service do it";
	return is_one_of(name, names) ? NULL :
		"cron has no such name; a tab has @every 90s, and @at 2027-01-01T00:00Z";
}

static void print_job(struct crontab *crontab, char **when, unsigned int words, const char *user,
		      const char *command)
{
	struct import *import = crontab->import;
	const char *tube = tube_of(crontab, user);

	import_fields(import, crontab->words);
	for (unsigned int i = 0; i < words; i++)
		fprintf(import->tab, "%s ", when[i]);
	if (strcmp(tube, "default"))
		fprintf(import->tab, "TUBE=%s ", tube);
	print_command(import, command);
	putc('\n', import->tab);
}

static const char *check_job(const char *user, const char *rest)
{
	/* The user is a word of the worker's line, too. */
	static const char chars[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	char word[100];

	snprintf(word, sizeof(word), "%.*s", (int)strcspn(rest, BLANKS), rest);
	if (is_field(*user ? user : word) && (*user || *rest))
		return "one more field of a time? With --seconds, the first of six is that "
		       "of seconds. (In a tab, FIELDS=6 stands above lines with seconds, and before a body "
		       "that begins so --)";
	if (user[strspn(user, chars)])
		return "there should be a user before the command";
	return *rest ? NULL : "there is no command";
}

static void import_job(struct crontab *crontab, const char *text)
{
	struct import *import = crontab->import;
	char *copy = need(strdup(text)), *rest = copy, *when[FIELDS_MOST] = { NULL };
	char *made[5] = { NULL }, *command = need(malloc(strlen(text) + 1));
	const char *why = NULL, *user = "";
	unsigned int words;
	bool halved;

	if (*rest == '-') {
		import_tell(import, "the '-' before the time, which to cronie is 'not in the "
			    "log', means nothing here");
		rest++;
	}
	words = *rest == '@' ? 1 : crontab->words;
	for (unsigned int i = 0; i < words; i++)
		when[i] = take_word(&rest);
	if (crontab->of_system)
		user = take_word(&rest);
	why = check_job(user, rest);
	if (!why && words == 1)
		why = check_nickname(when[0]);
	if (!why && !take_command(crontab, rest, command, &halved))
		why = "what follows % is input, and jobs have none: write printf TEXT | COMMAND";
	if (!why && words == 6)
		why = check_seconds(when);
	if (!why && words == 5)
		why = take_fields(crontab, when, made);
	if (why) {
		import_leave_out(import, text, "%s", why);
	} else {
		if (halved && !crontab->debian)
			import_name(import, "'\\\\' in the command is '\\' to Debian's cron, and "
				    "so it is in the tab; cronie keeps both. Say --debian or "
				    "--cronie");
		print_job(crontab, words == 5 ? made : when, words, user, command);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(made); i++)
		free(made[i]);
	free(command);
	free(copy);
}

static void import_anacron_job(struct crontab *crontab, const char *text)
{
	struct import *import = crontab->import;
	char *copy = need(strdup(text)), *rest = copy, when[60];
	char *period = take_word(&rest), *delay = take_word(&rest), *name = take_word(&rest);
	const char *why = anacron_when(period, delay, crontab->start, when, sizeof(when));

	if (!*rest)
		why = "there is no command";
	else if (rest[strlen(rest) - 1] == '\\')
		why = "the line goes on in the next one: make one of both";
	if (why) {
		import_leave_out(import, text, "%s", why);
	} else {
		import_fields(import, 5);
		fputs(when, import->tab);
		import_schedule_name(import, name);
		fprintf(import->tab, " MISFIRE=once TUBE=%s ", tube_of(crontab, "root"));
		print_command(import, rest);
		putc('\n', import->tab);
	}
	free(copy);
}

static void import_line(struct crontab *crontab, const struct line *line, const char *text)
{
	struct import *import = crontab->import;
	struct variable variable;

	if (line->zero) {
		import_leave_out(import, text, "there is a byte of 0 in this line");
	} else if (strchr(text, '\r')) {
		import_leave_out(import, "", "a carriage return stands in this line: are these "
				 "two? Give the file the line ends of Unix");
	} else if (!*text || *text == '#') {
		fprintf(import->tab, "%s\n", text);
	} else if (take_variable(text, &variable)) {
		take_setting(crontab, text, &variable);
		free(variable.name);
		free(variable.value);
	} else if (is_job(text) && crontab->anacron) {
		import_anacron_job(crontab, text);
	} else if (is_job(text)) {
		import_job(crontab, text);
	} else {
		import_leave_out(import, text, "this is no line of a crontab");
	}
}

/* "12 lines with a user (root, www-data)" */
static void tell_kind(struct crontab *crontab)
{
	size_t jobs = 0, size;
	char *users, last[60] = "";
	FILE *to = need(open_memstream(&users, &size));

	for (size_t i = 0; i < crontab->count; i++) {
		const char *text = text_of(crontab, i);
		char *copy, *rest, *user;

		if (!is_job(text))
			continue;
		jobs++;
		rest = after_fields(crontab, text, &copy);
		user = take_word(&rest);
		if (ftell(to) < 200 && strcmp(last, user))
			fprintf(to, "%s%s", ftell(to) ? ", " : "", user);
		snprintf(last, sizeof(last), "%s", user);
		free(copy);
	}
	fclose(to);
	crontab->import->line = 0;
	import_tell(crontab->import, "%zu line%s %s%s%s%s%s", jobs, jobs == 1 ? "" : "s",
		    crontab->of_system ? "with a user" : "without a user",
		    crontab->of_system && jobs ? " (" : "", crontab->of_system && jobs ? users : "",
		    crontab->of_system && jobs ? ")" : "",
		    crontab->words == 6 ? ", of six fields, with seconds" : "");
	free(users);
}

/* All jobs are anacron's, and there is one. */
static bool is_anacron(const struct crontab *crontab)
{
	bool found = false;

	for (size_t i = 0; i < crontab->count; i++) {
		const char *text = text_of(crontab, i);

		if (is_job(text) && !anacron_is_line(text))
			return false;
		found = found || is_job(text);
	}
	return found;
}

static bool decide_all(struct crontab *crontab, bool of_system)
{
	struct import *import = crontab->import;

	crontab->anacron = is_anacron(crontab);
	if (!crontab->anacron) {
		if (!decide(crontab, of_system))
			return false;
		tell_kind(crontab);
		return true;
	}
	import_tell(import, "an anacrontab, whose jobs are root's");
	import_name(import, "anacron counts days from the last run, and jobs wait for each other; "
		    "the tab has fixed times, from START_HOURS_RANGE or 07:30 on, and MISFIRE=once "
		    "makes up for what was missed");
	return true;
}

static void release(struct crontab *crontab)
{
	for (size_t i = 0; i < crontab->count; i++)
		free(crontab->lines[i].text);
	for (size_t i = 0; i < crontab->nr_variables; i++) {
		free(crontab->variables[i].name);
		free(crontab->variables[i].value);
	}
	free(crontab->lines);
	free(crontab->variables);
}

/**
 * import_crontab - the jobs of a crontab
 * @of_system: what its path says, should its lines not: it has users
 */
void import_crontab(struct import *import, FILE *file, bool of_system)
{
	struct crontab crontab = {
		.import = import, .cronie = import->jobs->cron == CRON_CRONIE,
		.debian = import->jobs->cron == CRON_DEBIAN,
		.words = import->jobs->seconds ? 6 : 5, .start = ANACRON_STARTS,
	};

	read_lines(&crontab, file);
	if (decide_all(&crontab, of_system)) {
		if (crontab.carriage)
			import_name(import, "lines end with CR LF: cron gives the CR to the "
				    "command, and it is left out here");
		for (size_t i = 0; i < crontab.count; i++) {
			import->line = i + 1;
			import_line(&crontab, &crontab.lines[i], text_of(&crontab, i));
			import_place(import);
		}
	}
	release(&crontab);
}

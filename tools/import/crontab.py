# SPDX-License-Identifier: GPL-2.0
"""
Crontabs, as lines of a tab: those of a user, those of the system, in which a user stands before
each command, and anacron's.

What fires, and when, is as with the cron that had them. Debian's is it, unless cronie is said:
what the two, or a tab, read otherwise is named. Variables go to the line of a worker.
"""
import functools
import os
import pwd
import re
import shlex

import cron_field
from tab import BLANKS, decoded, encoded, has_control, percent, say

# The minute of the day at which Debian's timer starts anacron; again each hour
ANACRON_STARTS = 7 * 60 + 30
NICKNAMES = '@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'
# Words of the shell, and programs that crontabs have, also where they are not installed
PROGRAMS = set('''cd test [ [[ if for while until case export echo exec eval . source set umask
    ulimit true false : php python python2 python3 perl ruby node java bash sh zsh ksh curl wget
    rsync docker npm bundle rake sudo flock certbot mysqldump pg_dump chronic aws nice ionice
    sleep timeout env find rm tar logger systemctl'''.split())
FOLDERS = '/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/local/sbin'
USERS = set('''root www-data apache nobody daemon munin smmsp amavis logcheck uucp ubuntu ec2-user
    vagrant tomcat zabbix postgres gitlab'''.split())
# Users of Debian, which might be commands as well
EITHER = set('backup bin games git list mail man mysql news proxy redis sync sys'.split())
MAIL = 'MAILTO', 'MAILFROM', 'CONTENT_TYPE', 'CONTENT_TRANSFER_ENCODING'
MAILTO_MOST = 1023      # bytes of MAILTO= in a tab


def take_word(line):
    '''A word of a line, and what follows it, without blanks before either'''
    found = re.match('[ \t]*([^ \t]*)[ \t]*', line)
    return found[1], line[found.end():]


def take_words(line, count):
    words = []
    for _ in range(count):
        word, line = take_word(line)
        words.append(word)
    return words, line


def is_job(text):
    '''What a line that is a job begins with; cronie has a "-" before it for "not in the log".'''
    return re.match('-?[0-9*@]', text)


def take_variable(text):
    '''Name and value of NAME = VALUE, as cron takes it; None: it is no such line'''
    found = re.fullmatch(r'''(?:'([^']*)'|"([^"]*)"|(?!['"])([^ \t=]*))[ \t]*=[ \t]*'''
                         r'''(?:'([^']*)'[ \t]*|"([^"]*)"[ \t]*|(?![ \t'"])(.*))''', text, re.S)
    if not found:
        return None
    groups = [group or '' for group in found.groups()]
    return ''.join(groups[:3]), ''.join(groups[3:]).rstrip(BLANKS)


def body_of(command):
    '''The body must not begin with a word that would be an option.'''
    is_option = '=' in take_word(command)[0] or command.startswith('--')
    return ('-- ' if is_option else '') + percent(command)


# What a file is


@functools.lru_cache(None)
def is_account(word):
    try:
        return bool(pwd.getpwnam(word))
    except KeyError:
        return False


@functools.lru_cache(None)
def is_program(word):
    return word in PROGRAMS or any(os.access(folder + '/' + word, os.X_OK) for folder in FOLDERS)


def is_command(word):
    '''Can't it be a name?'''
    return not re.fullmatch('[a-zA-Z0-9_.:-]*', word) or is_program(word)


def is_user(word):
    return word in USERS or (is_account(word) and word not in EITHER)


def is_field(word):
    '''A field of a time, where a user or a command should be: the line has six or seven. Or "".'''
    return re.fullmatch('(?:[0-9*?L][0-9*?,/#LW-]*)?', word) or \
        (word[:3].lower() in cron_field.DAYS and word[3:4] in ('', '-', ',', '#', 'L'))


def sort_of(word, rest):
    '''Is the word a user, 1, or the beginning of a command, -1? 0: it may be either.'''
    if is_field(word):
        return 0
    if not rest:
        return -1
    if is_user(word):
        return int(not is_command(word))
    if is_command(word):
        return 0 if is_account(word) else -1
    return int(is_program(take_word(rest)[0]))


class Crontab:
    def __init__(self, tab, data, options):
        self.tab, self.options = tab, options
        self.words = 6 if options.seconds else 5        # that say when
        self.of_system = self.anacron = False
        self.start = ANACRON_STARTS
        self.variables = {}
        lines = data.split(b'\n')
        if not lines[-1]:
            lines.pop()
        # There are lines with CR LF.
        self.carriage = any(line[-1:] == b'\r' for line in lines)
        lines = [decoded(line[:-1] if line[-1:] == b'\r' else line) for line in lines]
        if lines:
            lines[0] = lines[0].removeprefix('\ufeff')
        self.lines = [line.lstrip(BLANKS) for line in lines]

    def after_time(self, text):
        text = text.split('\0')[0]
        return take_words(text, 1 if text.lstrip('-')[:1] == '@' else self.words)[1]

    def sort_of_file(self):
        '''By all its lines: has it users? 0, and an example, if that is not clear.'''
        sorts, example = set(), ''
        for number, text in enumerate(self.lines, 1):
            if take_variable(text) or not is_job(text):
                continue
            word, rest = take_word(self.after_time(text))
            sort = sort_of(word, rest)
            if not is_field(word) or sort:
                sorts.add(sort)
            if not sort and not is_field(word):
                example = word
                self.tab.line = number
        if 1 in sorts and -1 in sorts:
            return 0, 'some lines have a user after the time, and some have none'
        if 1 in sorts:
            return 1, example
        return (0 if sorts == {0} else -1), example

    def decide(self, of_system):
        sort, example = self.sort_of_file()
        mixed, said = ' ' in example, self.options.users
        if said is not None:
            self.of_system = said
        elif sort or (of_system and not mixed):
            self.of_system = sort >= 0
        else:
            self.tab.leave_out(self.tab.path, (
                example + ': say' if mixed else
                "is '%s' after the time a user, or a command? Say" % example) +
                ' --user or --system, and import again')
            return False
        self.tell_kind()
        return True

    def tell_kind(self):
        '''"12 lines with a user (root, www-data)"'''
        users, last, jobs = '', None, [text for text in self.lines if is_job(text)]
        for text in jobs:
            user = take_word(self.after_time(text))[0]
            if user != last and len(users) < 200:
                users += (', ' if users else '') + user
            last = user
        self.tab.line = 0
        self.tab.tell('%d line%s with%s%s' % (
            len(jobs), '' if len(jobs) == 1 else 's', (
                ' a user' + (' (%s)' % users if jobs else '')) if self.of_system else 'out a user',
            ', of six fields, with seconds' if self.words == 6 else ''))

    def tell_anacron(self):
        self.anacron = True
        self.tab.tell("an anacrontab, whose jobs are root's")
        self.tab.name('anacron counts days from the last run, and jobs wait for each other; the tab has '
                      'fixed times, from START_HOURS_RANGE or 07:30 on, and MISFIRE=once makes up for '
                      'what was missed')

    # Variables, and workers

    def tube_of(self, user):
        '''The tube of jobs of a user, in the environment that holds here'''
        home, shell = self.variables.get('HOME'), self.variables.get('SHELL')
        environment = ' -C ' + shlex.quote(home) if home is not None else ''
        for name, value in self.variables.items():
            environment += ' %s=%s' % (name, shlex.quote(value))
        others = 0
        for worker in self.tab.workers:
            if worker[:2] == (user, environment):
                return worker[3]
            others += worker[0] == user
        tube = (user or 'default') + ('-%d' % (others + 1) if others else '')
        self.tab.workers.append((user, environment, shlex.quote(shell or 'sh'), tube))
        return tube

    def take_zone(self, text, value):
        if self.options.debian:
            self.tab.tell("CRON_TZ has no effect in Debian's cron, and is left out")
            self.tab.put('# ' + text)
            return
        if not self.options.cronie:
            self.tab.name("CRON_TZ=%s has no effect in Debian's cron; cronie heeds it, and so does "
                          'the tab. Say --debian or --cronie' % value)
        self.tab.put_setting('CRON_TZ', value, '')

    def take_delay(self, text, value):
        if not re.fullmatch('[0-9]{1,4}', value) or int(value) > 1440:
            self.tab.leave_out(text, 'RANDOM_DELAY is minutes, from 0 to 1440')
            return
        if not self.options.cronie and not self.anacron:
            self.tab.name("RANDOM_DELAY=%s has no effect in Debian's cron; to cronie it is minutes, "
                          'JITTER=%smin here. Say --debian or --cronie' % (value, value))
        self.tab.put_setting('JITTER', value + 'min', 0)

    def take_hours(self, text, value):
        '''Hours, of which the first is that in which anacron is started'''
        found = re.match('([0-9]{1,2})-([0-9]{1,2})', value)
        if not found or int(found[1]) > 23 or int(found[2]) > 24:
            self.tab.leave_out(text, 'START_HOURS_RANGE is hours, like 3-22')
            return
        self.start = int(found[1]) * 60
        self.tab.put('# ' + text)

    def take_mail(self, name, value):
        '''cron mails what is printed; here a worker mails what has failed.'''
        if name != 'MAILTO' or len(encoded(value)) > MAILTO_MOST:
            self.tab.name('%s=%s is left out: the worker that sends mail says such things' %
                          (name, value))
            self.tab.put('# %s=%s' % (name, value))
            return
        if value:
            self.tab.name('MAILTO=%s: not what is printed is mailed, but what fails, by a worker: '
                          'twheel-run -t alarms python3 /usr/share/doc/twheeld/examples/twheeld-mail' %
                          value)
        else:
            self.tab.tell('MAILTO is empty: as in cron, no mail is sent')
        self.tab.put_setting('MAILTO', value, '')
        self.tab.put_setting('ON_FAILURE', 'alarms' if value else '', '')

    def take_setting(self, text, name, value):
        tab = self.tab
        if name == 'CRON_TZ':
            self.take_zone(text, value)
        elif name == 'RANDOM_DELAY' and not self.options.debian:
            self.take_delay(text, value)
        elif name == 'START_HOURS_RANGE' and self.anacron:
            self.take_hours(text, value)
        elif name in MAIL and not has_control(value):
            self.take_mail(name, value)
        elif not re.fullmatch('[a-zA-Z_][a-zA-Z0-9_]*', name):
            tab.leave_out(text, 'this is no line of a crontab')
        elif has_control(value.replace('\t', '')):
            tab.leave_out(text, 'there is a control character in the value')
        else:
            if name in ('LOGNAME', 'USER'):
                tab.tell(name + ' is what cron itself sets, and is left out')
            else:
                tab.name('%s=%s: jobs have no environment; the line of their worker has it' %
                         (name, value))
                self.variables[name] = value
            tab.put('# ' + text)

    # Jobs

    def command_of(self, command):
        '''
        What the shell gets, where a percent sign and perhaps a backslash have one before it. None if
        there is input for it, after a percent sign that has none.
        '''
        parts = re.findall(r'\\[%\\]|.', command, re.S)
        if '%' in parts:
            return None
        if '\\\\' in parts and not self.options.cronie and not self.options.debian:
            self.tab.name(r"'\\' in the command is '\' to Debian's cron, and so it is in the tab; "
                          'cronie keeps both. Say --debian or --cronie')
        halved = '\\\\' if self.options.cronie else '\\'
        return ''.join({'\\%': '%', '\\\\': halved}.get(part, part) for part in parts)

    def take_fields(self, when):
        """
        The fields of a time, as a tab has them, and why there are none, or None. Where one of the
        two days never fits, the other one decides; but with a star, both have to fit.
        """
        program = 'cronie' if self.options.cronie else "Debian's cron"
        made = []
        for which, (text, name) in enumerate(zip(when, cron_field.NAMES)):
            one = cron_field.read(which, text, self.options.cronie)
            if one is None:
                return made, "%s takes no '%.60s' as the %s, and runs it never" % (program, text, name)
            if one and one != text:
                self.tab.name("'%s' as the %s is '%s' to %s, and so it is in the tab" % (
                    text, name, one, program))
            made.append(one)
        for which in (which for which in range(5) if not made[which]):
            name, other = cron_field.NAMES[which], {2: 4, 4: 2}.get(which)
            if other is None or made[other] == '' or when[other][0] == '*':
                return made, "'%.60s' as the %s never is to %s, and it runs it never" % (
                    when[which], name, program)
            made[which] = '*'
            self.tab.name("'%s' as the %s never is to %s: the %s alone decides, in the tab, too" % (
                when[which], name, program, cron_field.NAMES[other]))
        return made, None

    def why_no_job(self, when, user, rest):
        if is_field(user or take_word(rest)[0]) and (user or rest):
            return ('one more field of a time? With --seconds, the first of six is that of seconds. '
                    '(In a tab, FIELDS=6 stands above lines with seconds, and before a body that '
                    'begins so --)')
        # The user is a word of the worker's line, too.
        if not re.fullmatch('[a-zA-Z0-9_.-]*', user):
            return 'there should be a user before the command'
        if not rest:
            return 'there is no command'
        if when == ['@reboot']:
            return '@reboot is no time: let a service do it'
        if len(when) == 1 and when[0] not in NICKNAMES:
            return 'cron has no such name; a tab has @every 90s, and @at 2027-01-01T00:00Z'
        # With six fields, programs count the days of the week in two ways.
        if len(when) == 6 and re.match(r'(?!\*).*[0-9]', when[5]):
            return ("'%.60s' as the day of the week: in six fields 1 is Sunday to Quartz and twheeld, "
                    "and Monday to node-cron, croner, Spring and Go's cron: write names, like MON-FRI" %
                    when[5])
        return None

    def import_job(self, text):
        tab, user, rest = self.tab, '', text
        if text[0] == '-':
            tab.tell("the '-' before the time, which to cronie is 'not in the log', means nothing here")
            rest = text[1:]
        when, rest = take_words(rest, 1 if rest[:1] == '@' else self.words)
        if self.of_system:
            user, rest = take_word(rest)
        why = self.why_no_job(when, user, rest)
        command = None if why else self.command_of(rest)
        if not why and command is None:
            why = 'what follows % is input, and jobs have none: write printf TEXT | COMMAND'
        if not why and len(when) == 5:
            when, why = self.take_fields(when)
        if why:
            tab.leave_out(text, why)
            return
        tube = self.tube_of(user)
        tab.put_job(self.words, ' '.join(when) + (' TUBE=' + tube if tube != 'default' else '') +
                    ' ' + body_of(command))

    def import_anacron_job(self, text):
        (period, delay, name), command = take_words(text, 3)
        when, why = anacron_when(period, delay, self.start)
        if not command:
            why = 'there is no command'
        elif command[-1] == '\\':
            why = 'the line goes on in the next one: make one of both'
        if why:
            self.tab.leave_out(text, why)
            return
        self.tab.put_job(5, '%s%s MISFIRE=once TUBE=%s %s' % (
            when, self.tab.schedule_name(name), self.tube_of('root'), body_of(command)))

    def import_line(self, text):
        variable = take_variable(text)
        if '\0' in text:
            self.tab.leave_out(text.split('\0')[0], 'there is a byte of 0 in this line')
        elif '\r' in text:
            self.tab.leave_out('', 'a carriage return stands in this line: are these two? Give the '
                               'file the line ends of Unix')
        elif not text or text[0] == '#':
            self.tab.put(text)
        elif variable:
            self.take_setting(text, *variable)
        elif not is_job(text):
            self.tab.leave_out(text, 'this is no line of a crontab')
        elif self.anacron:
            self.import_anacron_job(text)
        else:
            self.import_job(text)


# Anacron counts the days from the last time that a job was run. A tab has fixed times, and
# MISFIRE=once makes up for one that was missed.


def is_anacron_line(line):
    '''Is it no line of a crontab: is the third word one that no time has?'''
    return re.match(r'\s*([0-9]{1,4}|@\S*)\s+[0-9]{1,4}\s+[a-z]', line)


def anacron_when(period, delay, start):
    '''The time that a period in days, and a delay in minutes, are in a tab; or why there is none'''
    known = {'1': '* * *', '@daily': '* * *', '7': '* * 0', '@weekly': '* * 0', '@monthly': '1 * *',
             '@yearly': '1 1 *', '@annually': '1 1 *'}
    if not re.fullmatch('[0-9]{1,4}', delay):
        return None, 'the delay is minutes, a number'
    minute = (start + int(delay)) % 1440
    if period in known:
        return '%d %d %s' % (minute % 60, minute // 60, known[period]), None
    if not re.fullmatch('[0-9]{1,4}', period) or not 1 <= int(period) <= 366:
        return None, 'the period is days from 1 to 366, or @daily, @weekly, @monthly or @yearly'
    return '@every %dd' % int(period), None


def read(tab, data, options):
    '''The jobs of a crontab; should its lines not say whether it has users, its path does.'''
    crontab = Crontab(tab, data, options)
    paths = tab.path, os.path.realpath(tab.path)
    of_system = any('cron.d/' in path or path == '/etc/crontab' for path in paths)
    jobs = [text for text in crontab.lines if is_job(text)]
    if jobs and all(map(is_anacron_line, jobs)):
        crontab.tell_anacron()
    elif not crontab.decide(of_system):
        return
    if crontab.carriage:
        tab.name('lines end with CR LF: cron gives the CR to the command, and it is left out here')
    for tab.line, text in enumerate(crontab.lines, 1):
        crontab.import_line(text)


def tell_workers(tab):
    '''Say which workers have what cron had set for the commands of all files.'''
    for user, environment, shell, tube in tab.workers:
        if environment:
            line = 'twheel-run -n 1 -t %s env%s %s' % (tube, environment, shell)
            say('the worker of tube %s, as %s: %s' % (tube, user or "the crontab's user", line))
            tab.put('# worker: ' + line)

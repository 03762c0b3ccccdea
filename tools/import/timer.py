# SPDX-License-Identifier: GPL-2.0
"""
A timer of systemd, as lines of a tab. What its times mean, systemd-analyze says: of OnCalendar=
in a form in which all is there: DAYS YEAR-MONTH-DAY HOUR:MINUTE:SECOND ZONE, where days and zone
may be missing.
"""
import os
import re
import subprocess

from tab import BLANKS, decoded, percent

NORMAL = re.compile(r'(?:(?P<days>[a-zA-Z]\S*) +)?(?P<year>[^- ]+)-(?P<month>[^-~ ]+)(?P<last>[-~])'
                    r'(?P<day>\S+)\s+(?P<hour>[^: ]+):(?P<minute>[^: ]+):(?P<second>\S+)'
                    r'(?:\s+(?P<zone>\S+))?')
WEEKS = '01-07', '08-14', '15-21', '22-28'
# What only says how a timer is served, or would be so anyway
NOTHING = 'AccuracySec', 'RemainAfterElapse', 'FixedRandomDelay', 'DeferReactivation'


def analyze(what, text, key):
    '''What systemd-analyze says of a text; None: it does not understand it, or is not there.'''
    try:
        done = subprocess.run(['systemd-analyze', what, '--', text], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env={**os.environ, 'LC_ALL': 'C'}, check=False)
    except FileNotFoundError:
        return None
    found = re.search(key + ': (.*)', decoded(done.stdout))
    return found and found[1]


def turn_days(normal):
    '''
    Sun in the days 1 to 7 is the first Sunday, and ~01 the last day of a month. Gives why there is
    nothing like it.
    '''
    if normal['last'] == '~':
        if not normal['day'].isdigit():
            return 'these times have no like here'
        back = int(normal['day']) - 1
        normal['day'] = 'L-%d' % back if back > 0 else 'L'
    if not normal['days'] or normal['day'] == '*':
        return None
    if normal['day'] not in WEEKS or '-' in normal['days']:
        return "a day of the week and one of the month would be 'or' here, not 'and'"
    week = WEEKS.index(normal['day']) + 1
    normal['days'] = ','.join('%s#%d' % (day, week) for day in normal['days'].split(','))
    normal['day'] = '*'
    return None


def understand(calendar):
    '''The parts of an OnCalendar=, as a tab has them; or why there are none'''
    text = analyze('calendar', calendar, 'Normalized form')
    if not text:
        return None, 'systemd-analyze does not understand it, or is not there'
    found = NORMAL.match(text)
    if not found:
        return None, 'these times have no like here'
    normal = {name: (part or '').replace('..', '-') for name, part in found.groupdict().items()}
    zone = normal.pop('zone')
    if any('.' in part for part in normal.values()):
        return None, 'fractions of a second are not there'
    normal['zone'] = zone
    return normal, turn_days(normal)


class Timer:
    def __init__(self, tab):
        self.tab = tab
        self.calendars = []     # each with its line
        self.unit, self.jitter, self.persistent = None, 0, False

    def take_jitter(self, text, value):
        us = int(analyze('timespan', value, 's') or -1)
        if us % 1000000:
            self.tab.leave_out(text, 'JITTER is in whole seconds here, up to 1d')
            us = 0
        self.jitter = us // 1000000

    def take_setting(self, text):
        key, equals, value = (part.strip(BLANKS) for part in text.partition('='))
        if not equals:
            self.tab.leave_out(text, 'this is no setting')
        elif key == 'OnCalendar':
            self.calendars = self.calendars + [(value, self.tab.line)] if value else []
        elif key == 'Unit':
            self.unit = self.unit or value
        elif key == 'RandomizedDelaySec':
            self.take_jitter(text, value)
        elif key == 'Persistent':
            self.persistent = value[:1] in tuple('1yYtT') or value.lower() == 'on'
        elif key not in NOTHING and key.startswith('On'):
            self.tab.leave_out(text, key + '= is no time of the day; @every 1h is something like it')
        elif key not in NOTHING:
            self.tab.leave_out(text, key + '= has no like here')

    def name_of(self, number):
        '''Only names that the server takes, and the first of several lines has it as it is.'''
        name = os.path.basename(self.tab.path)[:-len('.timer')]
        if not re.fullmatch(r'(?!-)[a-zA-Z0-9+/;.$_()-]{1,190}', name):
            return ''
        return 'NAME=%s%s ' % (name, '.%d' % (number + 1) if number else '')

    def put_calendar(self, number, calendar, line):
        self.tab.line = line
        normal, why = understand(calendar)
        if why:
            self.tab.leave_out(calendar, why)
            return
        normal['days'] = normal['days'] or '?'
        text = '{second} {minute} {hour} {day} {month} {days} {year} '.format(**normal)
        text += self.name_of(number)
        if normal['zone']:
            text += 'CRON_TZ=%s ' % normal['zone']
        if self.jitter:
            text += 'JITTER=%d ' % self.jitter
        if self.persistent:
            text += 'MISFIRE=once '
        unit = self.unit or os.path.basename(self.tab.path)[:-len('timer')] + 'service'
        self.tab.put_job(7, text + 'systemctl start ' + percent(unit))


def read(tab, data):
    '''The times of a timer, and what it starts'''
    timer, ours = Timer(tab), False
    tab.tell('a timer of systemd')
    for tab.line, text in enumerate(decoded(data).split('\n'), 1):
        text = re.split('[\r\0]', text)[0].strip(BLANKS)
        if text[:1] == '[':
            ours = text == '[Timer]'
        elif ours and text and text[0] not in '#;':
            timer.take_setting(text)
    tab.line = 0
    if tab.path.endswith('@.timer'):
        tab.leave_out(tab.path, "this is a template: import a file that has an instance's name, like "
                      'x@1.timer')
    elif not timer.calendars:
        tab.leave_out(tab.path, 'there is no time, OnCalendar=, in [Timer]')
    else:
        for number, (calendar, line) in enumerate(timer.calendars):
            timer.put_calendar(number, calendar, line)

# SPDX-License-Identifier: GPL-2.0
"""
The tab that is made: its lines, where each comes from, and what is said to the user.
"""
import os
import re
import signal
import subprocess
import sys

BLANKS = ' \t'


def encoded(text):
    try:
        return text.encode('utf-8', 'surrogateescape')
    except UnicodeEncodeError:
        return text.encode('utf-8', 'replace')


def decoded(data):
    return data.decode('utf-8', 'surrogateescape')


def has_control(text):
    return re.search('[\0-\x1f\x7f]', text)


def printable(text):
    '''Without control sequences of a terminal'''
    return re.sub('[^ -~]', '?', text)


def say(text):
    sys.stderr.buffer.write(encoded('twheel: %s\n' % text))
    sys.stderr.flush()


def number_of(text):
    '''The number that a text begins with, or 0'''
    found = re.match('[+-]?[0-9]+', (text or '').lstrip())
    return int(found[0]) if found else 0


def is_word(text):
    '''Has a text, which is to be a word of a line, no blank, and no other line?'''
    return bool(text) and min(text) > ' '


def is_true(text):
    '''As YAML and Java have it'''
    return (text or '').lower() in ('true', 'yes', 'on')


def percent(text):
    '''A text in which a percent sign means nothing'''
    return text.replace('%', '%%')


def java_zone(zone):
    '''CRON_TZ=, where Java says GMT+08:00, too: that is Etc/GMT-8'''
    found = re.fullmatch('GMT([-+])([0-9]{1,2})(:?00)?', zone)
    if found:
        zone = 'Etc/GMT%s%d' % ('-' if found[1] == '+' else '+', int(found[2]))
    return ' CRON_TZ=' + zone


class Tab:
    def __init__(self):
        self.lines = []         # each a text, and the path and line that it comes from
        self.path, self.line = '', 0
        self.fields = 5         # that times have now
        self.workers = []       # of crontabs
        # Settings that the file has said, which hold for the lines after it
        self.settings = {}
        self.wrong = False      # something is not in the tab, or means something else there

    def at(self, path, line):
        self.path, self.line = path, line

    def begin_file(self, path):
        self.at(path, 0)
        self.put('# ' + path)
        # Without the settings of the file before
        for name, none in self.settings.items():
            self.put('%s=%s' % (name, none))
        self.settings = {}

    def put(self, text):
        self.lines += [[line, self.path, self.line] for line in text.split('\n')]

    def put_setting(self, name, value, none):
        self.put('%s=%s' % (name, value))
        self.settings[name] = none

    def put_job(self, fields, text):
        '''A schedule, whose time has so many fields'''
        if fields != self.fields:
            self.put('FIELDS=%d' % fields)
        self.fields = fields
        self.put(text)

    def tell(self, why):
        '''Say what a file was taken for, or what only informs'''
        place = '%s:%d' % (self.path, self.line) if self.line else self.path
        say('%s: %s' % (place, printable(why)))

    def name(self, why):
        '''Say what becomes of a line that the tab can't have as it was'''
        self.tell(why)
        self.wrong = True

    def leave_out(self, text, why):
        '''A line can't be said in a tab'''
        self.name(why)
        text = re.sub('[\0-\x08\n-\x1f\x7f]', '?', text)
        self.put('# left out: ' + printable(why) + (text and ': ' + text))

    def schedule_name(self, name):
        '''NAME=, in which what can't be there is a hyphen'''
        fine = re.sub(r'(?<!^)[^a-zA-Z0-9+/;.$_()-]|^[^a-zA-Z0-9+/;.$_()]',
                      lambda found: '-' if found.start() else '_', name)
        if fine != name:
            self.name("'%s' can't be a name: it has hyphens in the tab" % name)
        return ' NAME=' + fine

    def fail(self, why):
        say(why)
        return 1

    def comment_out(self, number, why):
        text, path, line = self.lines[number]
        say('%s:%d: %s' % (path, line, why) if line else '%s: %s: %s' % (path, why, text))
        self.lines[number][0] = '# left out: %s: %s' % (why, text)
        self.wrong = True

    def take_message(self, message):
        '''LINE:COLUMN: WHY of the server. Gives whether a line became a comment.'''
        found = re.match('-:([0-9]+):[0-9]+: (.*)', message)
        number = int(found[1]) - 1 if found else -1
        if not 0 <= number < len(self.lines) or self.lines[number][0][:1] == '#' or \
                found[2].startswith('the lines after it'):
            return False
        is_zone = self.lines[number][0].startswith('CRON_TZ')
        self.comment_out(number, found[2])
        # What comes after it would go by the zone of this machine.
        while is_zone and number + 1 < len(self.lines):
            number += 1
            text = self.lines[number][0]
            if text.startswith('CRON_TZ'):
                break
            if re.match('[0-9*@]', text):
                self.comment_out(number, 'its zone is not known')
        return True

    def finish(self):
        '''Print the tab, without what the server does not take. Gives the exit status.'''
        more = True
        while more:
            text = b''.join(encoded(line[0]) + b'\n' for line in self.lines)
            done = subprocess.run([os.environ['TWHEEL'], 'jobs', 'check', '-n', '1', '-'],
                                  input=text, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  check=False)
            messages = decoded(done.stderr).splitlines()
            more = [message for message in messages if self.take_message(message)]
        if done.returncode:
            return self.fail('twheeld, which knows what a tab can have, has failed: ' +
                             (messages or ['it says nothing'])[-1])
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        try:
            sys.stdout.buffer.write(text)
            sys.stdout.flush()
        except OSError as error:
            # The end of the program would try once more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return self.fail("can't print: " + error.strerror)
        return int(self.wrong)

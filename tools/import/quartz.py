# SPDX-License-Identifier: GPL-2.0
"""
The jobs and triggers of Quartz' quartz_jobs.xml, as lines of a tab.

A trigger becomes a schedule; a job's name, class and data map become the JSON of its
jobs' bodies. What Quartz itself reads oddly is named and left out, as nobody can know what was
meant.
"""
import calendar
import json
import re
import time
from xml.etree import ElementTree
from xml.parsers import expat

from tab import is_word, java_zone, number_of, percent

COUNT_MOST = 1000
DEPTH_MOST = 250
PRI_OF_FIVE = 1029      # less the priority of Quartz: 1024 for its default
# No attribute can have this name: the line on which an element begins
LINE = ' line'


# Expressions, whichever file they stand in


def is_partly_read(field):
    '''Is there one of the letters L and W, which are no part of a name, or a #?'''
    return re.search('[LW#]', re.sub('JUL|WED', '', field))


def fields_of(text):
    '''
    An expression of six or seven fields, in capitals, as Quartz reads them; how many there are; and
    what Quartz 2.3.2 reads oddly in it, or refuses, or None
    '''
    fields = text.upper().split()
    when, count = ' '.join(fields), len(fields)
    if count not in (6, 7):
        return when, count, 'these are no six or seven fields'
    if '?' not in (fields[3], fields[5]):
        return when, count, 'Quartz wants a ? as one of the two days'
    for field in fields:
        if ',' in field and is_partly_read(field):
            return when, count, ("'%.60s': Quartz takes a part of such a list alone (1,15W is 1W, SUN,MON#1 "
                                 'the first Sunday)' % field)
        if re.match('[^/]*[A-Z]/', field):
            return when, count, "'%.60s': Quartz drops a step after a name (MON-FRI/2 is MON-FRI)" % field
    return when, count, None


# XML


def local(name):
    return name.rpartition('}')[2]


def children(node, *names):
    '''The elements in another one, or those of a name, whatever their namespace'''
    return [child for child in node if not names or local(child.tag) in names]


def text_in(node, name):
    '''The text of an element in another one, without blanks around it; None: there is none, or ""'''
    found = children(node, name)
    return ''.join(found[0].itertext()).strip(' \t\r\n') or None if found else None


def parse(data):
    '''The root of a document; ValueError says why there is none.'''
    builder, depth = ElementTree.TreeBuilder(), [0]

    def start(name, attributes):
        depth[0] += 1
        if depth[0] > DEPTH_MOST:
            raise ValueError('elements are %d deep in each other' % DEPTH_MOST)
        builder.start(name, {**attributes, LINE: str(parser.CurrentLineNumber)})

    def end(name):
        depth[0] -= 1
        builder.end(name)

    def entity(*_):
        # Some words of those can be gigabytes.
        raise ValueError('it has entities of its own, which are not read: put their texts there')

    # Of encodings with several bytes, expat knows those of Unicode alone.
    said = re.match(rb'<\?xml[^>]*encoding=["\']([\w.-]+)', data)
    try:
        if said:
            data = data.decode(said[1].decode()).encode()
        parser = expat.ParserCreate('utf-8' if said else None, '}')
        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.CharacterDataHandler, parser.EntityDeclHandler = builder.data, entity
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, UnicodeError) as error:
        raise ValueError("expat can't read it: %s" % error) from error
    return builder.close()


# Triggers


def name_in(node, name, group):
    '''GROUP.NAME, of which a schedule's name is made; the group DEFAULT goes without saying.'''
    name, group = text_in(node, name) or '', text_in(node, group)
    return name if group in (None, 'DEFAULT') else group + '.' + name


def data_of(node):
    entries = [entry for found in children(node, 'job-data-map')[:1] for entry in children(found, 'entry')]
    return {text_in(entry, 'key'): text_in(entry, 'value') or '' for entry in entries
            if text_in(entry, 'key')}


def body_of(name, job, trigger):
    '''What the scheduler had given to the job. A trigger's data goes before the job's.'''
    body = {'job': name, 'class': text_in(job, 'job-class'), 'data': {**data_of(job), **data_of(trigger)}}
    return json.dumps({key: value for key, value in body.items() if value}, separators=(',', ':'))


def misfire_of(text, simple):
    what = (text or 'SMART_POLICY').removeprefix('MISFIRE_INSTRUCTION_')
    if simple and 'RESCHEDULE_NEXT' in what:
        return 'skip'
    if simple and 'RESCHEDULE_NOW' in what:
        return 'once'
    return {'SMART_POLICY': 'once', 'FIRE_ONCE_NOW': 'once', 'FIRE_NOW': 'once', 'DO_NOTHING': 'skip',
            'IGNORE_MISFIRE_POLICY': 'all:1000'}.get(what)


def is_over(text):
    '''Is a time of the file, like 2027-01-01T00:00:00Z, over? Its zone does not matter much.'''
    try:
        when = time.strptime(text[:19], '%Y-%m-%dT%H:%M:%S')
    except ValueError:
        return False
    return calendar.timegm(when) < time.time() - 86400


def when_of_simple(tab, trigger):
    '''When a simple trigger fires; or None, and why not'''
    count, start = text_in(trigger, 'repeat-count'), text_in(trigger, 'start-time')
    ms, repeats = number_of(text_in(trigger, 'repeat-interval')), number_of(count)
    whole = ms >= 1000 and ms % 1000 == 0
    if whole and start and 0 < repeats < COUNT_MOST:
        return '@every %ds FROM=%s COUNT=%d' % (ms // 1000, start, repeats + 1), None
    if whole and repeats == -1:
        if not start:
            tab.tell('@every counts from 1970 on, and not from when the scheduler starts')
        return '@every %ds%s' % (ms // 1000, ' FROM=' + start if start else ''), None
    if count in (None, '0') and start:
        return '@at ' + start, None
    return None, ('a simple trigger is known here that repeats in whole seconds, for ever, or from a '
                  'start-time less than 1000 times, or has a start-time and does not repeat')


def why_no_trigger(trigger, job, misfire):
    words = [text_in(trigger, name) for name in ('time-zone', 'start-time', 'end-time')]
    if local(trigger.tag) not in ('cron', 'simple'):
        return 'cron and simple triggers are known here; five fields say most of what these say'
    if job is None:
        return 'there is no job of that name in the file'
    if not misfire:
        return 'its misfire-instruction has no like here'
    if any(word and not is_word(word) for word in words):
        return 'there is a blank in its time-zone, start-time or end-time'
    if text_in(trigger, 'calendar-name'):
        return 'it has a calendar, which is not in the file: write its days to a file of CALENDAR='
    if local(trigger.tag) == 'cron' and not text_in(trigger, 'cron-expression'):
        return 'there is no cron-expression'
    return None


def put_trigger(tab, jobs, trigger):
    simple, name = local(trigger.tag) == 'simple', name_in(trigger, 'name', 'group')
    job = name_in(trigger, 'job-name', 'job-group')
    misfire = misfire_of(text_in(trigger, 'misfire-instruction'), simple)
    zone, priority = text_in(trigger, 'time-zone'), number_of(text_in(trigger, 'priority'))
    start, end = text_in(trigger, 'start-time'), text_in(trigger, 'end-time')
    tab.line = int(trigger.get(LINE))
    why = why_no_trigger(trigger, jobs.get(job), misfire)
    if why:
        tab.leave_out(name, why)
        return
    if simple:
        fields = tab.fields
        when, why = when_of_simple(tab, trigger)
    else:
        when, fields, why = fields_of(text_in(trigger, 'cron-expression'))
    if why:
        tab.leave_out(when or '', why)
        return
    # A tube of its own, so that no worker that runs commands has them
    text = when + tab.schedule_name(name) + ' TUBE=quartz'
    if zone:
        text += java_zone(zone)
    if 0 < priority <= PRI_OF_FIVE:
        text += ' PRI=%d' % (PRI_OF_FIVE - priority)
    if start and not simple and not is_over(start):
        text += ' START=' + start
    if end:
        text += ' END=' + end
    tab.put_job(fields, '%s MISFIRE=%s %s' % (text, misfire, percent(body_of(job, jobs[job], trigger))))


def read(tab, root):
    triggers = 0
    tab.tell('jobs and triggers of Quartz')
    for schedule in children(root, 'schedule'):
        jobs = {}
        for job in children(schedule, 'job'):
            # If two jobs have the same name, the first one counts.
            jobs.setdefault(name_in(job, 'name', 'group'), job)
        for trigger in (one for found in children(schedule, 'trigger') for one in found):
            put_trigger(tab, jobs, trigger)
            triggers += 1
    tab.line = 0
    if triggers:
        tab.tell('a worker reserves the jobs of tube quartz: their bodies have the class and the data of '
                 'the job. Jobs with @DisallowConcurrentExecution need OVERLAP=wait, which only their '
                 'class says')
    else:
        tab.leave_out(tab.path, 'there is no trigger in it')

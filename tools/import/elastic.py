# SPDX-License-Identifier: GPL-2.0
"""
Jobs of Elastic-Job, as lines of a tab, whichever of its files they are in: YAML, properties, or
XML of Spring. A job becomes a schedule with shards; the body has what its class got.
"""
import json
import re

from quartz import LINE, children, fields_of, local
from tab import decoded, encoded, is_true, is_word, java_zone, percent

JOBS = 'elasticjob.jobs'
# What a setting is called without hyphens, as files have shardingTotalCount and
# sharding-total-count; what else there is does not matter here.
KEYS = {'elasticjobclass': 'class', 'class': 'class', 'elasticjobtype': 'type', 'jobtype': 'type',
        'jobparameter': 'parameter', 'cron': 'cron', 'timezone': 'zone', 'shardingtotalcount': 'shards',
        'shardingitemparameters': 'items', 'misfire': 'misfire', 'disabled': 'disabled',
        'scriptcommandline': 'command', 'jobref': 'bean'}


def items_of(text):
    '''{"0": "A", "1": "B"} of 0=A,1=B; None: it is not so'''
    pairs = [item.lstrip(' \t').split('=', 1) for item in text.split(',')]
    if any(len(pair) < 2 or not re.fullmatch('[0-9]{1,6}', pair[0]) for pair in pairs):
        return None
    return dict(pairs)


def why_no_job(name, job):
    if any('${' in value for value in job.values()):
        return 'it has a ${...} of Spring: put the value there'
    if '${' in name:
        return 'its name is a ${...} of Spring: put the value there'
    if any(encoded(text).decode('utf-8', 'replace') != text for text in (name, *job.values())):
        return 'this is no UTF-8'
    if 'cron' not in job:
        return 'it has no cron: twheel jobs run, or put, is what makes such a job'
    if 'zone' in job and not is_word(job['zone']):
        return 'this is no timeZone'
    if not re.fullmatch('[0-9]{1,6}', job.get('shards', '1')):
        return 'shardingTotalCount is no number'
    if 'items' in job and not items_of(job['items']):
        return 'shardingItemParameters are not like 0=A,1=B'
    if '\r' in job.get('command', '') or '\n' in job.get('command', ''):
        return 'its script has several lines: put it into a file'
    return None


def put(tab, name, values, misfire):
    """
    A job, as a line of the tab, or as a comment that says why there is none. The values are texts,
    by the names of its settings. The schema of the XML has misfire true where they have none, and the
    starter of Spring Boot, from 3.0 on, has false, whatever its manual says.
    """
    job = {'misfire': misfire}
    for key, value in values.items():
        key = KEYS.get(re.sub('[-_.]', '', key).lower())
        if key and value:
            job[key] = value
    why, count = why_no_job(name, job), 0
    if not why:
        when, count, why = fields_of(job['cron'])
    if why:
        tab.leave_out(name, why)
        return
    text = when + tab.schedule_name(name)
    # So that no worker that runs commands has them
    if 'command' not in job:
        text += ' TUBE=elastic-job'
    if 'zone' in job:
        text += java_zone(job['zone'])
    if 'shards' in job:
        text += ' SHARDS=' + job['shards']
    if is_true(job.get('disabled')):
        text += ' PAUSED=yes'
    text += ' OVERLAP=no MISFIRE=%s ' % ('once' if is_true(job['misfire']) else 'skip')
    if 'command' in job:
        tab.name('%s: Elastic-Job gives its script the sharding context as a last word; add %%s and %%n '
                 'where it wants them' % name)
        text += percent(job['command'])
    else:
        body = {'job': name}
        body.update({key: job[key] for key in ('class', 'bean', 'type', 'parameter') if key in job})
        if 'items' in job:
            body['items'] = items_of(job['items'])
        # Its last members are the shard, and how many there are.
        text += percent(json.dumps(body, separators=(',', ':'))[:-1]) + ',"item":%s,"of":%n}'
    tab.put_job(count, text)


# Java's properties, as Spring Boot's application.properties has them


def take_text(text, stops):
    '''The text up to one of the stops, without its backslashes, and what follows it'''
    def meant(found):
        if found[1]:
            return chr(int(found[1], 16))
        return {'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f'}.get(found[2], found[2])
    length = re.match(r'(?:\\.?|[^\\%s])*' % stops, text, re.S).end()
    taken = re.sub(r'\\(?:u(?!0000)([0-9a-fA-F]{4})|(.?))', meant, text[:length])
    # Java writes a character beyond U+FFFF as two.
    return taken.encode('utf-16', 'surrogatepass').decode('utf-16', 'surrogatepass'), text[length:]


def lines_of(data):
    '''Lines, each with those that it goes on in, as a backslash at its end says; and its number'''
    whole, first = '', 1
    for number, text in enumerate(decoded(data).split('\n'), 1):
        whole += re.split('[\r\0]', text.lstrip(' \t\f'))[0]
        comment = whole[:1] in ('', '#', '!')
        if not comment and (len(whole) - len(whole.rstrip('\\'))) % 2:
            whole = whole[:-1]
            continue
        if not comment:
            yield first, whole
        whole, first = '', number + 1
    if whole:
        yield first, whole


def read_properties(tab, data):
    '''The jobs of Elastic-Job in a file: elasticjob.jobs.NAME.KEY=VALUE'''
    jobs = {}
    tab.tell('properties of Elastic-Job')
    for number, text in lines_of(data):
        key, rest = take_text(text, ' \t\f=:')
        value = take_text(re.sub('^[ \t\f]*[=:]?[ \t\f]*', '', rest), '')[0]
        found = re.match(r'elasticjob\.jobs(?:\.([^.]*)|\[([^]]*)\])\.(?:props\.)?(.*)', key, re.S)
        if found:
            name = found[1] or found[2] or ''
            jobs.setdefault(name, (number, {}))[1][found[3]] = value
    for name, (tab.line, values) in jobs.items():
        put(tab, name, values, 'false')
    tab.line = 0
    if not jobs:
        tab.leave_out(tab.path, 'there is no %s. in it' % JOBS)


# Spring's beans: elasticjob:job since version 3 of Elastic-Job, and before that job:simple,
# job:dataflow and job:script


def put_bean(tab, node):
    values = {local(key): value for key, value in node.attrib.items() if key != LINE}
    # <props><prop key="script.command.line">...</prop></props>
    for prop in (prop for props in children(node, 'props') for prop in props):
        if prop.get('key'):
            values[prop.get('key')] = ''.join(prop.itertext())
    tab.line = int(node.get(LINE))
    put(tab, values.get('id', ''), values, 'true')


def put_beans(tab, node):
    '''Gives how many jobs there are; beans may be in beans, for each profile.'''
    jobs = 0
    for child in node:
        if local(child.tag) == 'beans':
            jobs += put_beans(tab, child)
        elif re.match('[^}]*(elasticjob|ddframe/job)[^}]*}(job|simple|dataflow|script)$', child.tag):
            put_bean(tab, child)
            jobs += 1
    return jobs


def read_beans(tab, root):
    tab.tell('beans of Spring')
    if not put_beans(tab, root):
        tab.line = 0
        tab.leave_out(tab.path, 'there is no job of Elastic-Job in it. Triggers of Quartz are known as '
                      'quartz_jobs.xml: write theirs as lines of a tab')

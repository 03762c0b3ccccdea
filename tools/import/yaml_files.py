# SPDX-License-Identifier: GPL-2.0
"""
Kubernetes' CronJobs, and jobs of Elastic-Job, as lines of a tab.

A CronJob goes on being run by Kubernetes: the job's body has its Job made by kubectl.
"""
import re

import elastic
from tab import is_true, is_word

try:
    import yaml
except ImportError:
    yaml = None


def pairs_of(node):
    return node.value if node and node.id == 'mapping' else []


def find(node, *keys):
    '''What stands under keys, each in the one before; None: there is nothing'''
    for key in keys:
        node = next((value for name, value in pairs_of(node) if name.value == key), None)
    return node


def text_of(node, *keys):
    '''None: it is no text, or null'''
    node = find(node, *keys)
    return node.value if node and node.id == 'scalar' and node.value not in ('', 'null', '~') else None


def is_schedule(when):
    '''Five fields, @daily, or @every 90s; what follows those would be the job's body.'''
    if when[:1] == ['@every']:
        return len(when) == 2
    return len(when) == (1 if when and when[0][0] == '@' else 5)


def why_no_cronjob(spec, name, space, schedule):
    zone, late = text_of(spec, 'timeZone'), text_of(spec, 'startingDeadlineSeconds')
    if not re.fullmatch('[a-z0-9.-]+', name or '') or not re.fullmatch('[a-z0-9-]*', space or ''):
        return 'it has no name, or one that Kubernetes does not take'
    if not schedule:
        return 'it has no schedule'
    if 'TZ=' in schedule:
        return 'a zone in schedule: say it as timeZone'
    if text_of(spec, 'concurrencyPolicy') == 'Replace':
        return 'concurrencyPolicy: Replace has no like here: a job that runs is not ended'
    if zone and not is_word(zone):
        return 'this is no timeZone'
    if late and not (re.fullmatch('[0-9]{1,6}', late) and 1 <= int(late) <= 86400):
        return 'startingDeadlineSeconds is from 1 to 86400 here'
    if not is_schedule(schedule.split()):
        return 'its schedule has no five fields'
    return None


def put_cronjob(tab, node):
    spec, schedule = find(node, 'spec'), text_of(node, 'spec', 'schedule')
    name, space = text_of(node, 'metadata', 'name'), text_of(node, 'metadata', 'namespace')
    zone, late = text_of(spec, 'timeZone'), text_of(spec, 'startingDeadlineSeconds')
    tab.line = node.start_mark.line + 1
    why = why_no_cronjob(spec, name, space, schedule)
    if why:
        tab.leave_out(name or '', why)
        return
    text = ' '.join(schedule.split()) + tab.schedule_name(name)
    if zone:
        text += ' CRON_TZ=' + zone
    else:
        tab.name('%s has no timeZone: Kubernetes takes that of its controller, and the tab that of this '
                 'machine' % name)
    if text_of(spec, 'concurrencyPolicy') == 'Forbid':
        text += ' OVERLAP=no'
    if is_true(text_of(spec, 'suspend')):
        text += ' PAUSED=yes'
    text += ' MISFIRE=skip MISFIRE_AFTER=' + late if late else ' MISFIRE=once'
    tab.put_job(5, '%s kubectl%s create job --from=cronjob/%s %s-$(date +%%%%s)' % (
        text, ' -n ' + space if space else '', name, name))


def put_elastic(tab, key, node):
    values = {}
    for name, value in pairs_of(node) + pairs_of(find(node, 'props')):
        if name.id == 'scalar' and text_of(value):
            values[name.value] = value.value
    tab.line = key.start_mark.line + 1
    elastic.put(tab, key.value, values, 'false')


def read_document(tab, root):
    '''Gives how many jobs there are: CronJobs, alone or in a List, or those of Elastic-Job.'''
    found = find(root, 'elasticjob', 'jobs')
    if found and found.id == 'mapping':
        jobs = [pair for pair in found.value if pair[0].id == 'scalar']
        for key, node in jobs:
            put_elastic(tab, key, node)
        return len(jobs)
    items = find(root, 'items')
    nodes = items.value if items and items.id == 'sequence' else []
    cronjobs = [node for node in (root, *nodes) if text_of(node, 'kind') == 'CronJob']
    for node in cronjobs:
        put_cronjob(tab, node)
    return len(cronjobs)


def read(tab, data):
    '''The CronJobs, or jobs of Elastic-Job, of all documents of a file'''
    jobs = 0
    tab.tell('YAML, of Kubernetes or Elastic-Job')
    if not yaml:
        tab.leave_out(tab.path, "YAML is read by Python's yaml, which is not there: install python3-yaml")
        return
    try:
        for root in yaml.compose_all(data, getattr(yaml, 'CSafeLoader', yaml.SafeLoader)):
            jobs += read_document(tab, root)
    except yaml.YAMLError as error:
        mark = getattr(error, 'problem_mark', None)
        tab.line = mark.line + 1 if mark else 0
        tab.leave_out(tab.path, 'yaml can\'t read it: %s' % (getattr(error, 'problem', None) or error))
        return
    tab.line = 0
    if not jobs:
        tab.leave_out(tab.path, 'there is neither a CronJob in it, nor elasticjob with jobs')

# SPDX-License-Identifier: GPL-2.0
#
# Servers with schedules: their files, the unix socket, and what their store has of it.

import http.client
import json
import os
import socket
import urllib.parse

import database
import shim
import wire


class Local(http.client.HTTPConnection):
    '''A connection to the unix socket'''

    def __init__(self, folder):
        super().__init__('localhost', timeout=wire.PATIENCE)
        self.path = os.path.join(folder, 'admin')

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(wire.PATIENCE)
        self.sock.connect(self.path)


def call(folder, method, path, body=None, **headers):
    '''The status, and the JSON of the answer'''
    connection = Local(folder)
    try:
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body)
            headers.setdefault('Content_Type', 'application/json')
        connection.request(method, '/v1/' + path, body,
                           {name.replace('_', '-'): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def of(name):
    return 'schedules/' + urllib.parse.quote(str(name), safe='')


class Admin:
    '''A client of the server in that folder, with one word for each path'''

    def __init__(self, folder):
        self.folder = folder

    def ask(self, word, *words):
        '''The answer as a list, whose last element says whether it is whole'''
        if word == 'list':
            return self.rows('schedules', 'schedules')
        if word == 'history':
            return self.rows(of(words[0]) + '/runs?count=%s' % (words[1:] or (20,)), 'runs')
        if word == 'show':
            return self.rows(of(words[0]))
        body = dict(zip(('from', 'to'), words[1:])) if word == 'backfill' else b''
        return [call(self.folder, 'POST', of(words[0]) + '/' + word, body)[1]]

    def rows(self, path, key=None):
        _, got = call(self.folder, 'GET', path)
        if 'error' in got:
            return [got]
        rows = got.pop(key) if key else [got]
        return [*rows, {'ok': True, **(got if key == 'schedules' else {})}]

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def asked(bench, *words):
    with Admin(bench.store) as admin:
        return admin.ask(*words)


def names(bench):
    '''The list of schedules, by name'''
    return {one['name']: one for one in asked(bench, 'list')[:-1]}


def write(bench, name, text):
    return bench.write('tabs/' + name, text)


def begin(bench, settings='', env=None, files=(), **tabs):
    '''With tabs, and other files in their folder'''
    bench.tabs = bench.path('tabs')
    os.makedirs(bench.tabs)
    for name, text in {**dict(files), **{n + '.tab': text for n, text in tabs.items()}}.items():
        write(bench, name, text)
    lease = 'lease = "%s";' % database.LEASE if database.shared() else ''
    return bench.start_with('schedules = "%s"; admin = "%s/admin"; %s %s\n' % (
        bench.tabs, bench.store, settings, lease), env=env)


def begin_stepped(bench, tab, by=0, env=None, files=(), settings=''):
    '''With time that passes when the test says so, and a wall clock that is wrong by some seconds'''
    bench.clock = shim.Clock(bench.folder)
    bench.clock.set(5000)
    bench.clock.put_wall(by * shim.SECOND)
    c = begin(bench, settings, env={**bench.clock.env, 'TZ': 'UTC', **(env or {})}, files=files,
              a='CRON_TZ=UTC\n' + tab)
    wire.wait_for('the schedule', lambda: next_time(bench) is not None)
    return c


def next_time(bench):
    '''The time of the schedule that was there first, in seconds'''
    rows = bench.rows('SELECT next FROM schedules ORDER BY id LIMIT 1')
    return rows[0][0] // shim.SECOND if rows else None


def runs(bench):
    '''Times and results'''
    return bench.rows('SELECT time / 1000000000, result FROM runs ORDER BY 1')


def wait_next(bench, right):
    wire.wait_for('the next time', lambda: right(next_time(bench) or 0))

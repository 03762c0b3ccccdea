# SPDX-License-Identifier: GPL-2.0
#
# Servers with schedules: their files, the admin socket, and what their store has of it.

import json
import os
import socket

import database
import shim
import wire


class Admin:
    '''A client of the admin socket, which is in that folder'''

    def __init__(self, folder):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(wire.PATIENCE)
        self.socket.connect(os.path.join(folder, 'admin'))
        self.lines = self.socket.makefile('rb')

    def ask(self, *words):
        '''All objects of the answer'''
        self.socket.sendall(' '.join(map(str, words)).encode() + b'\n')
        objects = []
        while not objects or not {'ok', 'error'} & set(objects[-1]):
            objects.append(json.loads(self.lines.readline()))
        return objects

    def close(self):
        self.lines.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def asked(bench, *words):
    with Admin(bench.store) as admin:
        return admin.ask(*words)


def names(bench):
    '''What is told of each schedule, by its name'''
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


def begin_stepped(bench, tab, by=0, env=None, files=()):
    '''With time that passes when the test says so, and a wall clock that is set by so much'''
    bench.clock = shim.Clock(bench.folder)
    bench.clock.set(5000)
    bench.clock.put_wall(by * shim.SECOND)
    c = begin(bench, env={**bench.clock.env, 'TZ': 'UTC', **(env or {})}, files=files,
              a='CRON_TZ=UTC\n' + tab)
    wire.wait_for('the schedule', lambda: next_time(bench) is not None)
    return c


def next_time(bench):
    '''Of the schedule that was there first, in seconds'''
    rows = bench.rows('SELECT next FROM schedules ORDER BY id LIMIT 1')
    return rows[0][0] // shim.SECOND if rows else None


def runs(bench):
    '''Times and results'''
    return bench.rows('SELECT time / 1000000000, result FROM runs ORDER BY 1')


def wait_next(bench, right):
    wire.wait_for('the next time', lambda: right(next_time(bench) or 0))

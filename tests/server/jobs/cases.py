# SPDX-License-Identifier: GPL-2.0
#
# Cases with one server, as TAP: each is a function whose first line says what it proves.

import json
import os
import subprocess
import sys

import database
import tap
import wire


class Wrong(Exception):
    '''A case has failed.'''


def same(got, want, what='reply'):
    if got != want:
        raise Wrong('%s: got %r, want %r' % (what, got, want))


def true(what, why):
    if not what:
        raise Wrong(why)


class Bench:
    '''A server with a store, for one case.'''

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.store = os.path.join(folder, 'store')
        self.where = database.store(self.store)
        self.server = wire.Server(program, folder, *self.where)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        '''A file in its folder; gives its path.'''
        return wire.write(self.path(name), text)

    def start(self, *options, env=None):
        self.server.options = (*self.where, *options)
        self.server.env = env
        return self.server.start().connect()

    def start_with(self, settings, *options, env=None):
        '''With such a configuration file'''
        return self.start('-c', self.write('conf', settings), *options, env=env)

    def again(self):
        '''Another life of the server, with the same store, if it has ended'''
        return self.server.start().connect()

    def crash(self):
        self.server.kill()
        return self.again()

    def memory(self):
        '''The server's memory in KiB.'''
        return self.server.memory('VmRSS')

    def log(self):
        '''All that it has said'''
        with open(self.server.log, errors='replace') as log:
            return log.read()

    def says(self, text, wait=wire.PATIENCE):
        wire.wait_for('that it says: ' + text, lambda: text in self.log(), wait)

    def db(self):
        '''Its store, which somebody else writes to'''
        return wire.Store(os.path.join(self.store, 'jobs.db'))

    def rows(self, sql):
        return database.rows(self.store, sql)

    def refusal(self, *options, env=None):
        '''How a server ends that can't serve, and what it says'''
        done = subprocess.run([self.program, *options], stdin=subprocess.DEVNULL, text=True,
                              stderr=subprocess.PIPE, timeout=wire.PATIENCE, check=False,
                              env={**os.environ, **(env or {})})
        return done.returncode, done.stderr

    def refused(self, word, *options, status=1, env=None):
        '''The program ends with a sentence that has the word; gives the sentence'''
        got, said = self.refusal(*options, env=env)
        same(got, status, 'status with %r, which says: %s' % (options, said))
        true(word in said and said.strip(), 'with %r it says: %s' % (options, said))
        return said


def put(connection, body=b'x', pri=0, delay=0, ttr=100):
    got = connection.ask('put', pri, delay, ttr, len(body), body=body)
    same(got[0], 'INSERTED')
    return int(got[1])


def job(connection, number):
    got = connection.ask('stats-job', number)
    same(got[0], 'OK')
    return wire.table(got[2])


def fields(connection, number, *names):
    table = job(connection, number)
    return [table[name] for name in names]


def reserved(connection, wait=0):
    got = connection.ask('reserve-with-timeout', wait)
    return int(got[1]) if got[0] == 'RESERVED' else got[0]


def stats(connection):
    return wire.table(connection.ask('stats')[2])


def tube_stats(connection, name):
    '''None if there is no such tube'''
    got = connection.ask('stats-tube', name)
    return wire.table(got[2]) if got[0] == 'OK' else None


def use(connection, tube):
    same(connection.ask('use', tube), ['USING', tube])
    connection.ask('watch', tube)
    return connection


def note(c, number, text):
    return c.ask('note', number, len(text), body=text)[0]


def notices(c, tube='alarms'):
    '''What that tube has learned, in order'''
    c.ask('watch', tube)
    c.ask('ignore', 'k1')
    c.ask('ignore', 'default')
    got = []
    while True:
        reply = c.ask('reserve-with-timeout', 0)
        if reply[0] != 'RESERVED':
            return got
        got.append(json.loads(reply[2] if len(reply) == 3 else reply[3]))
        same(c.ask('delete', reply[1]), ['DELETED'])


def wanted(cases, own=()):
    '''All cases, or those named after TWHEELD and FOLDER; but for those that are of a store of
    the server's own, where it is not.'''
    names = sys.argv[3:]
    return [case for case in cases if (not names or case.__name__ in names) and
            not (database.shared() and case in own)]


def run(cases, own=()):
    tap.run([(case.__doc__, lambda case=case: one(case)) for case in wanted(cases, own)])


def one(case):
    bench = Bench(sys.argv[1], os.path.join(sys.argv[2], case.__name__))
    with bench.server:
        why = tap.caught(case, bench)
        if not why:
            return None
        ended = bench.server.process and bench.server.process.poll()
        return '%s\n%s%s' % (bench.server.said(),
                             '' if ended is None else 'it ended with %d\n' % ended, why)

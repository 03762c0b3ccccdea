# SPDX-License-Identifier: GPL-2.0
#
# Cases with one server, as TAP: each is a function whose first line says what is so.

import os
import sys
import traceback

import database
import wire


class Wrong(Exception):
    '''What a case found wrong.'''


def same(got, want, what='reply'):
    if got != want:
        raise Wrong('%s: got %r, want %r' % (what, got, want))


def true(what, why):
    if not what:
        raise Wrong(why)


class Bench:
    '''What a case works with: a server of its own, with a store.'''

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.store = os.path.join(folder, 'store')
        self.where = database.store(self.store)
        self.server = wire.Server(program, folder, *self.where)

    def start(self, *options, env=None):
        self.server.options = (*self.where, *options)
        self.server.env = env
        return self.server.start().connect()

    def crash(self):
        '''Another life of the server, with the same store.'''
        self.server.kill()
        return self.server.start().connect()

    def memory(self):
        '''What it has in memory, in KiB.'''
        with open('/proc/%d/status' % self.server.process.pid) as status:
            for line in status:
                if line.startswith('VmRSS:'):
                    return int(line.split()[1])
        raise Wrong('no VmRSS')


def put(connection, body=b'x', pri=0, delay=0, ttr=100):
    got = connection.ask('put', pri, delay, ttr, len(body), body=body)
    same(got[0], 'INSERTED')
    return int(got[1])


def job(connection, number):
    got = connection.ask('stats-job', number)
    same(got[0], 'OK')
    return wire.table(got[2])


def reserved(connection, wait=0):
    got = connection.ask('reserve-with-timeout', wait)
    return int(got[1]) if got[0] == 'RESERVED' else got[0]


def stats(connection):
    return wire.table(connection.ask('stats')[2])


def run(cases, own=()):
    '''All cases, or those named after TWHEELD and FOLDER; but for those that are of a store of
    the server's own, where it is not.'''
    program, folder = sys.argv[1:3]
    wanted = sys.argv[3:]
    cases = [case for case in cases if (not wanted or case.__name__ in wanted) and
             not (database.shared() and case in own)]
    failed = 0
    print('TAP version 13\n1..%d' % len(cases))
    for number, case in enumerate(cases, 1):
        why = one(case, program, os.path.join(folder, case.__name__))
        failed += bool(why)
        print('%s %d - %s' % ('not ok' if why else 'ok', number, case.__doc__))
        for line in (why or '').splitlines():
            print('#', line)
        sys.stdout.flush()
    sys.exit(bool(failed))


def one(case, program, folder):
    bench = Bench(program, folder)
    with bench.server:
        try:
            case(bench)
        except (Wrong, wire.Late, wire.Closed, OSError, ValueError, KeyError, IndexError):
            why = traceback.format_exc(limit=-3)
            ended = bench.server.process and bench.server.process.poll()
            return '%s%s\n%s' % (why, '' if ended is None else 'it ended with %d' % ended,
                                 bench.server.said())
    return None

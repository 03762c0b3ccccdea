# SPDX-License-Identifier: GPL-2.0
#
# Servers of jobs on one database, and clients of theirs that keep accounts.

import os
import random
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../jobs'))

import wire  # pylint: disable=wrong-import-position

LEASE = 2
# Shorter and longer than the lease
TTRS = (2, 8, 20)
TUBES = ('default', 'x', 'y')
REFUSED = ('OUT_OF_MEMORY', 'INTERNAL_ERROR', 'DRAINING')


class Node(wire.Server):
    '''A server of jobs, whose clock may be wrong'''

    def __init__(self, program, folder, uri, tabs=None, inside=(), clock=None, step=0,
                 lease=LEASE):
        os.makedirs(folder, exist_ok=True)
        conf = os.path.join(folder, 'conf')
        with open(conf, 'w') as out:
            out.write('lease = "%ds"; node = "%s";\n' % (lease, os.path.basename(folder)))
            if tabs:
                out.write('schedules = "%s"; admin = "%s/admin";\n' % (tabs, folder))
        super().__init__(program, folder, '--store', uri, '-c', conf)
        self.inside = list(inside)
        if clock:
            with open(os.path.join(folder, 'step'), 'w') as out:
                out.write('%d' % step)
            self.env = {'LD_PRELOAD': clock, 'STEP': os.path.join(folder, 'step')}

    def start(self, wait=wire.PATIENCE, unlink=True):
        program, options = self.program, self.options
        if self.inside:
            # nsenter becomes the server: it has its process id
            self.program = self.inside[0]
            where = ['-l', 'unix:' + self.address]
            self.options = ()
            try:
                return self.start_inside([*self.inside, program, *where, *options], wait)
            finally:
                self.program, self.options = program, options
        return super().start(wait, unlink)

    def start_inside(self, words, wait):
        import subprocess  # pylint: disable=import-outside-toplevel
        if os.path.exists(self.address):
            os.unlink(self.address)
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env={**os.environ, **(self.env or {})})
        wire.wait_for('%s listens' % words, self.listens, wait)
        return self

    def pause(self, seconds):
        self.signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.signal(signal.SIGCONT)


class Refused(Exception):
    '''The server could not do it now.'''


class Client(threading.Thread):
    '''Does something over and over, with another server when one is gone'''

    def __init__(self, name, nodes, accounts, seed):
        super().__init__(name=name, daemon=True)
        self.nodes, self.accounts = nodes, accounts
        self.random = random.Random('%s %s' % (seed, name))
        self.stopped, self.failure, self.number = threading.Event(), None, 0

    def run(self):
        try:
            while not self.stopped.is_set():
                self.session()
        except Exception as error:  # pylint: disable=broad-except
            self.failure = repr(error)

    def session(self):
        try:
            connection = self.random.choice(self.nodes).connect()
        except OSError:
            time.sleep(0.02)
            return
        try:
            self.begin(connection)
            while not self.stopped.is_set():
                try:
                    self.once(connection)
                except Refused:
                    self.accounts.count('not now')
                    time.sleep(0.02)
        except (wire.Closed, OSError):
            pass
        finally:
            self.end()
            connection.close()

    def begin(self, connection):
        pass

    def end(self):
        pass

    def ask(self, connection, *words, body=None, good):
        got = connection.ask(*words, body=body)
        if got[0] in REFUSED:
            raise Refused(words[0])
        if got[0] not in good:
            raise ValueError('%s: %s' % (words, got))
        return got


class Producer(Client):
    def once(self, connection):
        while self.accounts.many() and not self.stopped.is_set():
            time.sleep(0.02)
        key = '%s-%d' % (self.name, self.number)
        self.number += 1
        delay = self.random.choice((0, 0, 0, 1, 2))
        self.ask(connection, 'use', self.random.choice(TUBES), good=('USING',))
        self.accounts.putting(key, delay)
        try:
            body = key.encode() + b' ' + b'-' * self.random.choice((0, 10, 5000))
            self.ask(connection, 'put', self.random.randrange(3), delay,
                     self.random.choice(TTRS), len(body), body=body, good=('INSERTED',))
        except (wire.Closed, OSError, Refused):
            self.accounts.doubtful(key, 'put')
            raise
        self.accounts.put(key)
        time.sleep(self.random.choice((0, 0, 0.01)))


class Consumer(Client):
    def __init__(self, *rest):
        super().__init__(*rest)
        self.kept = []

    def begin(self, connection):
        for tube in TUBES:
            self.ask(connection, 'watch', tube, good=('WATCHING',))

    def end(self):
        self.kept = []

    def once(self, connection):
        asked = time.time()
        got = self.ask(connection, 'reserve-with-timeout', 1,
                       good=('RESERVED', 'TIMED_OUT', 'DEADLINE_SOON'))
        if got[0] == 'RESERVED':
            key = got[3].split(b' ')[0].decode()
            held = self.accounts.came(key, int(got[1]), asked, connection)
            self.use(connection, held)
        due = [pair for pair in self.kept if pair[0] < time.time()]
        self.kept = [pair for pair in self.kept if pair not in due]
        for _, old in due:
            self.do(connection, self.random.choice(('release', 'touch', 'bury', 'delete')), old)

    def use(self, connection, held):
        what = self.random.choices(('delete', 'release', 'bury', 'keep', 'touch', 'slow'),
                                   (66, 10, 4, 8, 6, 6))[0]
        # Who had it before may yet come to do something with it.
        if len(held.entry.came) > 1 and self.random.random() < 0.5:
            what = 'keep'
        if what == 'keep':
            # Until its time to run is over, or its server's lease: then it is tried
            self.kept.append((time.time() + self.random.choice((0.5, 2, 4)), held))
        elif what == 'slow':
            time.sleep(self.random.uniform(0, 1))
            self.do(connection, 'delete', held)
        elif what == 'touch':
            if self.do(connection, 'touch', held):
                self.do(connection, 'delete', held)
        else:
            self.do(connection, what, held)

    def do(self, connection, what, held):
        '''Whether it was granted'''
        delay = self.random.choice((0, 1))
        words = {'delete': (), 'release': (1, delay), 'bury': (2,), 'touch': ()}[what]
        allowed = self.accounts.doing(held)
        sent = time.time()
        try:
            got = self.ask(connection, what, held.number, *words,
                           good=('DELETED', 'RELEASED', 'BURIED', 'TOUCHED', 'NOT_FOUND'))
        except (wire.Closed, OSError, Refused, wire.Late):
            self.accounts.doubtful(held.entry.key, what)
            raise
        if got[0] == 'NOT_FOUND':
            self.accounts.refused(held)
            return False
        self.accounts.done(held, got[0].lower(), allowed, delay, sent)
        if what == 'bury':
            self.ask(connection, 'kick-job', held.number, good=('KICKED', 'NOT_FOUND'))
        return True


def stop(clients, accounts):
    for client in clients:
        client.stopped.set()
    for client in clients:
        client.join(4 * wire.PATIENCE)
        if client.is_alive():
            accounts.wrong.append('%s got no answer' % client.name)
        if client.failure:
            accounts.wrong.append('%s: %s' % (client.name, client.failure))


def told(connection, *words):
    '''A statistic, once the database is there'''
    got = wire.wait_for(' '.join(words), lambda: [
        reply for reply in [connection.ask(*words)] if reply[0] == 'OK'])
    return wire.table(got[0][2])


def stats(connection):
    return told(connection, 'stats')


def left(connection, tubes, states=('ready', 'reserved', 'delayed', 'buried')):
    '''How many jobs of these states are in each tube that has some'''
    counts = {}
    for tube in tubes:
        connection.ask('watch', tube)
        table = told(connection, 'stats-tube', tube)
        count = sum(int(table['current-jobs-' + state]) for state in states)
        if count:
            counts[tube] = count
    return counts


def drain(node, accounts, tubes=TUBES):
    '''Take all that is there. Gives what is left, and lost.'''
    connection = node.connect()
    wire.wait_for('nothing is reserved, nor delayed',
                  lambda: not left(connection, tubes, ('reserved', 'delayed')))
    for tube in tubes:
        connection.ask('use', tube)
        connection.ask('kick', 10**6)
    until = time.monotonic() + 2 * wire.PATIENCE
    while time.monotonic() < until:
        asked = time.time()
        got = connection.ask('reserve-with-timeout', 0)
        if got[0] != 'RESERVED':
            if not left(connection, tubes):
                break
            continue
        held = accounts.came(got[3].split(b' ')[0].decode(), int(got[1]), asked, connection)
        if held and connection.ask('delete', held.number)[0] == 'DELETED':
            accounts.done(held, 'deleted', True)
    wrong = ['%d jobs are left in %s' % (count, tube)
             for tube, count in left(connection, tubes).items()]
    lost = accounts.lost()
    if lost:
        wrong.append('%d lost: %s' % (len(lost), ' '.join(lost[:10])))
    return wrong

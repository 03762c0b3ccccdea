# SPDX-License-Identifier: GPL-2.0
#
# Clients that keep accounts of each job, of several servers on one database; and what of it is
# wrong.
#
# A server that was stopped for longer than its lease may yet say what was so when it was
# stopped. So a job came somewhen between the request and the answer, and it is wrong only where
# no moment between the two would be right. What such a client does with it must be refused.

import random
import threading
import time

import wire

# A clock that is read after the other may be behind, in seconds: the wall clock may be slewed.
SLACK = 0.005
# Jobs that are to be there at a time, so that consumers come to all of them
ENOUGH = 500
# Shorter and longer than a lease
TTRS = (2, 8, 20)
TUBES = ('default', 'x', 'y')
REFUSED = ('OUT_OF_MEMORY', 'INTERNAL_ERROR', 'DRAINING')


class Entry:
    '''A job as its client knows it; sure: its put was acknowledged, doubt: a delete had no answer.
    When it was deleted, or buried, and since when not_before counts'''

    def __init__(self, key, not_before):
        self.key, self.not_before, self.id = key, not_before, None
        self.sure = self.doubt = False
        self.gone = self.buried = None
        self.since = 0
        self.came = []


class Held:
    '''A job that a client has: asked for at that time, and received'''

    def __init__(self, entry, number, asked, who):
        self.entry, self.number, self.asked, self.received = entry, number, asked, time.time()
        self.who = who

    def is_after(self, moment):
        return moment is not None and moment < self.asked

    def another_has_it(self, now):
        '''Did somebody else ask for it after this client had received it, and get it? It may be
        the same client that had it again since.'''
        mine = max(held.received for held in self.entry.came if held.who is self.who)
        return any(other.asked > mine and other.received < now for other in self.entry.came)

    def story(self):
        return '; '.join('%s asked %.3f, received %.3f' %
                         ('this one' if held.who is self.who else 'another', held.asked,
                          held.received) for held in self.entry.came)


class Accounts:
    def __init__(self):
        self.lock = threading.Lock()
        self.entries, self.ids, self.wrong, self.counts, self.of = {}, {}, [], {}, {}

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def many(self):
        '''Are there enough?'''
        return self.counts.get('put', 0) - self.counts.get('deleted', 0) > ENOUGH

    def complain(self, entry, why):
        self.wrong.append('job %s, id %s: %s' % (entry.key, entry.id, why))

    def putting(self, key, delay):
        with self.lock:
            self.entries[key] = Entry(key, time.time() + delay)

    def put(self, key, number):
        with self.lock:
            self.entries[key].sure = True
            self.named(self.entries[key], number)
            self.count('put')

    def named(self, entry, number):
        if entry.id not in (None, number):
            self.complain(entry, 'now has the id %d' % number)
        entry.id = number
        if self.ids.setdefault(number, entry) is not entry:
            self.complain(entry, 'has the id that %s had' % self.ids[number].key)

    def came(self, key, number, asked, who):
        with self.lock:
            entry = self.entries.get(key)
            if not entry:
                self.wrong.append('nobody put a job %r' % key)
                return None
            self.named(entry, number)
            held = Held(entry, number, asked, who)
            self.count('came')
            if entry.came:
                self.count('again')
            if held.is_after(entry.gone):
                self.complain(entry, 'came after its delete was acknowledged')
            if held.is_after(entry.buried):
                self.complain(entry, 'came while it is buried')
            if held.received + SLACK < entry.not_before and held.is_after(entry.since):
                self.complain(entry, 'early by %.3f s' % (entry.not_before - held.received))
            entry.came.append(held)
            self.of.setdefault(who, []).append(held)
            return held

    def closing(self, who):
        with self.lock:
            for held in self.of.pop(who, ()):
                held.entry.not_before = 0

    def doing(self, held, what):
        '''Something is about to be done with it: may that be granted?'''
        with self.lock:
            stale = held.another_has_it(time.time())
            if stale:
                self.count('stale')
            else:
                held.entry.not_before = 0
            return not stale

    def done(self, held, what, allowed, delay=0, sent=0):
        '''The job was reserved'''
        with self.lock:
            entry, now = held.entry, time.time()
            again = any(c.received > sent for c in entry.came)
            self.count(what)
            # The client that had it may delete it when it is ready again, as any other may.
            if not allowed and what != 'deleted':
                self.complain(entry, 'a stale client has %s it at %.3f: %s' %
                              (what, sent, held.story()))
            if what == 'deleted':
                if entry.gone:
                    self.complain(entry, 'was deleted twice')
                entry.gone = now
            elif what == 'released' and not again:
                entry.not_before, entry.since = sent + delay, now
            elif what == 'buried' and not again:
                entry.buried = now

    def kicking(self, most=None):
        '''Buried jobs that are about to be kicked: their ids.'''
        with self.lock:
            chosen = [e for e in self.entries.values() if e.buried][:most]
            for entry in chosen:
                entry.buried, entry.not_before = None, 0
            return [entry.id for entry in chosen]

    def doubtful(self, key, what):
        with self.lock:
            self.count('unanswered')
            if what == 'delete':
                self.entries[key].doubt = True

    def lost(self):
        '''Jobs that are neither deleted nor there.'''
        return [e.key for e in self.entries.values() if e.sure and not e.gone and not e.doubt]


class Refused(Exception):
    '''The server could not do it now. After a kill -9 it may be found done yet.'''


class Client(threading.Thread):
    '''Does something over and over, with another connection when one is gone'''

    def __init__(self, name, servers, accounts, seed):
        super().__init__(name=name, daemon=True)
        self.servers, self.accounts = servers, accounts
        self.random = random.Random('%s %s' % (seed, name))
        self.stopped, self.failure, self.number, self.jobs = threading.Event(), None, 0, {}

    def run(self):
        try:
            while not self.stopped.is_set():
                self.session()
        except Exception as error:  # pylint: disable=broad-except
            self.failure = repr(error)

    def session(self):
        try:
            connection = self.random.choice(self.servers).connect()
        except OSError:
            time.sleep(0.01)
            return
        try:
            self.begin(connection)
            while not self.stopped.is_set():
                try:
                    self.once(connection)
                except Refused:
                    self.accounts.count('not now')
                    time.sleep(0.01)
        except (wire.Closed, OSError):
            pass
        finally:
            self.accounts.closing(connection)
            connection.close()

    def begin(self, connection):
        pass

    def ask(self, connection, *words, body=None, good):
        got = connection.ask(*words, body=body)
        if got[0] in REFUSED:
            raise Refused(words[0])
        if got[0] not in good:
            raise ValueError('%s: %s' % (words, got))
        return got

    def insist(self, key, connection, *words, body=None, good):
        '''Note a command that may be done though it had no answer'''
        try:
            return self.ask(connection, *words, body=body, good=good)
        except (wire.Closed, OSError, Refused, wire.Late):
            self.accounts.doubtful(key, words[0])
            raise


class Producer(Client):
    def once(self, connection):
        while self.accounts.many() and not self.stopped.is_set():
            time.sleep(0.02)
        key = '%s-%d' % (self.name, self.number)
        self.number += 1
        delay, ttr = self.random.choice((0, 0, 0, 1, 2)), self.random.choice(TTRS)
        self.ask(connection, 'use', self.random.choice(TUBES), good=('USING',))
        self.accounts.putting(key, delay)
        body = key.encode() + b' ' + b'-' * self.random.choice((0, 10, 5000))
        got = self.insist(key, connection, 'put', self.random.randrange(3), delay, ttr, len(body),
                          body=body, good=('INSERTED',))
        self.accounts.put(key, int(got[1]))
        time.sleep(self.random.choice((0, 0, 0.01)))


class Consumer(Client):
    def begin(self, connection):
        self.kept = []
        for tube in TUBES:
            self.ask(connection, 'watch', tube, good=('WATCHING',))

    def once(self, connection):
        asked = time.time()
        got = self.ask(connection, 'reserve-with-timeout', 1,
                       good=('RESERVED', 'TIMED_OUT', 'DEADLINE_SOON'))
        if got[0] == 'RESERVED':
            key = got[3].split(b' ')[0].decode()
            self.use(connection, self.accounts.came(key, int(got[1]), asked, connection))
        due = [pair for pair in self.kept if pair[0] < time.time()]
        self.kept = [pair for pair in self.kept if pair not in due]
        for _, old in due:
            self.do(connection, self.random.choice(('release', 'touch', 'bury', 'delete')), old)
        for number in self.accounts.kicking(1) if self.random.random() < 0.2 else ():
            self.ask(connection, 'kick-job', number, good=('KICKED', 'NOT_FOUND'))

    def use(self, connection, held):
        what = self.random.choices(('delete', 'release', 'bury', 'keep', 'touch', 'slow'),
                                   (66, 10, 4, 8, 6, 6))[0]
        # Its earlier client may still send a command about it.
        if len(held.entry.came) > 1 and self.random.random() < 0.5:
            what = 'keep'
        if what == 'keep':
            # Until its time to run is over, or its server's lease: then it is tried
            self.kept.append((time.time() + self.random.choice((0.5, 2, 4)), held))
        elif what == 'slow':
            time.sleep(self.random.uniform(0, 1))
            self.do(connection, 'delete', held)
        elif what != 'touch' or self.do(connection, 'touch', held):
            self.do(connection, 'delete' if what == 'touch' else what, held)

    def do(self, connection, what, held):
        '''Whether it was granted'''
        delay = self.random.choice((0, 1))
        words = {'delete': (), 'release': (1, delay), 'bury': (2,), 'touch': ()}[what]
        allowed = self.accounts.doing(held, what)
        sent = time.time()
        got = self.insist(held.entry.key, connection, what, held.number, *words,
                          good=('DELETED', 'RELEASED', 'BURIED', 'TOUCHED', 'NOT_FOUND'))
        if got[0] == 'NOT_FOUND':
            self.accounts.count('refused')
            return False
        self.accounts.done(held, got[0].lower(), allowed, delay, sent)
        return True


def start(servers, accounts, seed, producers, consumers, clients=()):
    clients = [*clients, *(Producer('p%d' % n, servers, accounts, seed) for n in range(producers))]
    clients += [Consumer('c%d' % n, servers, accounts, seed) for n in range(consumers)]
    for client in clients:
        client.start()
    return clients


def stop(clients, accounts):
    for client in clients:
        client.stopped.set()
    for client in clients:
        client.join(4 * wire.PATIENCE)
        if client.is_alive():
            accounts.wrong.append('%s got no answer' % client.name)
        if client.failure:
            accounts.wrong.append('%s: %s' % (client.name, client.failure))


def statistic(connection, *words):
    '''A statistic, once the store is there'''
    got = wire.wait_for(' '.join(words), lambda: [
        reply for reply in [connection.ask(*words)] if reply[0] == 'OK'])
    return wire.table(got[0][2])


def left(connection, states=('ready', 'reserved', 'delayed', 'buried')):
    '''How many jobs of these states are in each tube that has some'''
    counts = {}
    for tube in TUBES:
        connection.ask('watch', tube)
        table = statistic(connection, 'stats-tube', tube)
        count = sum(int(table['current-jobs-' + state]) for state in states)
        if count:
            counts[tube] = count
    return counts


def drain(server, accounts):
    '''Take all jobs that are there. Gives the jobs that are left, and lost.'''
    connection = server.connect()
    wire.wait_for('nothing is reserved, nor delayed',
                  lambda: not left(connection, ('reserved', 'delayed')))
    accounts.kicking()
    for tube in TUBES:
        connection.ask('use', tube)
        connection.ask('kick', 10**6)
    until = time.monotonic() + 2 * wire.PATIENCE
    while time.monotonic() < until:
        asked = time.time()
        got = connection.ask('reserve-with-timeout', 0)
        if got[0] != 'RESERVED':
            if not left(connection):
                break
            continue
        held = accounts.came(got[3].split(b' ')[0].decode(), int(got[1]), asked, connection)
        if held and connection.ask('delete', held.number)[0] == 'DELETED':
            accounts.done(held, 'deleted', True)
    wrong = ['%d jobs are left in %s' % pair for pair in left(connection).items()]
    lost = accounts.lost()
    if lost:
        wrong.append('%d lost: %s' % (len(lost), ' '.join(lost[:10])))
    return wrong


def report(wrong, accounts, *needed, more=''):
    '''The counts, and the mistakes; an event that never happened is one, too.'''
    wrong = wrong + ['nothing was ' + what for what in needed if not accounts.counts.get(what)]
    print('\n'.join(wrong[:20]))
    print(', '.join('%s: %d' % count for count in sorted(accounts.counts.items())) + more)
    return bool(wrong)

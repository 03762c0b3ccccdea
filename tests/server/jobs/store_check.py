# SPDX-License-Identifier: GPL-2.0
#
# Clients that do one thing after the other to jobs of their own, and so know what a store has
# to hold of each after any of their steps.

import os
import random
import sqlite3
import threading

from cases import Wrong
import wire

CLIENTS, STEPS = 4, 60
SEED = int(os.environ.get('SEED', '1'))
READY, DELAYED, BURIED = 0, 1, 2
LONG = 100000
GOOD = {'put': 'INSERTED', 'put-unique': 'INSERTED', 'delete': 'DELETED', 'delete-key': 'DELETED',
        'release': 'RELEASED', 'bury': 'BURIED', 'kick-job': 'KICKED', 'reserve-job': 'RESERVED'}


class Lost(Wrong):
    '''The jobs that a store lacks, or has too many.'''


class Client(threading.Thread):
    '''Does one thing to its own jobs after the other, or puts some in one piece. Its steps: the first
    word of a job, which is its key where it was put by one, what the store has of that job once the
    step is acknowledged, (state, priority, length) or None, and the number of the step that was sent
    first with it.'''

    def __init__(self, server, name, steps):
        super().__init__(daemon=True)
        self.name, self.connection, self.steps_left = name, server.connect(), steps
        self.random = random.Random('%s %s' % (SEED, name))
        self.steps, self.answers, self.jobs, self.ids = [], [], {}, {}
        self.failure = None

    def run(self):
        try:
            # Its replies are known by the first one.
            self.connection.ask('use', self.name)
            for _ in range(self.steps_left):
                self.step()
        except (wire.Closed, OSError):
            pass
        except Exception as error:  # pylint: disable=broad-except
            self.failure = repr(error)

    def ask(self, key, after, *words, body=None):
        '''True: it was done. A refused command may still be found done after a crash.'''
        self.steps.append((key, after, len(self.steps)))
        return self.judge(key, after, words, self.connection.ask(*words, body=body))

    def judge(self, key, after, words, got):
        self.answers.append(got[0])
        if got[0] == GOOD[words[0]]:
            if key:
                self.jobs[key] = after
            return got
        if got[0] not in ('OUT_OF_MEMORY', 'INTERNAL_ERROR'):
            raise ValueError('%r: %r' % (words, got))
        return None

    def step(self):
        key = self.random.choice([k for k, v in self.jobs.items() if v] or [None])
        what = self.random.choice(('put', 'put', 'delete', 'release', 'bury', 'kick', 'keyed', 'keyed'))
        if what == 'keyed':
            self.put_by_key()
        elif what == 'put' or not key:
            self.put()
        else:
            self.change(what, key, self.ids[key])

    def change(self, what, key, number):
        state, priority, length = self.jobs[key]
        if what == 'delete' and '.key' in key:
            self.ask(key, None, 'delete-key', key)
        elif what == 'delete':
            self.ask(key, None, 'delete', number)
        elif what == 'kick':
            if state != READY:
                self.ask(key, (READY, priority, length), 'kick-job', number)
        elif self.ask(key, (READY, priority, length), 'reserve-job', number):
            priority = self.random.randrange(9)
            if what == 'bury':
                self.insist(key, (BURIED, priority, length), 'bury', number, priority)
            else:
                delay = self.random.choice((0, LONG))
                self.insist(key, (DELAYED if delay else READY, priority, length), 'release', number,
                            priority, delay)

    def insist(self, *step):
        '''Refused commands have changed nothing, and there is service again.'''
        wire.wait_for('service again', lambda: self.ask(*step))

    def new(self, key):
        '''A job's body and delay, and what the store has of it'''
        body = key.encode() + b' ' + b'-' * self.random.choice((0, 10, 1500, 9000))
        delay, priority = self.random.choice((0, LONG)), self.random.randrange(9)
        return body, delay, (DELAYED if delay else READY, priority, len(body))

    def put_by_key(self):
        key, how = '%s.key%d' % (self.name, self.random.randrange(2)), self.random.choice(
            ('ignore', 'replace', 'debounce'))
        there = self.jobs.get(key)
        body, delay, after = self.new(key)
        if there and how == 'ignore':
            after = there
        elif there and how == 'replace' and there[0] != BURIED:
            after = there[0], *after[1:]
        got = self.ask(key, after, 'put-unique', key, how, 0, after[1], delay, 1000, len(body), body=body)
        if got:
            self.ids[key] = int(got[1])

    def put(self):
        '''One, or some in one piece'''
        first, pieces = len(self.steps), []
        for _ in range(self.random.choice((1, 1, 5))):
            key = '%s.%d' % (self.name, len(self.steps))
            body, delay, after = self.new(key)
            pieces.append((key, after,
                           wire.command('put', after[1], delay, 1000, len(body), body=body)))
            self.steps.append((*pieces[-1][:2], first))
        self.connection.send(b''.join(data for _, _, data in pieces))
        for key, after, _ in pieces:
            got = self.judge(key, after, ('put',), self.connection.reply())
            if got:
                self.ids[key] = int(got[1])


def allowed(clients, replies):
    '''The states that each job may have in the store: sets of possible ends. Of each client, the first
    words of the replies that were sent to it by then'''
    may = {}
    for client in clients:
        answers = replies.get(client.name, [])
        for number, (key, after, first) in enumerate(client.steps):
            if number < len(answers) and answers[number] in GOOD.values():
                may[key] = {after}
            elif first <= len(answers):
                # A command on the way, or refused: perhaps it is done, perhaps not
                may.setdefault(key, {None}).add(after)
    return may


def sound(store):
    said = store.execute('PRAGMA integrity_check').fetchall()
    if said != [('ok',)]:
        raise Lost('the store is damaged: %r' % said)
    counts = store.execute('SELECT id, ready, delayed, buried, urgent FROM tubes'
                           ' WHERE ready + delayed + buried > 0 ORDER BY id').fetchall()
    there = store.execute('SELECT tube, sum(state = 0), sum(state = 1), sum(state = 2),'
                          ' sum(state = 0 AND pri < 1024) FROM jobs GROUP BY tube'
                          ' ORDER BY tube').fetchall()
    if counts != there:
        raise Lost('the store counts %r, and has %r' % (counts, there))


def look(folder):
    '''State, priority and length of each job in a store.'''
    store = sqlite3.connect(os.path.join(folder, 'jobs.db'))
    try:
        store.execute('PRAGMA synchronous = OFF')
        if not store.execute('SELECT 1 FROM sqlite_schema').fetchone():
            return {}
        sound(store)
        rows = store.execute('SELECT body, state, pri, id FROM jobs').fetchall()
        most = store.execute("SELECT value FROM meta WHERE name = 'next_id'").fetchone()
        if rows and most[0] <= max(row[3] for row in rows):
            raise Lost('the next id is %d, and there is a job %d' % (most[0], max(rows)[3]))
        jobs = {row[0].split(b' ')[0].decode(): (*row[1:3], len(row[0])) for row in rows}
        if len(jobs) < len(rows):
            raise Lost('two jobs have a key: %r' % sorted(row[0][:30] for row in rows))
        return jobs
    except sqlite3.DatabaseError as error:
        raise Lost('SQLite: %s' % error) from error
    finally:
        store.close()


def compare(has, may):
    wrong = ['%s is %r, not one of %r' % (key, has.get(key), ends) for key, ends in may.items()
             if has.get(key) not in ends]
    wrong += ['%s was never put' % key for key in has if key not in may]
    if wrong:
        raise Lost('%d jobs: %s' % (len(wrong), '; '.join(wrong[:3])))


def work(bench, life, steps=STEPS):
    '''Clients in one life of the server'''
    clients = [Client(bench.server, 'life%s-%d' % (life, n), steps) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    return clients


def finish(clients):
    for client in clients:
        client.join(wire.PATIENCE * 4)
        if client.is_alive() or client.failure:
            raise ValueError('%s: %s' % (client.name, client.failure or 'no answer'))

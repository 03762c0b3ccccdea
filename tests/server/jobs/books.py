# SPDX-License-Identifier: GPL-2.0
#
# The books that clients keep of what a server acknowledged, while it is killed again
# and again, and what these books say is wrong.

import threading
import time

# What a clock that is read after the other may be behind, in seconds: the store keeps
# times of the wall clock, which may be slewed.
SLACK = 0.005


class Entry:
    '''What is known of a job.'''

    def __init__(self, key, not_before):
        self.key = key
        self.not_before = not_before
        self.id = None
        # sure: put was acknowledged. gone: delete was. doubt: a delete was not answered.
        self.sure = self.gone = self.doubt = self.buried = False
        # In which life of the server it was deleted
        self.gone_in = 0
        # Whose it is, in which life of the server, and until when
        self.holder, self.life, self.until = None, None, 0
        self.times = 0


class Books:
    def __init__(self):
        self.lock = threading.Lock()
        self.entries, self.ids = {}, {}
        self.life = 0
        self.wrong = []
        self.counts = {}

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def complain(self, entry, why):
        self.wrong.append('job %s, id %s: %s' % (entry.key, entry.id, why))

    def putting(self, key, delay):
        with self.lock:
            self.entries[key] = Entry(key, time.time() + delay)

    def inserted(self, key, number):
        with self.lock:
            entry = self.entries[key]
            entry.sure = True
            self.named(entry, number)
            self.count('put')

    def named(self, entry, number):
        if entry.id not in (None, number):
            self.complain(entry, 'now has the id %d' % number)
        entry.id = number
        if self.ids.setdefault(number, entry) is not entry:
            self.complain(entry, 'has the id that %s had' % self.ids[number].key)

    def delivered(self, key, number, who, life, ttr):
        '''A job came. Its client reserved it in that life of the server.'''
        now = time.time()
        with self.lock:
            entry = self.entries.get(key)
            if entry is None:
                self.wrong.append('nobody put a job %r' % key)
                return
            self.named(entry, number)
            self.count('delivered')
            if entry.times:
                self.count('again')
            entry.times += 1
            # What a server sent before it was killed may be read late.
            if entry.gone and life >= entry.gone_in:
                self.complain(entry, 'delivered after its delete was acknowledged')
            if now + SLACK < entry.not_before:
                self.complain(entry, 'early by %.3f s' % (entry.not_before - now))
            if entry.buried:
                self.complain(entry, 'delivered while it is buried')
            if entry.holder not in (None, who) and entry.life == life and now < entry.until:
                self.complain(entry, 'is held by %s until %.3f s from now' %
                              (entry.holder, entry.until - now))
            entry.holder, entry.life, entry.until = who, life, now + ttr - 0.1

    def letting_go(self, key):
        '''It is about to be released, deleted, or buried, or its client to close.'''
        with self.lock:
            entry = self.entries[key]
            entry.holder = None
            entry.not_before = 0

    def released(self, key, sent, delay):
        with self.lock:
            self.count('released')
            # Somebody may have it by now, at the right time or not.
            entry = self.entries[key]
            if entry.holder is None:
                entry.not_before = sent + delay

    def buried(self, key):
        with self.lock:
            self.count('buried')
            self.entries[key].buried = self.entries[key].holder is None

    def kicking(self, most):
        '''Buried jobs that are about to be kicked: their ids.'''
        with self.lock:
            chosen = [e for e in self.entries.values() if e.buried][:most]
            for entry in chosen:
                entry.buried = False
                entry.not_before = 0
            return [entry.id for entry in chosen]

    def deleted(self, key, life):
        with self.lock:
            self.count('deleted')
            self.entries[key].gone = True
            self.entries[key].gone_in = life

    def doubtful(self, key, what):
        with self.lock:
            self.count('not answered: ' + what)
            if what == 'delete':
                self.entries[key].doubt = True

    def lost(self):
        '''What is neither deleted nor there.'''
        return [e.key for e in self.entries.values() if e.sure and not e.gone and not e.doubt]

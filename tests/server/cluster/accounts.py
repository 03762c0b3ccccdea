# SPDX-License-Identifier: GPL-2.0
#
# What clients of several servers on one database know of each job, and what of it is wrong.
#
# A server that was stopped for longer than its lease may yet say what was so when it was
# stopped. So a job came somewhen between the request and the answer, and it is wrong only where
# no moment between the two would be right. What such a client does with it must be refused.

import threading
import time

# A clock that is read after the other may be behind, in seconds.
SLACK = 0.005
# Jobs that are to be there at a time, so that consumers come to all of them
ENOUGH = 500


class Entry:
    def __init__(self, key, not_before):
        self.key, self.not_before, self.since = key, not_before, 0
        self.sure = self.gone = self.doubt = False
        self.gone_at = 0
        self.came = []


class Held:
    '''A job that a client has: asked for at that time, and received'''

    def __init__(self, entry, number, asked, who):
        self.entry, self.number, self.asked, self.received = entry, number, asked, time.time()
        self.who = who

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
        self.entries, self.wrong, self.counts = {}, [], {}

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def many(self):
        '''Are there enough?'''
        return self.counts.get('put', 0) - self.counts.get('deleted', 0) > ENOUGH

    def complain(self, entry, why):
        self.wrong.append('job %s: %s' % (entry.key, why))

    def putting(self, key, delay):
        with self.lock:
            self.entries[key] = Entry(key, time.time() + delay)

    def put(self, key):
        with self.lock:
            self.entries[key].sure = True
            self.count('put')

    def came(self, key, number, asked, who):
        with self.lock:
            entry = self.entries.get(key)
            if not entry:
                self.wrong.append('nobody put a job %r' % key)
                return None
            held = Held(entry, number, asked, who)
            self.count('came')
            if entry.came:
                self.count('again')
            if entry.gone and entry.gone_at < asked:
                self.complain(entry, 'came after its delete was acknowledged')
            if held.received + SLACK < entry.not_before and entry.since < asked:
                self.complain(entry, 'early by %.3f s' % (entry.not_before - held.received))
            entry.came.append(held)
            return held

    def doing(self, held):
        '''Something is about to be done with it: may that be granted?'''
        with self.lock:
            stale = held.another_has_it(time.time())
            if stale:
                self.count('stale')
            else:
                held.entry.not_before = 0
            return not stale

    def done(self, held, what, allowed, delay=0, sent=0):
        '''It was granted'''
        with self.lock:
            entry = held.entry
            self.count(what)
            # Who had it may delete it when it is ready again, as anybody may.
            if not allowed and what != 'deleted':
                self.complain(entry, 'a stale client has %s it at %.3f: %s' %
                              (what, sent, held.story()))
            if what == 'deleted':
                if entry.gone:
                    self.complain(entry, 'was deleted twice')
                entry.gone, entry.gone_at = True, time.time()
            if what == 'released' and not any(c.received > sent for c in entry.came):
                entry.not_before, entry.since = sent + delay, time.time()

    def refused(self, held):
        del held
        with self.lock:
            self.count('refused')

    def doubtful(self, key, what):
        with self.lock:
            self.count('unanswered')
            if what == 'delete':
                self.entries[key].doubt = True

    def lost(self):
        return [e.key for e in self.entries.values() if e.sure and not e.gone and not e.doubt]

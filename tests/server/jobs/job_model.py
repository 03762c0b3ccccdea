# SPDX-License-Identifier: GPL-2.0
#
# A model of a server of beanstalkd's protocol, as simple as can be: all jobs in one
# dictionary, times in ms, and whoever asks looks at all of them. What it would say to a
# client is appended to that client's list of replies.

import hashlib
import struct

DEFAULT, SECOND, MARGIN = 'default', 1000, 1000


class Settings:
    '''A section "tubes" of the configuration file; times in ms'''

    def __init__(self, tries=0, dead_letter=None, backoff=0, most=0, unit=SECOND, unique=False,
                 factor=2, jitter=0, at_most=0, interval=0, burst=1):
        self.tries, self.dead_letter, self.unit, self.unique = tries, dead_letter, unit, unique
        self.backoff, self.most, self.factor, self.jitter = backoff, most, factor, jitter
        self.at_most, self.interval, self.burst = at_most, interval, burst

    def counts(self):
        '''Is each end of a try written?'''
        return bool(self.tries or self.backoff)

    def text(self, name):
        words = ['name = "%s";' % name, 'delay-unit = "%dms";' % self.unit]
        if self.tries:
            words.append('tries = %d;' % self.tries)
        if self.dead_letter:
            words.append('dead-letter = "%s";' % self.dead_letter)
        if self.backoff:
            words.append('backoff = "%dms..%dms"; backoff-factor = %d; backoff-jitter = %d;' % (
                self.backoff, self.most, self.factor, self.jitter))
        if self.unique:
            words.append('unique = "body";')
        if self.at_most:
            words.append('at-most = %d;' % self.at_most)
        if self.interval:
            words.append('rate = "1/%dms"; rate-burst = %d;' % (self.interval, self.burst))
        return '{ %s }' % ' '.join(words)


PLAIN = Settings()


class Tie(Exception):
    '''Two things at the same time may happen in either order.'''


class Job:
    def __init__(self, number, tube, priority, delay, ttr, body, now):
        self.id, self.tube, self.pri, self.delay, self.ttr = number, tube, priority, delay, ttr
        self.body, self.created = body, now
        self.state, self.at, self.holder = 'ready', None, None
        self.counts = dict.fromkeys(('reserves', 'timeouts', 'releases', 'buries', 'kicks'), 0)

    def order(self):
        return self.pri, self.id


class Client:
    def __init__(self):
        self.use, self.watched, self.replies, self.held = DEFAULT, [DEFAULT], [], []
        # Waits since when, and until when, if not for ever
        self.since = self.until = None

    def say(self, *words):
        self.replies.append([str(w) if not isinstance(w, bytes) else w for w in words])

    def stop_waiting(self):
        self.since = self.until = None


class Model:
    def __init__(self, settings=()):
        self.now = self.turn = 0
        self.jobs, self.clients, self.pauses, self.full = {}, [], {}, {}
        self.settings = dict(settings)

    def of(self, job):
        return self.settings.get(job.tube, PLAIN)

    def same_body(self, tube, body):
        '''The job that a put of that stands for, in a tube in which each is there once'''
        if not self.settings.get(tube, PLAIN).unique:
            return None
        return next((j for j in self.jobs.values() if (j.tube, j.body) == (tube, body)), None)

    def next_turn(self):
        self.turn += 1
        return self.turn

    # Looking

    def tubes(self):
        return {DEFAULT}.union((j.tube for j in self.jobs.values()),
                               *({c.use, *c.watched} for c in self.clients))

    def state(self, tube, state):
        return [j for j in self.jobs.values() if j.tube == tube and j.state == state]

    def first(self, tube, state):
        key = Job.order if state == 'ready' else lambda j: (j.at, j.id)
        return min(self.state(tube, state), key=key, default=None)

    def paused(self, tube):
        return tube in self.pauses

    def started(self):
        '''Nobody knows any more what a rate has left.'''
        self.full = {tube: self.now + rules.burst * rules.interval
                     for tube, rules in self.settings.items()}

    def room_at(self, tube):
        '''When the rate of a tube lets a job of it be had'''
        rules = self.settings.get(tube, PLAIN)
        return self.full.get(tube, 0) - (rules.burst - 1) * rules.interval

    def may_give(self, tube):
        rules = self.settings.get(tube, PLAIN)
        return (not rules.at_most or len(self.state(tube, 'reserved')) < rules.at_most) and \
            self.room_at(tube) <= self.now

    def soon(self, client):
        return any(self.now >= j.at - MARGIN for j in client.held)

    # Events

    def ready(self, job):
        job.state, job.at = 'ready', None
        if job.holder:
            job.holder.held.remove(job)
            job.holder = None
        self.serve(job.tube)

    def delayed(self, job, ms):
        if ms:
            job.state, job.at = 'delayed', self.now + ms
        else:
            self.ready(job)

    def buried(self, job):
        job.state, job.at = 'buried', self.next_turn()
        job.counts['buries'] += 1

    def let_go(self, job, delay=None):
        '''A try is over; it was released with that delay, or else nobody said so.'''
        rules = self.of(job)
        job.holder.held.remove(job)
        job.holder = None
        if delay is not None or rules.counts():
            job.delay = delay or 0
        if rules.tries and job.counts['reserves'] >= rules.tries:
            self.put_aside(job, rules)
            return
        ms = (delay or 0) * rules.unit
        if rules.backoff and not ms:
            ms = min(rules.backoff * rules.factor ** (job.counts['reserves'] - 1), rules.most)
            digest = hashlib.sha256(struct.pack('<qq', job.id, job.counts['reserves'])).digest()
            ms += int.from_bytes(digest[:8], 'little') % (ms * rules.jitter // 100 + 1)
            job.delay = -(-ms // rules.unit)
        self.delayed(job, ms)
        self.serve(job.tube)

    def put_aside(self, job, rules):
        job.delay, tube = 0, job.tube
        if rules.dead_letter in (None, job.tube):
            self.buried(job)
        else:
            job.tube = rules.dead_letter
            self.ready(job)
        self.serve(tube)

    def serve(self, tube):
        while not self.paused(tube):
            job = self.first(tube, 'ready')
            waiting = [c for c in self.clients if c.since and tube in c.watched]
            if not job or not waiting or not self.may_give(tube):
                break
            self.give(min(waiting, key=lambda c: c.since), job)

    def give(self, client, job):
        client.stop_waiting()
        job.state, job.holder, job.at = 'reserved', client, self.now + job.ttr * SECOND
        job.counts['reserves'] += 1
        client.held.append(job)
        self.full[job.tube] = max(self.full.get(job.tube, 0), self.now) + self.of(job).interval
        client.say('RESERVED', job.id, len(job.body), job.body)

    def events(self):
        '''The next event without a command: when, and what'''
        for job in self.jobs.values():
            if job.state in ('delayed', 'reserved'):
                yield job.at, lambda j=job: self.expire(j)
        for client in self.clients:
            if client.until is not None:
                yield client.until, lambda c=client: self.waited(c)
        for tube, (until, _) in self.pauses.items():
            yield until, lambda t=tube: self.unpause(t)
        for tube in self.settings:
            if self.room_at(tube) > self.now and self.first(tube, 'ready') and any(
                    c.since and tube in c.watched for c in self.clients):
                yield self.room_at(tube), lambda t=tube: self.serve(t)

    def expire(self, job):
        if job.state == 'reserved':
            job.counts['timeouts'] += 1
            self.let_go(job)
        else:
            self.ready(job)

    def waited(self, client):
        client.stop_waiting()
        client.say('DEADLINE_SOON' if self.soon(client) else 'TIMED_OUT')

    def unpause(self, tube):
        del self.pauses[tube]
        self.serve(tube)

    def step(self, until):
        '''Time goes on to what happens next, or to that time; gives whether that is reached.'''
        due = [event for event in self.events() if event[0] <= until]
        self.now = max(self.now, min((at for at, _ in due), default=until))
        due = [what for at, what in due if at <= self.now]
        if len(due) > 1 and any(c.since for c in self.clients):
            raise Tie()
        for what in due:
            what()
        return not due

    # Commands

    def put(self, client, number, priority, delay, ttr, body):
        job = Job(number, client.use, priority, delay, ttr or 1, body, self.now)
        self.jobs[number] = job
        client.say('INSERTED', number)
        self.delayed(job, delay * self.of(job).unit)

    def reserve(self, client, timeout):
        watched = client.watched
        if self.soon(client) and not any(self.state(t, 'ready') for t in watched):
            client.say('DEADLINE_SOON')
            return
        first = [self.first(t, 'ready') for t in watched
                 if not self.paused(t) and self.may_give(t)]
        job = min((j for j in first if j), key=Job.order, default=None)
        if job:
            self.give(client, job)
        elif timeout == 0:
            client.say('TIMED_OUT')
        else:
            client.since = self.next_turn()
            ends = [j.at - MARGIN for j in client.held]
            if timeout is not None:
                ends.append(self.now + timeout * SECOND)
            client.until = min(ends, default=None)
            if ends and client.until <= self.now:
                self.waited(client)

    def reserve_job(self, client, number):
        job = self.jobs.get(number)
        if not job or job.state == 'reserved' or not self.may_give(job.tube):
            client.say('NOT_FOUND')
        else:
            self.give(client, job)

    def own(self, client, number):
        job = self.jobs.get(number)
        if job and job.holder is client:
            return job
        client.say('NOT_FOUND')
        return None

    def delete(self, client, number):
        job = self.jobs.get(number)
        if not job or job.holder not in (None, client):
            client.say('NOT_FOUND')
            return
        if job.holder:
            client.held.remove(job)
        del self.jobs[number]
        client.say('DELETED')
        self.serve(job.tube)
        self.forget()

    def release(self, client, number, priority, delay):
        job = self.own(client, number)
        if not job:
            return
        job.pri = priority
        job.counts['releases'] += 1
        self.let_go(job, delay)
        client.say('BURIED' if job.state == 'buried' else 'RELEASED')

    def bury(self, client, number, priority):
        job = self.own(client, number)
        if not job:
            return
        client.say('BURIED')
        client.held.remove(job)
        job.pri, job.holder = priority, None
        self.buried(job)
        self.serve(job.tube)

    def touch(self, client, number):
        job = self.own(client, number)
        if job:
            job.at = self.now + job.ttr * SECOND
            client.say('TOUCHED')

    def kick_one(self, job):
        job.counts['kicks'] += 1
        self.ready(job)

    def kick(self, client, bound):
        state = 'buried' if self.state(client.use, 'buried') else 'delayed'
        jobs = sorted(self.state(client.use, state), key=lambda j: (j.at, j.id))[:bound]
        client.say('KICKED', len(jobs))
        for job in jobs:
            self.kick_one(job)

    def kick_job(self, client, number):
        job = self.jobs.get(number)
        if not job or job.state not in ('buried', 'delayed'):
            client.say('NOT_FOUND')
            return
        client.say('KICKED')
        self.kick_one(job)

    def peek(self, client, state):
        job = self.first(client.use, state)
        if job:
            client.say('FOUND', job.id, len(job.body), job.body)
        else:
            client.say('NOT_FOUND')

    def use(self, client, tube):
        client.use = tube
        client.say('USING', tube)
        self.forget()

    def watch(self, client, tube):
        if tube not in client.watched:
            client.watched.append(tube)
        client.say('WATCHING', len(client.watched))

    def ignore(self, client, tube):
        if client.watched == [tube]:
            client.say('NOT_IGNORED')
            return
        if tube in client.watched:
            client.watched.remove(tube)
        client.say('WATCHING', len(client.watched))
        self.forget()

    def pause_tube(self, client, tube, seconds):
        if tube not in self.tubes():
            client.say('NOT_FOUND')
            return
        # A pause of nothing ends with the next tick of the clock.
        self.pauses[tube] = self.now + (seconds * SECOND or 1), seconds
        client.say('PAUSED')

    def forget(self):
        '''A tube that nobody uses, without jobs, is not paused any more.'''
        for tube in set(self.pauses) - self.tubes():
            del self.pauses[tube]

    def open(self):
        self.clients.append(Client())
        return self.clients[-1]

    def close(self, client):
        self.clients.remove(client)
        for job in list(client.held):
            self.let_go(job)
        self.forget()

    def crash(self):
        self.clients, self.pauses = [], {}
        for job in self.jobs.values():
            if job.holder:
                job.state, job.at, job.holder = 'ready', None, None

    # Statistics

    def stats_job(self, number):
        job = self.jobs.get(number)
        if not job:
            return None
        left = job.at - self.now if job.state in ('delayed', 'reserved') else 0
        return {'id': job.id, 'tube': job.tube, 'state': job.state, 'pri': job.pri,
                'age': (self.now - job.created) // SECOND, 'delay': job.delay, 'ttr': job.ttr,
                'time-left': left // SECOND, **job.counts}

    def stats_tube(self, tube):
        if tube not in self.tubes():
            return None
        until, seconds = self.pauses.get(tube, (self.now, 0))
        clients = self.clients
        return {'current-jobs-urgent': sum(j.pri < 1024 for j in self.state(tube, 'ready')),
                **{'current-jobs-' + s: len(self.state(tube, s))
                   for s in ('ready', 'reserved', 'delayed', 'buried')},
                'current-using': sum(c.use == tube for c in clients),
                'current-watching': sum(tube in c.watched for c in clients),
                'current-waiting': sum(bool(c.since) and tube in c.watched for c in clients),
                'pause': seconds, 'pause-time-left': (until - self.now) // SECOND}

# SPDX-License-Identifier: GPL-2.0
#
# A model of schedules: which runs a store has to have. Times are seconds by the wall clock,
# and moments are ns.

import hashlib
import struct
import time as clock

SECOND = 10**9
NEVER = None
INFINITE = 2**63
OPEN, BURIED, DONE, FAILED, SKIPPED, MISSED = range(6)
# What a time that waits for its schedule's own runs waits for
OWN = ''


def iso(seconds):
    return clock.strftime('%Y-%m-%dT%H:%M:%SZ', clock.gmtime(seconds))


class Every:
    def __init__(self, seconds, origin=0):
        self.seconds, self.origin = seconds, origin
        self.text = '@every %ds' % seconds
        if origin:
            self.text += ' FROM=' + iso(origin)

    def next(self, after):
        return max(((after - self.origin) // self.seconds + 1) * self.seconds, 0) + self.origin

    def prev(self, before):
        time = (before - 1 - self.origin) // self.seconds * self.seconds + self.origin
        return time if time >= self.origin else NEVER


class At:
    def __init__(self, when, text):
        self.when, self.text = when, '@at ' + text

    def next(self, after):
        return self.when if after < self.when else NEVER

    def prev(self, before):
        return self.when if before > self.when else NEVER


class Fields:
    '''Minutes and hours of each day, in UTC'''

    def __init__(self, minutes, hours):
        self.times = sorted(h * 3600 + m * 60 for h in hours for m in minutes)
        self.text = '%s %s * * *' % (','.join(map(str, minutes)), ','.join(map(str, hours)))

    def next(self, after):
        day = after // 86400 * 86400
        return next(t for d in (day, day + 86400) for t in (d + at for at in self.times)
                    if t > after)

    def prev(self, before):
        day = before // 86400 * 86400
        return next(t for d in (day, day - 86400) for t in (d + at for at in self.times[::-1])
                    if t < before)


class Plan:
    '''A schedule, and the runs that it had'''

    @staticmethod
    def started():
        '''When the server was, in ns of the wall clock as it is now'''
        return 0

    def __init__(self, name, when, **options):
        self.name, self.when = name, when
        self.shards, self.late, self.jitter = 1, 60, 0
        self.misfire, self.most, self.overlap, self.days = 'once', 1, 'yes', ()
        self.after, self.within = None, 86400
        # In seconds; how many times from the first on, and whether its line pauses it
        self.start, self.end, self.count, self.held = 0, NEVER, 0, False
        self.__dict__.update(options)
        self.time, self.since, self.paused, self.gone = NEVER, INFINITE, False, True
        # (time in ns, shard): result and when it was made
        self.runs = {}
        # Moments whose run of shard 0 is no job yet: the schedule that it waits for, until when
        self.waiting = {}

    def line(self):
        words = [self.when.text, 'NAME=' + self.name, 'TUBE=t', 'SHARDS=%d' % self.shards,
                 'MISFIRE=' + (self.misfire if self.misfire != 'all' else 'all:%d' % self.most),
                 'MISFIRE_AFTER=%d' % self.late, 'JITTER=%ds' % self.jitter,
                 'OVERLAP=' + self.overlap]
        if self.after:
            words += ['AFTER=' + self.after, 'AFTER_WITHIN=%ds' % self.within]
        if self.days:
            words.append('CALENDAR=%s.days' % self.name)
        words += self.limits()
        return ' '.join(words) + ' %N %s/%n %t'

    def limits(self):
        words = ['PAUSED=yes'] if self.held else []
        if self.start:
            words.append('START=' + iso(self.start))
        if self.end is not NEVER:
            words.append('END=' + iso(self.end))
        return words + (['COUNT=%d' % self.count] if self.count else [])

    def fits(self, time):
        return time is NEVER or time // 86400 not in self.days

    def ends(self):
        '''The last time that it may have'''
        time, left = self.start - 1, self.count
        while left and time is not NEVER:
            time, left = self.when.next(time), left - 1
        return min((t for t in (self.end, time if self.count else NEVER) if t is not NEVER),
                   default=INFINITE)

    def next(self, after):
        time = self.when.next(max(after, self.start - 1))
        while not self.fits(time):
            time = self.when.next(time)
        return NEVER if time is NEVER or self.held or time > self.ends() else time

    def prev(self, before):
        time = self.when.prev(min(before, self.ends() + 1))
        while not self.fits(time):
            time = self.when.prev(time)
        return NEVER if time is NEVER or self.held or time < self.start else time

    def can_be(self):
        '''A schedule that never fires is refused.'''
        time = self.when.next(self.start - 1)
        while time is not NEVER and time <= self.ends():
            if self.fits(time):
                return True
            time = self.when.next(time)
        return False

    def due(self):
        '''When it fires next, in ns'''
        if self.time is NEVER or self.paused or self.gone:
            return NEVER
        missed = self.jitter and self.time < self.started() // SECOND - self.late - self.jitter
        if missed:
            return self.started() + self.shift(self.started() // (86400 * SECOND))
        return self.time * SECOND + self.shift(self.time)

    def shift(self, number):
        if not self.jitter:
            return 0
        digest = hashlib.sha256(self.name.encode() + struct.pack('q', number)).digest()
        most = self.jitter * 1000
        return int.from_bytes(digest[:8], 'little') % (most + 1) * 10**6

    def begin(self, now):
        '''A file has it from now on, or in another form'''
        self.gone = False
        self.time = self.next(now // SECOND)
        self.since = INFINITE if self.time is NEVER else self.time

    def keeps_time(self, other, now):
        '''A time that is due stays when the schedule is edited, and has it then, too.'''
        return not self.gone and self.time is not NEVER and self.time <= now // SECOND and \
            other.next(self.time - 1) == self.time

    def went_back(self, now):
        time = self.next(now // SECOND)
        if time is not NEVER and (self.time is NEVER or time < self.time):
            self.time = time

    def fire(self, now, plans):
        '''All that is due is made.'''
        while self.due() is not NEVER and self.due() <= now:
            before = now // SECOND - self.late - self.jitter
            if self.time < before:
                self.missed(before, now, plans)
            else:
                self.make_at(self.time * SECOND, now, plans)
                self.since = min(self.since, self.time)
                self.time = self.next(self.time)

    def first(self):
        '''Times before a schedule was there are not made up for.'''
        if self.time >= self.since:
            return self.time
        time = NEVER if self.since == INFINITE else self.next(self.since - 1)
        return INFINITE if time is NEVER else time

    def missed(self, before, now, plans):
        want = {'once': 1, 'skip': 0, 'all': self.most}[self.misfire]
        times, at = [], self.prev(before)
        first = self.first()
        while len(times) < want and at is not NEVER and at >= first:
            times.insert(0, at)
            at = self.prev(at)
        if first < before and (not times or times[0] != first):
            if self.free(first * SECOND, 0):
                self.write(first * SECOND, MISSED, now)
        for time in times:
            self.make_at(time * SECOND, now, plans)
        self.time = self.next(before - 1)

    def write(self, moment, result, made, shard=0):
        self.runs[moment, shard] = (result, made)
        if not shard:
            self.waiting.pop(moment, None)

    def free(self, moment, shard):
        return not shard and moment in self.waiting or \
            self.runs.get((moment, shard), (MISSED,))[0] in (SKIPPED, MISSED)

    def is_open(self):
        return any(r == OPEN and (s or t not in self.waiting) for (t, s), (r, _) in self.runs.items())

    def end_of(self, moment):
        '''How a time ended: DONE, FAILED if it has or will have no run that is done, or OPEN'''
        results = [r for (t, _), (r, _) in self.runs.items() if t == moment]
        if not results:
            last = max((key for key in self.runs if key[0] < moment), default=None)
            result, made = self.runs.get(last, (OPEN, 0))
            may_come = self.time is not NEVER and self.time * SECOND <= moment
            return FAILED if result == MISSED and made >= moment and not may_come else OPEN
        if any(r in (FAILED, SKIPPED, MISSED) for r in results):
            return FAILED
        return OPEN if any(r in (OPEN, BURIED) for r in results) else DONE

    def decide(self, moment, overlap, plans, over):
        if plans and self.after:
            end = plans[self.after].end_of(moment)
            if end == OPEN and not over:
                return self.after
            if end != DONE:
                return SKIPPED
        if overlap == 'yes' or not self.is_open():
            return OPEN
        return SKIPPED if overlap == 'no' else OWN

    def make_at(self, moment, now, plans=None, overlap=None, waited=False):
        '''Gives how many jobs were made, skipped, there before, and are to wait. @plans: those that it
        may come after; @waited: it has waited'''
        over = waited and 0 < self.waiting[moment][1] <= now
        # Another one's run is behind what waits for its own.
        plans = None if waited and self.waiting[moment][0] == OWN else plans
        what = self.decide(moment, overlap or self.overlap, plans, over)
        free = [s for s in range(self.shards) if self.free(moment, s)]
        count, there = len(free), self.shards - len(free)
        if what == OPEN:
            for shard in free:
                self.write(moment, OPEN, now, shard)
            if 0 in free and self.overlap == 'wait':
                self.leave_out(moment)
            return count, 0, there, 0
        if what == SKIPPED:
            if 0 in free:
                self.write(moment, SKIPPED, now)
            return 0, count, there, 0
        if 0 in free and (what == OWN or not waited):
            self.write(moment, OPEN, now)
            self.waiting[moment] = (what, now + self.within * SECOND if what else 0)
            if what == OWN:
                self.leave_out(moment)
        return 0, 0, there, count

    def leave_out(self, moment):
        '''Of those that wait for its own runs, only the last one does.'''
        for other in [t for t, (what, _) in self.waiting.items() if what == OWN and t != moment]:
            self.write(other, SKIPPED, self.runs[other, 0][1])

    def need_not_wait(self, now, plans):
        '''Times that have waited; nothing is made at last while it is paused, or a time is due.'''
        if self.gone or self.paused or self.held or self.due() is not NEVER and self.due() <= now:
            return []
        return [t for t, (what, until) in sorted(self.waiting.items()) if (
            until <= now or plans[what].end_of(t) != OPEN if what else not self.is_open())]

    def resume(self, now):
        self.paused, self.time = False, self.next(now // SECOND)
        self.since = INFINITE if self.time is NEVER else self.time

    def run(self, now):
        return self.make_at(now + (now % SECOND == 0), now)

    def times(self, first, last):
        time = self.next(first - 1)
        while time is not NEVER and time <= last:
            yield time
            time = self.next(time)

    def backfill(self, first, last, now):
        made = [self.make_at(t * SECOND, now, overlap='yes') for t in self.times(first, last)]
        return tuple(map(sum, zip((0, 0, 0, 0), *made)))

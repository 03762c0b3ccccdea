# SPDX-License-Identifier: GPL-2.0
#
# A model of schedules: which runs a store has to have. Times are seconds by the wall clock,
# and moments are ns.

import hashlib
import struct

SECOND = 10**9
NEVER = None
OPEN, BURIED, DONE, FAILED, SKIPPED, MISSED = range(6)
# A week of minutes is enough for all of these
FAR = 40 * 86400


class Every:
    def __init__(self, seconds):
        self.seconds = seconds
        self.text = '@every %ds' % seconds

    def next(self, after):
        return (after // self.seconds + 1) * self.seconds

    def prev(self, before):
        return (before - 1) // self.seconds * self.seconds


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
    '''A schedule, and what was made of it'''

    def __init__(self, name, when, **options):
        self.name, self.when = name, when
        self.shards, self.late, self.jitter = 1, 60, 0
        self.misfire, self.most, self.overlap, self.days = 'once', 1, True, ()
        self.__dict__.update(options)
        self.time, self.paused, self.gone = NEVER, False, True
        # (time, shard): result and when it was made
        self.runs = {}

    def line(self):
        words = [self.when.text, 'NAME=' + self.name, 'TUBE=t', 'SHARDS=%d' % self.shards,
                 'MISFIRE=' + (self.misfire if self.misfire != 'all' else 'all:%d' % self.most),
                 'MISFIRE_AFTER=%d' % self.late, 'JITTER=%ds' % self.jitter,
                 'OVERLAP=' + ('yes' if self.overlap else 'no')]
        if self.days:
            words.append('CALENDAR=%s.days' % self.name)
        return ' '.join(words) + ' %N %s/%n %t'

    def fits(self, time):
        return time is NEVER or time // 86400 not in self.days

    def next(self, after):
        time = self.when.next(after)
        while not self.fits(time):
            time = self.when.next(time)
        return time

    def prev(self, before):
        time = self.when.prev(before)
        while not self.fits(time):
            time = self.when.prev(time)
        return time

    def due(self):
        '''When it fires next, in ns'''
        if self.time is NEVER or self.paused or self.gone:
            return NEVER
        return self.time * SECOND + self.shift(self.time)

    def shift(self, time):
        if not self.jitter:
            return 0
        digest = hashlib.sha256(self.name.encode() + struct.pack('q', time)).digest()
        most = self.jitter * 1000
        return int.from_bytes(digest[:8], 'little') % (most + 1) * 10**6

    def begin(self, now):
        '''A file has it from now on, or in another form'''
        self.gone = False
        self.time = self.next(now // SECOND)

    def went_back(self, now):
        time = self.next(now // SECOND)
        if time is not NEVER and (self.time is NEVER or time < self.time):
            self.time = time

    def fire(self, now):
        '''All that is due is made.'''
        while self.due() is not NEVER and self.due() <= now:
            before = now // SECOND - self.late - self.jitter
            if self.time < before:
                self.missed(before, now)
            else:
                self.make(self.time, now)
                self.time = self.next(self.time)

    def missed(self, before, now):
        want = {'once': 1, 'skip': 0, 'all': self.most}[self.misfire]
        times, at = [], self.prev(before)
        while len(times) < want and at is not NEVER and at >= self.time:
            times.insert(0, at)
            at = self.prev(at)
        if not times or times[0] != self.time:
            if self.free(self.time, 0):
                self.runs[self.time, 0] = (MISSED, now)
        for time in times:
            self.make(time, now)
        self.time = self.next(before - 1)

    def free(self, time, shard):
        return self.runs.get((time, shard), (MISSED,))[0] in (SKIPPED, MISSED)

    def make(self, time, now):
        blocked = not self.overlap and any(r == OPEN for r, _ in self.runs.values())
        for shard in range(self.shards if not blocked else 1):
            if self.free(time, shard):
                self.runs[time, shard] = (SKIPPED if blocked else OPEN, now)

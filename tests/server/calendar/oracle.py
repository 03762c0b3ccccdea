# SPDX-License-Identifier: GPL-2.0
#
# When an expression fires, as simple as can be: it looks at each minute, or each second, of
# some days, and does what the main loop of Debian's cron does there. It was written from
# cron(8), crontab(5), cron.c and the manual of Quartz, and shares nothing with what it tests.
# Python's zoneinfo says what the clock shows.

import calendar
import datetime
import zoneinfo

import numpy

DAY = 86400
MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split()
DAYS = 'sun mon tue wed thu fri sat'.split()
NICKNAMES = {
    '@yearly': '0 0 1 1 *', '@annually': '0 0 1 1 *', '@monthly': '0 0 1 * *',
    '@weekly': '0 0 * * 0', '@daily': '0 0 * * *', '@midnight': '0 0 * * *',
    '@hourly': '0 * * * *',
}
FIRST = datetime.date(1970, 1, 1)
EPOCH = datetime.datetime(1970, 1, 1)


def month_length(date):
    return calendar.monthrange(date.year, date.month)[1]


def nearest(date, day):
    '''The day from Monday to Friday that is next to a day of this month.'''
    for near in (day, day - 1, day + 1, day - 2, day + 2):
        if 1 <= near <= month_length(date) and date.replace(day=near).weekday() < 5:
            return near
    raise AssertionError('a month without such a day')


def numbers(item, low, high, value):
    '''The values of a, a-b, a/n, a-b/n and *; a range may go over the end.'''
    span, _, step = item.partition('/')
    first, dash, last = span.partition('-')
    if span in ('*', '?'):
        first, last = low, high
    else:
        first = value(first)
        last = value(last) if dash else high if step else first
    values = list(range(low, high + 1))
    if last < first:
        values = values[values.index(first):] + values[:values.index(last) + 1]
    else:
        values = list(range(first, last + 1))
    return set(values[::int(step or 1)])


def members(field, low, high, value=int):
    return set().union(*(numbers(item, low, high, value) for item in field.split(',')))


def named(names, first):
    return lambda text: (names.index(text.lower()) + first if text.isalpha() else int(text))


def is_star(field):
    return field[0] in '*?'


class Expression:
    def __init__(self, text):
        fields = NICKNAMES.get(text, text).split()
        self.quartz = len(fields) > 5
        if not self.quartz:
            fields = ['0', *fields]
        if len(fields) < 7:
            fields.append('*')
        second, minute, hour, self.dom, month, self.dow, year = fields
        self.seconds = members(second, 0, 59)
        self.minutes = members(minute, 0, 59)
        self.hours = members(hour, 0, 23)
        self.months = members(month, 1, 12, named(MONTHS, 1))
        self.years = members(year, 1970, 2199)
        self.either = not is_star(self.dom) and not is_star(self.dow)
        self.wild = is_star(second) or is_star(minute) or is_star(hour)
        # With the day of the week as cron has it, from 0 on
        self.first_day = 1 if self.quartz else 0
        self.plain_dom = self.plain(self.dom, 1, 31, int, 'LW')
        self.plain_dow = self.plain_days()

    @staticmethod
    def plain(field, low, high, value, letters):
        items = [i for i in field.split(',') if not any(c in i for c in letters)]
        return members(','.join(items), low, high, value) if items else set()

    def plain_days(self):
        items = [i for i in self.dow.upper().split(',') if not self.is_special(i)]
        value = named(DAYS, self.first_day)
        found = set()
        for item in items:
            # Quartz' 7 is Saturday, cron's is Sunday, as its 0.
            found |= numbers(item, self.first_day, 7, value) if '-' not in item \
                else self.days_range(item, value)
        return {(day - self.first_day) % 7 for day in found}

    def days_range(self, item, value):
        span, _, step = item.partition('/')
        first, last = (value(text) for text in span.split('-'))
        last += 7 if last < first else 0
        return set(range(first, last + 1, int(step or 1)))

    def is_special(self, item):
        return '#' in item or (item[-1] == 'L')

    def weekday(self, text):
        return (named(DAYS, self.first_day)(text) - self.first_day) % 7

    def dom_fits(self, date):
        length = month_length(date)
        if date.day in self.plain_dom:
            return True
        for item in self.dom.split(','):
            if item[0] == 'L':
                before, w, _ = item[1:].lstrip('-').partition('W')
                day = length - int(before or 0)
                if day >= 1 and date.day == (nearest(date, day) if w else day):
                    return True
            elif item[-1] == 'W':
                day = int(item[:-1])
                if day <= length and date.day == nearest(date, day):
                    return True
        return False

    def dow_fits(self, date):
        weekday = date.isoweekday() % 7
        if weekday in self.plain_dow:
            return True
        for item in self.dow.upper().split(','):
            if item == 'L':
                if weekday == 6:
                    return True
            elif item[-1] == 'L':
                if weekday == self.weekday(item[:-1]) and date.day + 7 > month_length(date):
                    return True
            elif '#' in item:
                name, nth = item.split('#')
                if weekday == self.weekday(name) and (date.day - 1) // 7 + 1 == int(nth):
                    return True
        return False

    def day_fits(self, date):
        if date.year not in self.years or date.month not in self.months:
            return False
        if self.either:
            return self.dom_fits(date) or self.dow_fits(date)
        return self.dom_fits(date) and self.dow_fits(date)

    def times_of_day(self):
        return sorted((h * 60 + m) * 60 + s for h in self.hours for m in self.minutes
                      for s in self.seconds)


class Window:
    '''The clock of a zone, for some days, in units of a minute or a second.'''

    def __init__(self, zone, start, days, unit):
        self.unit, self.start, self.end = unit, start, start + days * DAY
        self.times = numpy.arange(start, self.end, unit, dtype=numpy.int64)
        info = zoneinfo.ZoneInfo(zone)
        shown = numpy.fromiter((shows(time, info) for time in self.times.tolist()),
                               dtype=numpy.int64, count=len(self.times))
        # A minute that does not begin on this clock with a minute of UTC needs the seconds.
        self.fits = not (shown % unit).any()
        self.clock = shown // unit
        # cron's virtualTime: how far the clock has come, which is never back
        self.virtual = numpy.maximum.accumulate(self.clock)
        self.per_day = DAY // unit
        self.day0 = int(self.clock.min()) // self.per_day
        self.days = int(self.clock.max()) // self.per_day - self.day0 + 1
        self.jumps = numpy.flatnonzero(numpy.diff(self.virtual) > 1) + 1
        self.moves = numpy.diff(self.virtual, prepend=self.virtual[0] - 1) > 0
        self.tod = self.clock % self.per_day
        self.day = self.clock // self.per_day - self.day0

    def fitting(self, expression):
        '''Which times of a day, and which days, an expression fits.'''
        tod = numpy.zeros(self.per_day, dtype=bool)
        tod[[time // self.unit for time in expression.times_of_day()]] = True
        days = [expression.day_fits(FIRST + datetime.timedelta(self.day0 + day))
                for day in range(self.days)]
        return tod, numpy.array(days)

    def fires(self, expression):
        '''
        cron's main loop, for all minutes at once: what is wild runs in each minute that the
        clock shows. Of fixed times, those run to which virtualTime has just come, and that is
        all that it goes over when the clock jumps.
        '''
        tod, days = self.fitting(expression)
        found = tod[self.tod] & days[self.day]
        if not expression.wild:
            found &= self.moves
            for at in self.jumps:
                gap = numpy.arange(self.virtual[at - 1] + 1, self.virtual[at] + 1)
                found[at] = (tod[gap % self.per_day] & days[gap // self.per_day - self.day0]).any()
        return self.times[found]


def shows(time, info):
    '''The time that the clock shows, as if it were UTC.'''
    # (Asked for its offset, a time that comes three times says the wrong one.)
    shown = datetime.datetime.fromtimestamp(time, info).replace(tzinfo=None) - EPOCH
    return shown.days * DAY + shown.seconds


def changes(zone, start, days):
    '''When the clock is set, from a time on, for some days.'''
    info = zoneinfo.ZoneInfo(zone)

    def offset(time):
        return shows(time, info) - time
    found = []
    for begin in range(start, start + days * DAY, DAY // 4):
        low, high = begin, begin + DAY // 4
        if offset(low) == offset(high):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if offset(middle) != offset(low) else (middle, high)
        found.append(high)
    return found

# SPDX-License-Identifier: GPL-2.0
#
# Expressions at random: most of what is allowed, and often near the hours at which clocks are
# set.

from oracle import DAYS, MONTHS

HOURS = (0, 0, 1, 1, 2, 2, 2, 3, 3, 23)


def one_of(rng, *makers):
    return rng.choice(makers)()


def number_item(rng, low, high, value, steps=True):
    a, b = value(), value()
    step = rng.choice((1, 2, 2, 3, 5, 7, 15, 30))
    step = min(step, high - low)
    return one_of(rng, lambda: '%d' % a, lambda: '%d' % a, lambda: '%d-%d' % (a, b),
                  lambda: '%d-%d/%d' % (a, b, step) if steps else '%d' % a,
                  lambda: '%d/%d' % (a, step) if steps else '%d' % b)


def field(rng, low, high, star, value=None):
    value = value or (lambda: rng.randint(low, high))
    if rng.random() < star:
        return '*' if rng.random() < .6 else '*/%d' % rng.choice(
            [s for s in (1, 2, 3, 4, 5, 7, 10, 12, 15, 20, 30) if s <= high - low + 1])
    count = rng.choice((1, 1, 1, 2, 3))
    return ','.join(number_item(rng, low, high, value) for _ in range(count))


def month_field(rng, star):
    if rng.random() < star:
        return rng.choice(('*', '*', '*', '*/2', '*/3'))
    if rng.random() < .3:
        return rng.choice(MONTHS).upper()
    return field(rng, 1, 12, 0)


def dom_field(rng, star, special):
    if rng.random() < star:
        return rng.choice(('*', '*', '*', '*/2', '*/5', '?'))
    if rng.random() < special:
        return ','.join(one_of(
            rng, lambda: 'L', lambda: 'LW',
            lambda: 'L-%d' % rng.randint(1, 30),
            lambda: 'L-%dW' % rng.randint(1, 30),
            lambda: '%dW' % rng.choice((1, 1, 28, 30, 31, rng.randint(1, 31))),
            lambda: '%d' % rng.randint(1, 31)) for _ in range(rng.choice((1, 1, 2))))
    return field(rng, 1, 31, 0)


def dow_field(rng, star, special, quartz):
    low = 1 if quartz else 0
    if rng.random() < star:
        return rng.choice(('*', '*', '*', '*/2', '*/3', '?'))

    def day():
        return rng.choice(DAYS) if rng.random() < .3 else '%d' % rng.randint(low, 7)
    if rng.random() < special:
        return ','.join(one_of(
            rng, lambda: '%sL' % day().upper(), lambda: '%s#%d' % (day(), rng.randint(1, 5)),
            lambda: 'L' if quartz else day(), day) for _ in range(rng.choice((1, 1, 2))))
    if rng.random() < .3:
        return '%s-%s' % (day(), day())
    return field(rng, low, 7, 0)


def hour(rng):
    return rng.choice(HOURS) if rng.random() < .6 else rng.randint(0, 23)


def expression(rng, seconds=None, special=.2, year=None):
    '''With seconds or without; years around @year.'''
    if rng.random() < .02 and not seconds:
        return rng.choice(('@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly'))
    quartz = rng.random() < .3 if seconds is None else seconds
    fields = [field(rng, 0, 59, .3),
              field(rng, 0, 23, .3, lambda: hour(rng)),
              dom_field(rng, .6, special), month_field(rng, .8),
              dow_field(rng, .6, special, quartz)]
    if quartz:
        fields.insert(0, field(rng, 0, 59, .2) if seconds else '0')
        if rng.random() < .3 and year:
            fields.append(rng.choice(('*', '%d' % year, '%d-%d' % (year - 1, year + 1),
                                      '%d/2' % year)))
    return ' '.join(fields)

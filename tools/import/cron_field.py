# SPDX-License-Identifier: GPL-2.0
"""
How cron reads a field of a time: Debian's, which stops at what it does not understand, and
cronie, which refuses that. A tab has other rules for some of it: 5#3, 5/20, fri-mon.
"""
import re

MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split()
DAYS = 'sun mon tue wed thu fri sat'.split()
# Of a minute, hour, day, month and day of the week: the least and the most, a step that is the same
# as any longer one, and names from the least on
KINDS = (0, 59, 60, []), (0, 23, 24, []), (1, 31, 31, []), (1, 12, 12, MONTHS), (0, 7, 7, DAYS)
NAMES = 'minute', 'hour', 'day of the month', 'month', 'day of the week'
# A star, or a value with perhaps a range; then perhaps a step. Anything may follow.
ITEM = re.compile(r'(?:(\*)|([0-9A-Za-z]+)(-([0-9A-Za-z]*))?)(/([0-9A-Za-z]*))?')


def number(word, low, names):
    if word.lower() in names:
        return names.index(word.lower()) + low
    return int(word) if re.fullmatch('[0-9]{1,9}', word) else -1


def read_item(kind, found, cronie):
    '''First, last and step of an item; None if it is refused'''
    low, high, _, names = kind
    star, first, is_range, last, has_step, step = found.groups()
    values = [low, high]
    if not star:
        values = [number(first, low, names)] * 2
        if has_step and not is_range:
            return None
    if is_range:
        values[1] = number(last, low, names)
        # To cronie, the Sunday at the end of a range is 7.
        if cronie and not has_step and values[0] > values[1] == 0:
            values[1] = 7
    by = number(step, 0, []) if has_step else 1
    return (*values, by) if by > 0 and all(low <= value <= high for value in values) else None


def item_in_tab(kind, found, item, begins_with_star):
    star, first, is_range, last, has_step, step = found.groups()
    # Only what begins with a star in cron, too, is to begin with one.
    text = first or (star if begins_with_star else '%d-%d' % kind[:2])
    if is_range:
        text += '-' + ('7' if item[1] == 7 > item[0] and not last[0].isdigit() else last)
    if has_step:
        text += '/' + (step if item[2] <= kind[2] else str(kind[2]))
    return text


def read(which, text, cronie):
    """
    A field, by its number from 0 on, as Debian's cron reads it, or cronie: what has the same
    meaning in a tab, or '' if it is fine, but never fits; None if cron refuses it.
    """
    kind, items, at = KINDS[which], [], 0
    while True:
        found = ITEM.match(text, at)
        item = found and read_item(kind, found, cronie)
        if not item:
            return None
        if item[0] <= item[1]:
            items.append(item_in_tab(kind, found, item, items or text[0] == '*'))
        at = found.end()
        if text[at:at + 1] != ',':
            break
        at += 1
    return None if cronie and at < len(text) else ','.join(items)

# SPDX-License-Identifier: GPL-2.0
#
# The goals that the benchmark's results are held against, by number of promise.

from fnmatch import fnmatchcase


def select(rows, **which):
    """The rows whose fields are as given; in words, * stands for anything."""
    def fits(have, want):
        if isinstance(want, str):
            return isinstance(have, str) and fnmatchcase(have, want)
        return have == want
    return [row for row in rows
            if all(fits(row.get(field), want) for field, want in which.items())]


def sizes(rows):
    """In words, with how many timers rows were measured."""
    found = sorted({row['timers'] for row in rows})
    return ' to '.join(f'{n:,}' for n in (found if len(found) < 2 else (found[0], found[-1])))


# Each of these makes a function of all rows, which returns the figure that the goal
# is about, and a remark; or nothing, where it was not measured.

def largest(**which):
    def figure(rows):
        rows = select(rows, **which)
        return rows and (max(row['value'] for row in rows), sizes(rows))
    return figure


def smallest(**which):
    def figure(rows):
        rows = select(rows, **which)
        return rows and (min(row['value'] for row in rows), sizes(rows))
    return figure


def spread(**which):
    """In percent, what the dearest size costs more than the cheapest."""
    def figure(rows):
        rows = select(rows, **which)
        values = [row['value'] for row in rows]
        return len(values) > 1 and ((max(values) / min(values) - 1) * 100, sizes(rows))
    return figure


def advantage(peers, peer_batch, batch, operation):
    """How many times ours the best of the peers costs, at the size where least."""
    def figure(rows):
        rows = select(rows, suite='guest', operation=operation, metric='instructions')
        found = []
        for ours in select(rows, peer='twheel', batch=batch):
            others = [row['value'] for row in rows if row['peer'] in peers and
                      row['timers'] == ours['timers'] and row['batch'] in peer_batch]
            if others:
                found.append((min(others) / ours['value'], ours))
        return found and (min(ratio for ratio, _ in found), sizes([row for _, row in found]))
    return figure


def given_back(rows):
    """In percent, what of the memory of pending timers is free after them."""
    rows = select(rows, suite='memory', peer='twheel')
    pending = select(rows, operation='pending')
    after = select(rows, operation='after')
    if not pending or not after:
        return None
    taken = pending[0]['value'] * pending[0]['timers']
    return min(100, (1 - after[0]['value'] / taken) * 100), sizes(pending)


def beyond_need(rows):
    """Interrupts beyond the occupied ticks and the preloads, where most."""
    rows = select(rows, suite='idle_wakeups')
    found = []
    for row in select(rows, metric='occupied_ticks'):
        same = select(rows, operation=row['operation'], timers=row['timers'])
        had = {other['metric']: other['value'] for other in same}
        if 'interrupts' in had:
            found.append((max(0, had['interrupts'] - had['occupied_ticks'] -
                              had.get('most_preloads', 0)), row))
    return found and (max(found, key=lambda f: f[0])[0], sizes([row for _, row in found]))


def speedup(rows):
    two = select(rows, suite='wheels', operation='two_wheels', metric='speedup_best')
    none = select(rows, suite='wheels', operation='no_wheel', metric='speedup_best')
    if not two:
        return None
    return two[0]['value'], (f'{none[0]["value"]:.2f} without any wheel: '
                             'what this machine gave' if none else '')


def batched(operation, batch=256, peer='twheel'):
    return dict(suite='guest', peer=peer, operation=operation, batch=batch,
                metric='instructions')


def shared(operation, metric='instructions'):
    return dict(suite='guest', peer='twheel-shared', operation=operation, metric=metric)


def native(operation):
    return dict(suite='native', peer='wheel', operation=operation, timers=100000,
                metric='instructions')


def ratio(peer):
    return dict(suite='native', peer=peer, metric='ns_ratio')


OPERATIONS = ('arm', 'modify_later', 'modify_earlier', 'cancel', 'expire_read')
CALLS = OPERATIONS[:4]
KERNEL = ('timerfd', 'posix', 'io_uring')

# Number of the goal, what it is about, how the figure must be to the limit, its
# unit, how the figure is found.
GOALS = [
    *((1, f'{operation}, in batches', '<=', limit, 'instructions', largest(**batched(operation)))
      for operation, limit in zip(OPERATIONS, (111, 66, 110, 78, 180))),
    *((1, f'{operation}, {batch} in a call', '<=', limit, 'instructions',
       largest(**batched(operation, batch)))
      for batch, limit in ((2, 550), (16, 120)) for operation in CALLS),
    *((1, f'{operation}, periodic', '<=', limit, 'instructions',
       largest(**batched(operation, peer='twheel-periodic')))
      for operation, limit in (('arm', 250), ('cancel', 150), ('expire_read', 200))),
    *((1, f'{operation}, in batches: the same at each size', '<=', 10, '% more',
       spread(**batched(operation))) for operation in OPERATIONS),
    *((1, f'{operation}, in batches: the best kernel peer costs', '>=', 10, 'times ours',
       advantage(KERNEL, (1, 256), 256, operation)) for operation in OPERATIONS),
    *((1, f'{operation}, one at a time: timerfd costs', '>=', 1.5, 'times ours',
       advantage(('timerfd',), (1,), 1, operation)) for operation in ('arm', 'cancel')),
    *((2, f'{operation}, the wheel alone', '<=', limit, 'instructions', largest(**native(operation)))
      for operation, limit in (('arm', 31), ('cancel', 19), ('expire_read', 150))),
    *((2, f'{peer} takes, where least', '>=', 1, 'times our time', smallest(**ratio(peer)))
      for peer in ('libevent', 'libevent-common', 'libev', 'libuv', 'dpdk')),
    *((2, f'{peer} takes, where least', '>=', 10, 'times our time', smallest(**ratio(peer)))
      for peer in ('netty', 'jdk-executor', 'jdk-delayqueue')),
    (3, 'kernel memory of a pending timer', '<=', 40, 'bytes',
     largest(suite='memory', peer='twheel', operation='pending')),
    (3, 'of it given back', '>=', 99, '%', given_back),
    (4, "longest run, by the module's statistics", '<=', 65000, 'instructions',
     largest(suite='*', metric='longest_run_instructions')),
    (4, 'longest hold, by the tracer preemptoff', '<=', 65000, 'instructions',
     largest(suite='max_latency', metric='preemptoff_instructions')),
    (4, 'longest hold, by the tracer irqsoff', '<=', 65000, 'instructions',
     largest(suite='max_latency', metric='irqsoff_instructions')),
    (5, 'in their own tick, of those in an upper slot', '>=', 99.9, '%',
     smallest(suite='lateness', operation='slot_*', metric='in_own_tick_percent')),
    (5, 'the latest of those in an upper slot', '<=', 1, 'ticks late',
     largest(suite='lateness', operation='slot_*', metric='worst_ticks')),
    (5, 'in their own tick, of those due in one tick', '>=', 100, '%',
     smallest(suite='lateness', operation='one_tick', metric='in_own_tick_percent')),
    (5, 'the same, while they are read', '>=', 100, '%',
     smallest(suite='lateness', operation='one_tick_read', metric='in_own_tick_percent')),
    (5, 'the same, after one was pushed out of it', '>=', 100, '%',
     smallest(suite='lateness', operation='one_tick_one_pushed', metric='in_own_tick_percent')),
    (5, 'the same, of a wall clock', '>=', 100, '%',
     smallest(suite='lateness', operation='one_tick_wall_clock', metric='in_own_tick_percent')),
    (5, 'shared: at the program in their own tick, of connections', '>=', 99.9, '%',
     smallest(suite='lateness', operation='shared_connections*',
              metric='program_in_own_tick_percent')),
    *((5, f'shared: the latest of {those}, at the program', '<=', 1, 'ticks late',
       largest(suite='lateness', operation=f'shared_{case}*', metric='program_worst_ticks'))
      for case, those in (('connections', 'connections'),
                          ('slot_of_4096_ticks', 'those in a slot of 4,096 ticks'),
                          ('slot_of_64_ticks', 'those in a slot of 64 ticks'),
                          ('one_tick', 'those due in one tick'))),
    (6, 'a day of an empty wheel', '<=', 0, 'interrupts',
     largest(suite='idle_wakeups', operation='empty_day', metric='interrupts')),
    (6, 'a lone timer, an hour away', '<=', 2, 'interrupts',
     largest(suite='idle_wakeups', operation='lone_hour', metric='interrupts')),
    (6, 'beyond occupied ticks and preloads', '<=', 0, 'interrupts', beyond_need),
    (7, 'two wheels on two processors, to one', '>=', 1.9, 'times the work', speedup),
    (7, 'an open wheel', '<=', 4096, 'bytes',
     largest(suite='wheels', operation='open', metric='bytes')),
    (7, 'open wheels', '<=', 0, 'interrupts',
     largest(suite='wheels', operation='open', metric='interrupts')),
    (8, 'a day of connections: memory', '<=', 5, '% up and down',
     largest(suite='day', metric='memory_sway_percent')),
    *((8, f'a day of connections: {what}', '<=', 0, 'events', largest(suite='day', metric=what))
      for what in ('early', 'lost', 'twice')),
    *((9, f'shared: {operation}', '<=', limit, 'instructions', largest(**shared(operation)))
      for operation, limit in (('arm', 25), ('modify_later', 8), ('cancel', 8), ('take', 10),
                               ('expire_read', 150))),
    (9, 'shared: system calls of connections', '<=', 1, 'in 10,000 operations',
     largest(**shared('connection', metric='calls_per_10000'))),
    *((9, f"shared: the kernel's part of a timer {when}", '<=', 100, 'instructions',
       largest(**shared(operation, metric='kernel_instructions'), timers=1000000))
      for operation, when in (('cancelled', 'that was cancelled'),
                              ('cancelled_soon', 'that was, before its first deadline'))),
    (9, 'shared: memory of a timer, pending or not', '<=', 27, 'bytes',
     largest(suite='memory', peer='twheel-shared', operation='pending')),
    (10, 'start and cancel of a task, by one thread', '<=', 200, 'instructions',
     largest(suite='pools', peer='pool', operation='start_cancel')),
    (10, 'the same by four threads: the JDK takes, where least', '>=', 10, 'times our time',
     smallest(suite='pools', peer='jdk-executor-*', operation='start_cancel_4_threads')),
    (10, 'an expiry with 8 workers', '<=', 1.2, 'switches',
     largest(suite='pools', peer='pool-8', metric='switches')),
    (10, 'memory of a task', '<=', 128, 'bytes',
     largest(suite='pools', peer='pool-1', operation='pending', timers=1000000)),
]

MET = {'<=': lambda figure, limit: figure <= limit, '>=': lambda figure, limit: figure >= limit}

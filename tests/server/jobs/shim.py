# SPDX-License-Identifier: GPL-2.0
#
# A test's side of shim.c. SHIM in the environment is its library. Each part
# has an env, with which a server is started.

import mmap
import os
import struct

import wire

MS = 1000000
SECOND = 10**9
# As in shim.c
WALL = 1780000000 * SECOND


def env(**parts):
    return {'LD_PRELOAD': os.environ['SHIM'], 'ASAN_OPTIONS': 'verify_asan_link_order=0',
            **{'SHIM_' + name.upper(): str(value) for name, value in parts.items()}}


class Disk:
    def __init__(self, folder):
        self.path = os.path.join(folder, 'disk')
        self.env = env(disk=self.path)

    def become(self, state=''):
        wire.write(self.path, state)

    def once(self, name, number, what, which='any'):
        self.become('once %s %d %s %s' % (name, number, which, what))

    def done(self, name):
        '''Whether it came to that one call'''
        return os.path.exists('%s.%s' % (self.path, name))


class Shared:
    '''Numbers of 64 bits in a file'''

    def __init__(self, folder, name, count):
        path = wire.write(os.path.join(folder, name), bytes(8 * count))
        with open(path, 'r+b') as file:
            self.words = mmap.mmap(file.fileno(), 8 * count)
        self.env = env(**{name: path})

    def read(self):
        return struct.unpack('%dq' % (len(self.words) // 8), self.words)

    def put(self, at, number):
        self.words[8 * at:8 * at + 8] = struct.pack('q', number)


class Clock(Shared):
    '''The clocks of a server whose time passes when the test says so'''

    def __init__(self, folder):
        super().__init__(folder, 'clock', 4)

    def settled(self):
        '''All expired timers were delivered, and set anew since'''
        now, seen, busy, _ = self.read()
        return now == seen and not busy

    def set(self, ms):
        self.put(0, ms * MS)

    def wall(self):
        '''The wall clock, in ns'''
        now, _, _, by = self.read()
        return WALL + now + by

    def go_to(self, wall):
        '''Time passes until the wall clock shows that second.'''
        self.set(self.read()[0] // MS + (wall * SECOND - self.wall()) // MS)

    def put_wall(self, by):
        '''Somebody has set the wall clock, by as many ns altogether.'''
        self.put(3, by)


class Turns(Shared):
    '''How long its event loop works between two waits'''

    def __init__(self, folder):
        super().__init__(folder, 'turns', 2)

    def begin(self):
        self.words[:] = bytes(16)

    def longest(self):
        '''Since then: the longest one as a part of all together'''
        longest, together = self.read()
        return longest / together

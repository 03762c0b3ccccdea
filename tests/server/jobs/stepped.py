# SPDX-License-Identifier: GPL-2.0
#
# The clocks of a server that is started with stepped.c.

import mmap
import struct

MS = 1000000
# As in stepped.c
WALL = 1780000000 * 10**9


class Clock:
    '''What stepped.c reads, and says'''

    def __init__(self, path):
        with open(path, 'wb') as out:
            out.write(bytes(32))
        with open(path, 'r+b') as file:
            self.words = mmap.mmap(file.fileno(), 32)

    def read(self):
        return struct.unpack('qqqq', self.words)[:3]

    def settled(self):
        '''All timers that have expired were told, and set anew since'''
        now, seen, busy = self.read()
        return now == seen and not busy

    def set(self, ms):
        self.words[0:8] = struct.pack('q', ms * MS)

    def wall(self):
        '''The wall clock, in ns'''
        now, _, _, put = struct.unpack('qqqq', self.words)
        return WALL + now + put

    def put_wall(self, by):
        '''Somebody has set the wall clock, by as many ns altogether.'''
        self.words[24:32] = struct.pack('q', by)

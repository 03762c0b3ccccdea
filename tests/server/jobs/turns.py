# SPDX-License-Identifier: GPL-2.0
#
# How long the event loop of a server works between two waits. TURNS is the library of turns.c.

import os
import struct


class Turns:
    '''Of one server, which is started with env'''

    def __init__(self, folder):
        self.path = os.path.join(folder, 'turns')
        os.makedirs(folder, exist_ok=True)
        with open(self.path, 'wb') as out:
            out.write(bytes(16))
        self.env = {'LD_PRELOAD': os.environ['TURNS'], 'TWHEELD_TURNS': self.path,
                    'ASAN_OPTIONS': 'verify_asan_link_order=0'}

    def begin(self):
        with open(self.path, 'r+b') as file:
            file.write(bytes(16))

    def longest(self):
        '''Since then: the longest one as a part of all together'''
        with open(self.path, 'rb') as file:
            longest, together = struct.unpack('qq', file.read())
        return longest / together

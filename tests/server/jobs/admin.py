# SPDX-License-Identifier: GPL-2.0
#
# A client of the admin socket, which is beside the jobs.

import json
import os
import socket

import wire


class Admin:
    def __init__(self, bench):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(wire.PATIENCE)
        self.socket.connect(os.path.join(bench.store, 'admin'))
        self.lines = self.socket.makefile('rb')

    def ask(self, *words):
        '''All objects of the answer'''
        self.socket.sendall(' '.join(map(str, words)).encode() + b'\n')
        objects = []
        while not objects or not {'ok', 'error'} & set(objects[-1]):
            objects.append(json.loads(self.lines.readline()))
        return objects

    def close(self):
        self.lines.close()
        self.socket.close()

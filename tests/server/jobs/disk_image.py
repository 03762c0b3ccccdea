# SPDX-License-Identifier: GPL-2.0
#
# The states that a disk may have when the power fails: shim.c recorded the writes to its files
# and synced. Of what was written since a file was synced, any sector may be there or not; a
# file's name is there for sure once its folder was synced. After a sync that failed, what was
# to be synced is there or not, and no later sync changes that: Linux takes it for clean.

import collections
import itertools
import os
import struct

HEAD = struct.Struct('=ciiQQ')
SECTOR, PAGE = 512, 4096
KEEP = {'nothing': 0.0, 'all': 1.0, 'some': 0.5, 'most': 0.95}

Record = collections.namedtuple('Record', 'what pid fd at data')


def records(path):
    '''The records of all runs of a server'''
    for life in itertools.count():
        try:
            with open('%s.%d' % (path, life), 'rb') as log:
                yield from whole(log.read())
        except FileNotFoundError:
            return


def whole(log):
    '''Each record as it was done, but for one that a kill -9 has cut off.'''
    last, at = None, 0
    while at + HEAD.size <= len(log):
        what, pid, fd, place, size = HEAD.unpack_from(log, at)
        at += HEAD.size + size
        record = Record(what.decode(), pid, fd, place, log[at - size:at])
        if record.what == 'E':
            # A write that was recorded before it was done may have been done in part
            last = last._replace(data=last.data[:place]) if place else None
            continue
        if last:
            yield last
        last = record if at <= len(log) else None
    if last:
        yield last


def put(content, at, data):
    if len(content) < at:
        content.extend(bytes(at - len(content)))
    content[at:at + len(data)] = data


class File:
    def __init__(self, random):
        self.random = random
        self.cache, self.disk = bytearray(), bytearray()
        self.pending = []

    def write(self, at, data):
        put(self.cache, at, data)
        self.pending.append((at, data))

    def truncate(self, size):
        if size < len(self.cache):
            del self.cache[size:]
        else:
            put(self.cache, size, b'')
        self.pending.append((size, None))

    def dirty(self):
        '''The pages that were touched since the last sync'''
        pages = set()
        for at, data in self.pending:
            if data:
                pages.update(range(at // PAGE, (at + len(data) - 1) // PAGE + 1))
        return pages

    def to_disk(self, page):
        put(self.disk, page * PAGE, self.cache[page * PAGE:(page + 1) * PAGE])

    def sync(self):
        for page in self.dirty():
            self.to_disk(page)
        self.resize()

    def resize(self):
        del self.disk[len(self.cache):]
        put(self.disk, len(self.cache), b'')
        self.pending = []

    def sync_fails(self):
        for page in self.dirty():
            if self.random.random() < 0.5:
                self.to_disk(page)
        self.resize()

    def after(self, how):
        '''States that the disk may have'''
        if how == 'torn':
            # In order up to a moment, in which one write was half done
            count = self.random.randrange(len(self.pending) + 1)
            keep, last = self.pending[:count], self.pending[count:count + 1]
            return self.apply(keep, 1.0, last)
        return self.apply(self.pending, KEEP[how])

    def apply(self, changes, chance, torn=()):
        content = bytearray(self.disk)
        for at, data in [*changes, *torn]:
            if data is None:
                if self.random.random() < chance or chance == 1.0:
                    del content[at:]
                    put(content, at, b'')
                continue
            if torn and (at, data) is torn[0]:
                data = data[:self.random.randrange(len(data))]
            for start, piece in sectors(at, data):
                if chance == 1.0 or self.random.random() < chance:
                    put(content, start, piece)
        return content


def sectors(at, data):
    while data:
        size = SECTOR - at % SECTOR
        yield at, data[:size]
        at, data = at + size, data[size:]


class Disk:
    '''A folder of files'''

    def __init__(self, folder, random):
        self.folder, self.random = os.path.realpath(folder), random
        self.names, self.on_disk = {}, {}
        self.pending = []
        self.open = {}
        self.done = 0

    def do(self, record):
        self.done += 1
        key = (record.pid, record.fd)
        if record.what == 'O':
            self.open[key] = self.opened(record.data.decode())
        elif record.what == 'U':
            self.link(record.data.decode(), None)
        else:
            self.do_file(record, self.open[key])

    def opened(self, path):
        if path == self.folder:
            return self
        if path not in self.names:
            self.link(path, File(self.random))
        return self.names[path]

    def link(self, path, file):
        if file:
            self.names[path] = file
        else:
            # Or it is a socket, of which no call tells that it came.
            self.names.pop(path, None)
        self.pending.append((path, file))

    @staticmethod
    def do_file(record, file):
        if record.what == 'W':
            file.write(record.at, record.data)
        elif record.what == 'T':
            file.truncate(record.at)
        elif record.what == 'S':
            file.sync()
        elif record.what == 'F':
            file.sync_fails()

    # The folder as a file

    def sync(self):
        self.on_disk = dict(self.names)
        self.pending = []

    def sync_fails(self):
        pass

    def after_names(self, how):
        names = dict(self.on_disk)
        for path, file in self.pending:
            if how == 'torn':
                how = self.random.choice(('nothing', 'all'))
            if self.random.random() < KEEP[how]:
                names[path] = file
        return {path: file for path, file in names.items() if file}

    def lay_out(self, folder, how):
        for path, file in self.after_names(how).items():
            with open(os.path.join(folder, os.path.basename(path)), 'wb') as out:
                out.write(file.after(how))

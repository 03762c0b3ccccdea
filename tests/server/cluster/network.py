# SPDX-License-Identifier: GPL-2.0
#
# A network of its own, where each server of jobs has a machine's part, whose cable can be
# pulled. The test itself is where the database is. Clients connect by unix sockets, which are
# the same in all of these networks.

import subprocess

HERE = '10.77.0.1'


def run(*words):
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def begin():
    '''The bridge; the process must be in a network that is not the machine's.'''
    run('ip', 'link', 'set', 'lo', 'up')
    run('ip', 'link', 'add', 'bridge', 'type', 'bridge')
    run('ip', 'addr', 'add', HERE + '/24', 'dev', 'bridge')
    run('ip', 'link', 'set', 'bridge', 'up')


class Place:
    '''A network with one cable'''

    def __init__(self, number):
        self.cable = 'cable%d' % number
        self.holder = subprocess.Popen(['unshare', '-n', 'sh', '-c', 'echo; exec sleep infinity'],
                                       stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        run('ip', 'link', 'add', self.cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns',
            str(self.holder.pid))
        run('ip', 'link', 'set', self.cable, 'master', 'bridge', 'up')
        self.run('ip', 'addr', 'add', '10.77.0.%d/24' % (10 + number), 'dev', 'eth0')
        self.run('ip', 'link', 'set', 'eth0', 'up')
        self.run('ip', 'link', 'set', 'lo', 'up')

    def inside(self):
        return ['nsenter', '-t', str(self.holder.pid), '-n']

    def run(self, *words):
        run(*self.inside(), *words)

    def pull(self):
        run('ip', 'link', 'set', self.cable, 'down')

    def plug(self):
        run('ip', 'link', 'set', self.cable, 'up')

    def end(self):
        self.holder.kill()
        self.holder.wait()

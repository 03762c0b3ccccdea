# SPDX-License-Identifier: GPL-2.0
#
# Servers of jobs on one database.

import os
import signal
import time

from accounts import statistic
import shim
import wire

LEASE = 2


class Node(wire.Server):
    '''A server of jobs, whose clock may be wrong'''

    def __init__(self, program, folder, uri, tabs=None, wrong_by=0, lease=LEASE, more=''):
        conf = 'lease = "%ds"; node = "%s";\n%s\n' % (lease, os.path.basename(folder), more)
        if tabs:
            conf += 'schedules = "%s"; admin = "%s/admin";\n' % (tabs, folder)
        super().__init__(program, folder, '--store', uri, '-c',
                         wire.write(os.path.join(folder, 'conf'), conf))
        if wrong_by:
            self.env = shim.env(wall=wrong_by)

    def pause(self, seconds):
        self.signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.signal(signal.SIGCONT)


def stats(connection):
    return statistic(connection, 'stats')

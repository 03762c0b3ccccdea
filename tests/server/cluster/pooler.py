# SPDX-License-Identifier: GPL-2.0
#
# pgbouncer between servers of jobs and their database.

import os
import shutil
import signal
import subprocess

from database import AS_OTHER, NAME, demote, mapped, programs
import wire

PORT = 6432


class Pooler:
    '''A pooler that gives out @size connections in that mode'''

    def __init__(self, folder, postgres, mode, size):
        os.makedirs(folder)
        if os.getuid() == 0 and not mapped():
            shutil.chown(folder, 'nobody')
        self.folder, self.process = folder, None
        self.tree = programs().split('/usr/lib/')[0]
        self.conf = wire.write(os.path.join(folder, 'ini'), '\n'.join((
            '[databases]', '* = host=%s port=%d user=%s' % (postgres.folder, postgres.port, NAME),
            '[pgbouncer]', 'unix_socket_dir = ' + folder, 'listen_port = %d' % PORT,
            'listen_addr =', 'auth_type = any', 'pool_mode = ' + mode,
            'default_pool_size = %d' % size, 'logfile = %s/log' % folder, '')))

    def uri(self, database):
        return 'postgresql:///%s?host=%s&port=%d&user=%s' % (database, self.folder, PORT, NAME)

    def __enter__(self):
        program, env = self.tree + '/usr/sbin/pgbouncer', dict(os.environ)
        # That of another release finds its libraries by itself.
        if not os.path.exists(program + '.elf'):
            env['LD_LIBRARY_PATH'] = os.path.join(self.tree, 'usr/lib/x86_64-linux-gnu')
        self.process = subprocess.Popen(
            [*AS_OTHER, program, self.conf], preexec_fn=demote, env=env,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wire.wait_for('pgbouncer does not start', lambda: os.path.exists(
            '%s/.s.PGSQL.%d' % (self.folder, PORT)))
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

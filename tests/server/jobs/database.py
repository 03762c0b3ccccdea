# SPDX-License-Identifier: GPL-2.0
#
# PostgreSQL for a test: of Debian's package, on a folder of its own, as a user without rights.
# Never the cluster that the package may have made.
#
# python3 database.py [-t] COMMAND...: do that while a PostgreSQL runs in the folder $DATABASE.
#
# -t  it ends the connections of servers of jobs three times a second, once one serves: then the
#     one that it began with is closed

import contextlib
import glob
import os
import pwd
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import wire

NAME = 'twheeld'
LEASE = '1s'
# The database's process may be killed, never the machine: so nothing need be on the disk.
QUICK = ['-c', 'max_connections=200', '-c', 'listen_addresses=', '-c', 'wal_level=replica',
         '-c', 'fsync=off',
         '-c', 'max_wal_senders=4', '-c', 'hot_standby=on', '-c', 'wal_keep_size=256MB']


def programs():
    '''Where scripts/postgres says, or those that are installed'''
    if 'POSTGRES' in os.environ:
        return os.environ['POSTGRES']
    found = glob.glob('/usr/lib/postgresql/*/bin')
    if not found:
        raise FileNotFoundError('POSTGRES is to be what scripts/postgres says')
    return max(found, key=lambda path: int(path.split('/')[4]))


def mapped():
    '''Is this the root of a user namespace, where there is no other user?'''
    with open('/proc/self/uid_map') as file:
        return os.getuid() == 0 and file.read().split()[2] == '1'


# PostgreSQL does not run as root: for root, it is another user of one more namespace.
AS_OTHER = ['unshare', '-U', '--map-user=65534', '--map-group=65534'] if mapped() else []

# Its files are on a disk of their own, which has to be mounted before it is another user.
ON_DISK = 'cp -a "$0" "$0.made" && mount -t tmpfs -o size="$1",mode=700 none "$0" &&' \
    ' cp -a "$0.made/." "$0" && shift && exec unshare -U --map-user=65534 --map-group=65534 "$@"'


def demote():
    if os.getuid() == 0 and not mapped():
        nobody = pwd.getpwnam('nobody')
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)


class Postgres:
    '''A server, which listens on a socket in its folder, or at an address.'''

    def __init__(self, folder, port=5432, address=None):
        self.folder, self.port, self.address = folder, port, address
        self.data = os.path.join(folder, 'data')
        self.log = os.path.join(folder, 'log')
        self.process = None
        os.makedirs(folder, exist_ok=True)
        if os.getuid() == 0 and not mapped():
            shutil.chown(folder, 'nobody')

    def do(self, program, *words):
        done = subprocess.run([*AS_OTHER, os.path.join(programs(), program), *words],
                              cwd=self.folder, preexec_fn=demote, capture_output=True,
                              check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise OSError('%s: %s' % (program, done.stderr.decode()))
        return done.stdout.decode()

    def make(self):
        self.do('initdb', '-D', self.data, '-A', 'trust', '-U', NAME, '-E', 'UTF8',
                '--locale=C', '--no-sync')
        with open(os.path.join(self.data, 'pg_hba.conf'), 'a') as out:
            out.write('host all all 0.0.0.0/0 trust\nhost replication all 0.0.0.0/0 trust\n')
        return self

    def start(self, disk=None):
        '''With a disk, on one of that size, which is gone with it: it begins with what was made'''
        where = ['-c', 'listen_addresses=' + self.address] if self.address else []
        before = ['unshare', '-rm', 'sh', '-c', ON_DISK, self.data, disk] if disk else AS_OTHER
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(
                [*before, os.path.join(programs(), 'postgres'), '-D', self.data, '-k',
                 self.folder, '-p', str(self.port), *QUICK, *where],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=demote)
        wire.wait_for('PostgreSQL does not start: ' + self.log, self.answers)
        return self

    @contextlib.contextmanager
    def full(self, left):
        '''Meanwhile its disk has only this many bytes left'''
        self.on_disk('fallocate -l $(($(stat -f -c %%a*%%S .) - %d)) ballast' % left)
        try:
            yield
        finally:
            self.on_disk('rm ballast')

    def on_disk(self, command):
        self.ask("COPY (SELECT) TO PROGRAM '%s'" % command)

    def answers(self):
        if self.process.poll() is not None:
            raise wire.Late('PostgreSQL ended: ' + self.log)
        try:
            self.ask('SELECT 1')
        except OSError:
            return False
        return True

    def processes(self):
        '''The database's processes: the first one, and its children'''
        with open('/proc/%d/task/%d/children' % (self.process.pid, self.process.pid)) as file:
            return [self.process.pid] + [int(word) for word in file.read().split()]

    @contextlib.contextmanager
    def silent(self):
        '''Meanwhile the database takes connections, and answers nothing'''
        stopped = self.processes()
        for process in stopped:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in stopped:
                os.kill(process, signal.SIGCONT)

    def ask(self, sql, database='postgres'):
        '''Through its socket, which no network takes away'''
        return self.do('psql', '-h', self.folder, '-p', str(self.port), '-U', NAME, '-XAtq', '-v',
                       'ON_ERROR_STOP=1', '-c', sql, database).strip()

    def aside(self, database, *words, role=NAME, **rest):
        '''A client that goes on with it'''
        return subprocess.Popen([os.path.join(programs(), 'psql'), '-XAtq', *words,
                                 self.uri(database, role)], text=True, stdout=subprocess.PIPE, **rest)

    @contextlib.contextmanager
    def held(self, sql, database='postgres'):
        '''Something is locked, by statements that say so.'''
        psql = self.aside(database, '-v', 'ON_ERROR_STOP=1', stdin=subprocess.PIPE)
        psql.stdin.write("SET lock_timeout = '30s'; BEGIN; %s;\n" % sql)
        psql.stdin.flush()
        if psql.stdout.readline() != 'locked\n':
            raise wire.Late('a lock: ' + sql)
        try:
            yield
        finally:
            psql.communicate()

    def uri(self, database, role=NAME):
        '''On a busy machine, that it takes a connection may take longer than servers wait.'''
        return 'postgresql:///%s?host=%s&port=%d&user=%s&connect_timeout=20' % (
            database, self.folder, self.port, role)

    def standby(self, folder, port, address=None):
        '''A copy of it, which follows'''
        other = Postgres(folder, port, address)
        self.do('pg_basebackup', '-h', self.folder, '-p', str(self.port), '-U', NAME, '-D',
                other.data, '-c', 'fast', '-X', 'stream', '--no-sync')
        with open(os.path.join(other.data, 'standby.signal'), 'w'):
            pass
        with open(os.path.join(other.data, 'postgresql.auto.conf'), 'a') as out:
            out.write("primary_conninfo = 'host=%s port=%d user=%s application_name=standby'\n" %
                      (self.address or self.folder, self.port, NAME))
        if os.getuid() == 0 and not mapped():
            shutil.chown(os.path.join(other.data, 'standby.signal'), 'nobody')
        return other

    def promote(self):
        self.do('pg_ctl', '-D', self.data, '-w', 'promote')

    def stop(self, how=signal.SIGQUIT):
        '''SIGQUIT is as if it were killed; with SIGINT it ends what it does'''
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def own_name(folder):
    return 'd' + folder.replace('/', '_')[-60:].lower()


def store(folder):
    '''Options of a server that keeps its jobs there; the same folder, the same jobs. With
    DATABASE in the environment, the folder of a PostgreSQL, in a database of its own there.'''
    base = os.environ.get('DATABASE')
    if not base:
        os.makedirs(folder, exist_ok=True)
        return '-b', folder
    server = Postgres(base)
    os.makedirs(folder, exist_ok=True)
    # A server that was killed leaves others, and itself, what it had reserved after this time.
    conf = os.path.join(folder, 'lease.conf')
    with open(conf, 'w') as out:
        out.write('lease = "%s";\n' % LEASE)
    name = own_name(folder)
    if server.ask("SELECT count(*) FROM pg_database WHERE datname = '%s'" % name) == '0':
        server.ask('CREATE DATABASE "%s"' % name)
    return '--store', server.uri(name), '-c', conf


def rows(folder, sql):
    '''Rows of the database: numbers, and texts without a line end or a bar'''
    base = os.environ.get('DATABASE')
    if base:
        said = Postgres(base).ask('SET search_path = twheeld; ' + sql, own_name(folder))
        return [tuple(int(word) if re.fullmatch('-?[0-9]+', word) else word or None
                      for word in line.split('|')) for line in said.splitlines()]
    db = sqlite3.connect('file:%s/jobs.db?mode=ro' % folder, uri=True)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def shared():
    '''Do the tests run with a store that servers share?'''
    return 'DATABASE' in os.environ


OF_SERVERS = "FROM pg_stat_activity WHERE application_name LIKE 'twheeld%'"
HAS_SESSION = 'SELECT count(*) > 0 ' + OF_SERVERS + " AND application_name LIKE '%session%'"


def terminate(server, command):
    '''While that runs; gives how many connections were ended'''
    ended, serves = 0, False
    while command.poll() is None:
        if serves:
            ended += int(server.ask('SELECT count(pg_terminate_backend(pid)) ' + OF_SERVERS))
            time.sleep(0.3)
        else:
            # A moment later it has its other connections, too.
            serves = server.ask(HAS_SESSION) == 't'
            time.sleep(1 if serves else 0.3)
    return ended


def main(words):
    cut = words[0] == '-t'
    with Postgres(os.environ['DATABASE']).make().start() as server, \
            subprocess.Popen(words[cut:]) as command:
        if cut:
            ended = terminate(server, command)
            print('%d connections were ended' % ended)
            return command.returncode or ended < 5
        return command.wait()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

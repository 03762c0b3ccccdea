# SPDX-License-Identifier: GPL-2.0
#
# A server of beanstalkd's protocol that runs, and connections to it.

import os
import select
import signal
import socket
import sqlite3
import subprocess
import threading
import time

WITH_BODY = (b'RESERVED', b'FOUND', b'OK')
PATIENCE = 30


class Closed(Exception):
    '''The server closed the connection.'''


class Late(Exception):
    '''A wait had no result in time.'''


def readable(sock, wait):
    '''Whether something can be read in time; select() knows the first 1,024 descriptors only.'''
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return poll.poll(wait * 1000)


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as probe:
        return probe.getsockname()[1]


def write(path, text):
    '''All of it at once, as an editor does; gives the path.'''
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + '.new', 'wb') as out:
        out.write(text if isinstance(text, bytes) else text.encode())
    os.rename(path + '.new', path)
    return path


class Store:
    '''SQLite's file of jobs, as long as it is needed, and in one transaction'''

    def __init__(self, path):
        self.db = sqlite3.connect(path)

    def __enter__(self):
        return self.db

    def __exit__(self, kind, *_):
        if not kind:
            self.db.commit()
        self.db.close()


class Connection:
    '''A connection to a server: bytes out, whole replies in.'''

    def __init__(self, address):
        kind = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(kind, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(address)
        if kind == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input, self.need = bytearray(), 0

    def send(self, data):
        self.socket.sendall(data)

    def cut(self):
        '''A whole reply out of what came: its words, or None.'''
        at = self.input.find(b'\r\n') if len(self.input) >= self.need else -1
        if at < 0:
            return None
        line, end = bytes(self.input[:at]), at + 2
        words = line.split(b' ')
        body = None
        if words[0] in WITH_BODY:
            begin, end = end, end + int(words[-1]) + 2
            # Until it is there, none of it is looked at again.
            self.need = end
            if len(self.input) < end:
                return None
            body = bytes(self.input[begin:end - 2])
            if self.input[end - 2:end] != b'\r\n':
                raise ValueError('a body does not end with CR LF: %r' % line)
        del self.input[:end]
        self.need = 0
        return [word.decode('latin-1') for word in words] + ([] if body is None else [body])

    def reply(self, wait=PATIENCE):
        '''The next reply; None if there is none within that time.'''
        until = time.monotonic() + wait
        while True:
            got = self.cut()
            if got:
                return got
            left = until - time.monotonic()
            if not readable(self.socket, max(left, 0)):
                return None
            try:
                data = self.socket.recv(1 << 20)
            except ConnectionError:
                data = b''
            if not data:
                raise Closed(bytes(self.input))
            self.input += data

    def ask(self, *words, body=None):
        '''A command, and its reply.'''
        self.send(command(*words, body=body))
        got = self.reply()
        if got is None:
            raise Late('no reply to %r' % (words,))
        return got

    def ask_all(self, commands, at_a_time=100):
        '''The replies to many commands, of which some are under way at a time'''
        replies = []
        for at in range(0, len(commands), at_a_time):
            some = commands[at:at + at_a_time]
            self.send(b''.join(some))
            replies += [self.reply() for _ in some]
        return replies

    def close(self):
        self.socket.close()


def command(*words, body=None):
    line = b' '.join(w if isinstance(w, bytes) else str(w).encode() for w in words) + b'\r\n'
    return line if body is None else line + body + b'\r\n'


def table(body):
    '''A statistic of YAML as a dictionary, or a list.'''
    lines = body.decode().split('\n')
    if lines[0] != '---' or lines[-1] != '':
        raise ValueError('no YAML document: %r' % body)
    lines = lines[1:-1]
    if lines and lines[0].startswith('- '):
        return [line[2:] for line in lines]
    return dict(line.split(': ', 1) for line in lines)


def wait_for(what, ready, wait=PATIENCE):
    '''The result of ready() once it is true. @what is a text for the error, or a function that gives
    it, which is called after a wait in vain, and so has the last state.'''
    until = time.monotonic() + wait
    while True:
        begun = time.monotonic()
        got = ready()
        if got:
            return got
        now = time.monotonic()
        if now > until:
            raise Late(what() if callable(what) else what)
        # As long as the look took: the program that is waited for needs the processor, too.
        time.sleep(max(0.002, now - begun))


def together(functions):
    '''Call the functions at the same time'''
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Server:
    '''A program that listens on a socket in a folder, or on a port.'''

    def __init__(self, program, folder, *options, port=None):
        os.makedirs(folder, exist_ok=True)
        self.program, self.folder, self.options = program, folder, options
        self.address = ('127.0.0.1', port) if port else os.path.join(folder, 'socket')
        self.log = os.path.join(folder, 'log')
        self.process = None
        self.env = None
        # Words before its program, which becomes the server: it keeps its process id
        self.prefix = ()

    def start(self, wait=PATIENCE, unlink=True):
        if isinstance(self.address, str):
            where = ['-l', 'unix:' + self.address]
            if unlink and os.path.exists(self.address):
                os.unlink(self.address)
        else:
            where = ['-l', self.address[0], '-p', str(self.address[1])]
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen([*self.prefix, self.program, *where, *self.options],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, **(self.env or {})})
        wait_for('%s does not listen' % self.program, self.listens, wait)
        return self

    def listens(self):
        if self.process.poll() is not None:
            raise Late('%s ended with %d: %s' % (self.program, self.process.returncode,
                                                 self.said()))
        try:
            connection = self.connect()
            connection.ask('list-tube-used')
            connection.close()
        except (OSError, Closed):
            return False
        return True

    def said(self):
        if not os.path.exists(self.log):
            return ''
        with open(self.log, errors='replace') as log:
            return log.read()[-2000:]

    def memory(self, name):
        '''VmRSS: what it has in memory, in KiB; VmHWM: the most that it had'''
        with open('/proc/%d/status' % self.process.pid) as status:
            return next(int(line.split()[1]) for line in status if line.startswith(name + ':'))

    def connect(self):
        return Connection(self.address)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        '''End the program, as an administrator does; true: it ended by itself.'''
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Late('%s does not end on SIGTERM' % self.program) from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()

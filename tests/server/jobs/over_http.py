# SPDX-License-Identifier: GPL-2.0
#
# A server that can be looked at over HTTP.

import http.client
import json
import os
import socket

import database
import wire


def configure(folder, store, port, node='a', tab=''):
    '''A file with its metrics, and schedules; it has the store's lease'''
    wire.write(folder + '/tabs/x.tab', tab)
    return wire.write(folder + '/conf-' + node, (
        'metrics = { listen = "127.0.0.1:%d"; };\nschedules = "%s/tabs";\nnode = "%s";\n'
        'admin = "%s/admin";\nlease = "%s";\n' % (port, folder, node, store, database.LEASE)))


def start(bench, tab='', env=None):
    '''It, with schedules: a connection, and the port where it is looked at'''
    port = wire.free_port()
    conf = configure(bench.folder, bench.store, port, tab=tab)
    return bench.start('-c', conf, env=env), port


def another(bench, *store, node='b'):
    '''One more server, which does not run yet, and its port'''
    folder, port = os.path.join(bench.folder, node), wire.free_port()
    conf = configure(folder, folder, port, node)
    return wire.Server(bench.program, folder, *store, '-c', conf), port


def get(port, path='/v1/status', method='GET', body=None, **headers):
    '''The answer to a request, and its body'''
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=wire.PATIENCE)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer, answer.read().decode()
    finally:
        connection.close()


def look(port):
    answer, text = get(port)
    if answer.status != 200:
        raise OSError('status %d: %s' % (answer.status, text))
    return json.loads(text)


def by_name(part):
    return {one['name']: one for one in part['shown']}


def ask(port, path, room=None):
    '''A connection with a request on it; of the answer, at most this many bytes may be under way.'''
    one = socket.socket()
    if room:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    one.settimeout(wire.PATIENCE)
    one.connect(('127.0.0.1', port))
    one.sendall(b'GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n' % path.encode())
    return one


def crowded(bench, port, path):
    '''What it takes in KiB after as many answers at a time as it gives, when all have ended'''
    held = [ask(port, path, 4096) for _ in range(20)]
    for one in held:
        one.recv(1)
        one.close()
    wire.wait_for('it answers again', lambda: get(port, path)[0].status == 200)
    return bench.memory()


def come_and_go(bench, port, path):
    '''Readers that go while they are answered; gives by how many KiB the server grew'''
    for n in range(900):
        one = ask(port, path, 4096)
        if n % 5 == 0:
            one.recv(1 + n % 50)
        if n % 3:
            # Not with an end, but with a reset
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
        one.close()
        if n == 300:
            before = crowded(bench, port, path)
    return crowded(bench, port, path) - before

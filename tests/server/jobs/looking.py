# SPDX-License-Identifier: GPL-2.0
#
# A server that can be looked at over HTTP.

import http.client
import json
import os
import socket

import database
import wire


def free_port():
    probe = socket.create_server(('127.0.0.1', 0))
    port = probe.getsockname()[1]
    probe.close()
    return port


def configure(folder, store, port, node='a', tab=''):
    '''A file with its metrics, and schedules; it has the store's lease'''
    tabs = os.path.join(folder, 'tabs')
    os.makedirs(tabs, exist_ok=True)
    with open(os.path.join(tabs, 'x.tab'), 'w') as out:
        out.write(tab)
    path = os.path.join(folder, 'conf-' + node)
    with open(path, 'w') as out:
        out.write('metrics = { listen = "127.0.0.1:%d"; };\nschedules = "%s";\nnode = "%s";\n'
                  'admin = "%s/admin";\nlease = "%s";\n' % (port, tabs, node, store,
                                                           database.LEASE))
    return path


def start(bench, tab='', env=None):
    '''It, with schedules: a connection, and the port where it is looked at'''
    port = free_port()
    conf = configure(bench.folder, bench.store, port, tab=tab)
    return bench.start('-c', conf, env=env), port


def get(port, path='/status.json', method='GET', **headers):
    '''The answer to a request, and its body'''
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=wire.PATIENCE)
    try:
        connection.request(method, path, headers=headers)
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

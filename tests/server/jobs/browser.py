# SPDX-License-Identifier: GPL-2.0
#
# Chromium without a screen, told what to do by its DevTools protocol over a pair of pipes.

import json
import os
import select
import subprocess
import time

import wire

OPTIONS = ('--headless', '--remote-debugging-pipe', '--no-first-run', '--disable-gpu',
           '--disable-extensions', '--disable-background-networking', '--disable-sync',
           '--disable-component-update', '--no-sandbox')


class Browser:
    '''One page. As root, it has no sandbox: it is for pages of these tests alone.'''

    def __init__(self, folder):
        to_it, self.output = os.pipe()
        self.input, from_it = os.pipe()
        self.number, self.buffer, self.events = 0, b'', []
        self.session = None
        env = {**os.environ, 'HOME': folder}
        with open(os.path.join(folder, 'chromium.log'), 'wb') as log:
            self.process = subprocess.Popen(
                ['sh', '-c', 'exec "$@" 3<&%d 4>&%d' % (to_it, from_it), 'sh', 'chromium',
                 *OPTIONS, '--user-data-dir=' + os.path.join(folder, 'profile')],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(to_it, from_it),
                env=env)
        os.close(to_it)
        os.close(from_it)
        target = self.ask('Target.createTarget', url='about:blank')['targetId']
        self.session = self.ask('Target.attachToTarget', targetId=target,
                                flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.ask(domain + '.enable')
        self.ask('Emulation.setTimezoneOverride', timezoneId='Asia/Kolkata')
        self.ask('Emulation.setLocaleOverride', locale='en-GB')

    def read(self, until):
        while b'\0' not in self.buffer:
            left = until - time.monotonic()
            if left < 0 or not select.select([self.input], [], [], left)[0]:
                raise wire.Late('chromium says nothing')
            data = os.read(self.input, 1 << 20)
            if not data:
                raise wire.Closed('chromium has ended')
            self.buffer += data
        message, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(message)

    def ask(self, method, **params):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.output, json.dumps(message).encode() + b'\0')
        until = time.monotonic() + wire.PATIENCE
        while True:
            got = self.read(until)
            if got.get('id') == self.number:
                if 'error' in got:
                    raise ValueError('%s: %r' % (method, got['error']))
                return got['result']
            if 'method' in got:
                self.events.append(got)

    def open(self, url):
        self.events.clear()
        self.ask('Page.navigate', url=url)

    def value(self, script):
        '''What an expression is in the page'''
        got = self.ask('Runtime.evaluate', expression=script, returnByValue=True,
                       awaitPromise=True)
        if 'exceptionDetails' in got:
            raise ValueError('%s: %r' % (script, got['exceptionDetails']))
        return got['result'].get('value')

    def value_yet(self, script):
        try:
            return self.value(script)
        except ValueError:
            # What it is about may not be there yet.
            return None

    def wait(self, script, wait=wire.PATIENCE):
        '''What it is, once it is true'''
        return wire.wait_for(script, lambda: self.value_yet(script), wait)

    def complaints(self):
        '''What the page did wrong: errors of scripts, and what its policy has forbidden'''
        self.value('0')
        return [event['params'] for event in self.events
                if event['method'] == 'Runtime.exceptionThrown' or
                event['method'] == 'Log.entryAdded' and
                event['params']['entry']['source'] != 'network']

    def asked(self):
        '''All addresses that it asked for'''
        self.value('0')
        return {event['params']['request']['url'] for event in self.events
                if event['method'] == 'Network.requestWillBeSent'}

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.output)
        os.close(self.input)

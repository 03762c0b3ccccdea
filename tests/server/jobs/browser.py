# SPDX-License-Identifier: GPL-2.0
#
# Chromium without a screen, by Selenium.

import json
import os

from selenium import webdriver
from selenium.common.exceptions import JavascriptException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import wire


class Browser:
    '''One page. As root, it has no sandbox: it is for pages of these tests alone.'''

    def __init__(self, folder):
        options = webdriver.ChromeOptions()
        options.binary_location = '/usr/bin/chromium'
        for word in ('headless=new', 'no-sandbox', 'disable-background-networking',
                     'disable-component-update', 'user-data-dir=%s/profile' % folder):
            options.add_argument('--' + word)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL', 'performance': 'ALL'})
        self.driver = webdriver.Chrome(options=options, service=Service(
            '/usr/bin/chromedriver', service_args=['--log-path=%s/chromedriver.log' % folder],
            env={**os.environ, 'HOME': folder}))
        self.ask('Emulation.setTimezoneOverride', timezoneId='Asia/Kolkata')
        self.ask('Emulation.setLocaleOverride', locale='en-GB')

    def ask(self, method, **params):
        '''A command of the DevTools protocol'''
        return self.driver.execute_cdp_cmd(method, params)

    def open(self, url):
        for log in ('browser', 'performance'):
            self.driver.get_log(log)
        self.driver.get(url)

    def value(self, script):
        '''The value of an expression in the page'''
        return self.driver.execute_script('return ' + script)

    def value_yet(self, script):
        try:
            return self.value(script)
        except JavascriptException:
            # Its element may not be there yet.
            return None

    def wait(self, script, wait=wire.PATIENCE):
        '''The value, once it is true'''
        return wire.wait_for(script, lambda: self.value_yet(script), wait)

    def keys(self, text, key=None):
        '''What somebody types, where the focus is'''
        chain = ActionChains(self.driver).send_keys(text)
        if key:
            chain = chain.send_keys(getattr(Keys, key.upper()))
        chain.perform()

    def tab_to(self, selector):
        '''Press Tab until the focus is there'''
        for _ in range(100):
            if self.value('document.activeElement.matches("%s")' % selector):
                return
            self.keys('', 'Tab')
        raise AssertionError('no key leads to ' + selector)

    def complaints(self):
        '''The page's faults: errors of scripts, and requests that its policy has forbidden'''
        return [entry for entry in self.driver.get_log('browser') if entry['source'] != 'network']

    def asked(self):
        '''All addresses that it asked for'''
        events = [json.loads(entry['message'])['message']
                  for entry in self.driver.get_log('performance')]
        return {event['params']['request']['url'] for event in events
                if event['method'] == 'Network.requestWillBeSent'}

    def end(self):
        self.driver.quit()

# SPDX-License-Identifier: GPL-2.0
#
# Where the suites are, and copies of the tree in which one bug at a time is planted.

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = TOP + '/build/mutants'
# The suites' folders below tests, by their last parts, which are unique
with open(TOP + '/tests/suites', encoding='utf-8') as suites:
    FOLDERS = {path.split('/')[-1]: path for path in re.findall(r'^(\w\S*)', suites.read(), re.M)}
# What tests/harness/tap.sh says when a suite itself fails
NOT_ENDED = 'this script came to its end'
# What was compiled in one of the trees will do for the others.
os.environ['PATH'] = '/usr/lib/ccache:' + os.environ['PATH']
os.environ['CCACHE_NOHASHDIR'] = '1'
os.environ.setdefault('CCACHE_DIR', WORK + '/ccache')
# Suites at work
RUNNING = set()


class NotRun(Exception):
    """A suite could not be run."""


def read(name, mode='r'):
    with open(name, mode, **({} if 'b' in mode else {'encoding': 'utf-8'})) as file:
        return file.read()


def write(name, text):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, 'w', encoding='utf-8') as file:
        file.write(text)


def die(text):
    """End all of it, and the suites of other threads, whichever thread this is."""
    print('mutants:', text, file=sys.stderr, flush=True)
    for process in list(RUNNING):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    os._exit(2)


def dependencies(suites):
    subprocess.run([TOP + '/scripts/deps', *sorted(suites)], check=True)


class Tree:
    """A copy of the tree, in which one bug at a time is planted."""

    def __init__(self, name):
        self.path = f'{WORK}/{name}'
        os.makedirs(self.path, exist_ok=True)
        # With new times for what is new, as something older may be built already.
        subprocess.run(['rsync', '-rlp', '--checksum', '--delete', '--exclude=/build',
                        '--exclude=/.git', TOP + '/', self.path + '/'], check=True)

    @contextlib.contextmanager
    def planted(self, path, text):
        write(f'{self.path}/{path}', text)
        try:
            yield
        finally:
            write(f'{self.path}/{path}', read(f'{TOP}/{path}'))

    def run(self, command, limit, out, errors, **environment):
        """Status, or None if it took too long"""
        with subprocess.Popen(command, cwd=self.path, stdin=subprocess.DEVNULL, stdout=out,
                              stderr=errors, start_new_session=True,
                              env={**os.environ, 'CCACHE_BASEDIR': self.path,
                                   **environment}) as process:
            RUNNING.add(process)
            try:
                return process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGTERM)
                return None
            finally:
                RUNNING.discard(process)

    def suite(self, words, limit, **environment):
        """
        Run a suite, or some of its tests, or one of its checks (SUITE/CHECK): what failed,
        if any did.
        """
        name, _, check = words[0].partition('/')
        tap, err = self.path + '.tap', self.path + '.err'
        with open(tap, 'wb') as out, open(err, 'wb') as errors:
            status = self.run([f'tests/{FOLDERS[name]}/{check or "run"}', *words[1:]], limit,
                              out, errors, **environment)
        if status is None:
            return f'no end within {limit:.0f} s'
        failed = re.findall(r'^not ok \d+ - (.*)', read(tap), flags=re.M)
        # A suite that could not be run has found nothing. (Of a check, its status counts.)
        if status and not check and set(failed) <= {NOT_ENDED}:
            said = ' '.join(read(err).split())
            raise NotRun(f'{name} could not be run: status {status}, {said[-200:]}')
        if failed:
            return failed[0] + (f' (and {len(failed) - 1} more)' if failed[1:] else '')
        return f'status {status}' if status else None


def at_a_time(jobs, items, what):
    """what(tree, item) for each, several at a time, until one is False"""
    todo = queue.Queue()
    for item in items:
        todo.put(item)

    def worker(number):
        try:
            tree = Tree(f'tree{number}')
            while what(tree, todo.get_nowait()) is not False:
                pass
        except queue.Empty:
            pass
        # A thread that ends by an exception ends no other.
        except Exception:  # pylint: disable=broad-exception-caught
            die(traceback.format_exc())

    threads = [threading.Thread(target=worker, args=[n]) for n in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

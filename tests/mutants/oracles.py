# SPDX-License-Identifier: GPL-2.0
#
# What looks at a mutant: programs of tests/core/unit; programs of tests/module/contract in user-mode
# Linux; and what that cannot do, by the suites' own scripts. Each says what failed, or
# None.

import os
import re
import shutil
import signal
import subprocess
import sys
import time

from build import ERRORS, DoesNotBuild, Module, Same, read, write

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

KUNIT = TOP + '/tests/module/kunit'
NARROW = '-DOPERATIONS=0 -DTW_LVL_CLK_SHIFT=1 -DTW_SMALL_SLOT=1 -DTW_REACH_BITS=5'
SMALL = '-DOPERATIONS=0 -DTW_SMALL_WORLD -DTW_LAST_GEN=U32_MAX -DPAIR_MOST=65536'
WHEEL = 'pair.c host.c wheel.c table.c clock.c check.c'
WIDE = '-DOPERATIONS=0'
# To each program: its sources and flags
HOST = {
    'narrow': ('model.c ' + WHEEL, NARROW),
    'wide': ('model.c ' + WHEEL, WIDE),
    'small': ('model.c ' + WHEEL, SMALL),
    'promises': ('promises.c work.c host.c wheel.c table.c clock.c',
                 '-fsanitize-coverage=trace-pc'),
    'ahead': ('ahead.c host.c wheel.c table.c clock.c', ''),
    'ahead-small': ('ahead.c host.c wheel.c table.c clock.c',
                    '-DTW_SMALL_WORLD -DTW_LAST_GEN=U32_MAX'),
    'table': ('table.c host.c table.c check.c', ''),
    'table-small': ('table.c host.c table.c check.c', '-DTW_SMALL_WORLD'),
    'validate': ('validate.c host.c validate.c clock.c', ''),
    'clock': ('clock.c host.c clock.c', ''),
    'entries': ('entries.c host.c entries.c check_entries.c', ''),
    'entries-small': ('entries.c host.c entries.c check_entries.c', '-DTW_SMALL_WORLD'),
}
PURE = {'wheel', 'table', 'ahead', 'clock', 'validate', 'check', 'entries', 'check_entries'}
# Which of them know a source, the quickest first, and how much they do
SHORT = [('narrow', 200000), ('wide', 200000), ('small', 200000)]
LONG = [('narrow', 2000000), ('wide', 2000000)]
KNOWN = {
    'wheel': [*SHORT, ('promises', 0), *LONG],
    'levels': [*SHORT, ('entries-small', 0), ('entries', 0), ('promises', 0), *LONG],
    'table': [('table', 0), ('table-small', 0), *SHORT, ('ahead', 0)],
    'ahead': [('ahead-small', 0), ('ahead', 0)],
    'clock': [('validate', 0), ('narrow', 300000), ('clock', 0), *LONG],
    'validate': [('validate', 0)],
    'entries': [('entries-small', 0), ('entries', 0)],
}


def die(text):
    """End all of it, whichever thread this is."""
    print('mutants:', text, file=sys.stderr, flush=True)
    os._exit(2)


def run(command, seconds, **more):
    """Status, or None if it took too long."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True,
                          **more) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return None


def compile_host(sources, flags, include, made):
    """Compile sources of tests/core/unit and of the module; the objects."""
    jobs, objects = [], []
    os.makedirs(made, exist_ok=True)
    for source in sources:
        objects.append(f'{made}/{source.replace("/", "-")[:-1]}o')
        jobs.append(f'gcc -std=gnu11 -O1{ERRORS} -D_GNU_SOURCE -DTW_CHECK -I{TOP}/tests/core/unit/shim -I{TOP}/userlib/shim '
                    f'-I{TOP}/tests/core/unit -I{include} -I{include}/kmod {flags} '
                    f'-c -o {objects[-1]} {source if source[0] == "/" else include + "/" + source}')
    for job in jobs:
        if subprocess.run(job.split(), stdin=subprocess.DEVNULL, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            return None
    return objects


def host_sources(name):
    """Those of tests/core/unit, and those of the module."""
    words = HOST[name][0].split()
    pure = [word for at, word in enumerate(words) if word[:-2] in PURE and at]
    others = [word for at, word in enumerate(words) if word[:-2] not in PURE or not at]
    return [f'{TOP}/tests/core/unit/{word}' for word in others], ['kmod/' + word for word in pure]


class Host:
    def __init__(self, made):
        self.made = made
        self.objects = {}
        for name, (_, flags) in HOST.items():
            others, pure = host_sources(name)
            self.objects[name] = compile_host(others + pure, flags, TOP, f'{made}/{name}')

    def build(self, name, path, work):
        """The program with the source at path as the folder work has it."""
        program = f'{work}/{name}'
        others, pure = host_sources(name)
        # A header is in all of them.
        sources = [path] if path[-1] == 'c' else others + pure
        new = compile_host(sources, HOST[name][1], work, f'{work}/host')
        if not new:
            raise DoesNotBuild
        names = {os.path.basename(object) for object in new}
        objects = new + [object for object in self.objects[name]
                         if os.path.basename(object) not in names]
        subprocess.run(['gcc', '-o', program, *objects], check=True)
        return program

    def look(self, path, work):
        built = {}
        for name, operations in KNOWN.get(os.path.basename(path)[:-2], []):
            if name not in built:
                built[name] = self.build(name, path, work)
            # Seconds of a processor, which are the same on a machine that is busy
            status = run(['prlimit', '--cpu=10', built[name]], 200,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         env=dict(os.environ, SEED='1', OPERATIONS=str(operations)))
            if status == -signal.SIGKILL:
                status = None
            if status != 0:
                return f'unit {name}: ' + (f'status {status}' if status else 'no end')
        return None


class UserMode:
    """
    User-mode Linux, with the module of one world. Waiting takes no time there. With
    "inf-cpu" work takes none either, which is quickest; but who works until some time
    has passed never ends.
    """

    def __init__(self, kernel, base, world, names, mode='=inf-cpu'):
        self.kernel, self.base, self.world, self.names = kernel, base, world, names
        self.mode, self.module, self.limit = mode, None, 300

    def open(self):
        self.module = Module(self.base, self.kernel)

    def make(self):
        base = self.base
        os.makedirs(base, exist_ok=True)
        for name in ('kmod', 'uapi'):
            subprocess.run(['rsync', '-rl', '--checksum', '--delete', '--include=*/',
                            '--include=*.[ch]', '--exclude=*', f'{TOP}/{name}/',
                            f'{base}/{os.path.basename(name)}'], check=True)
        shutil.copy(TOP + '/Kbuild', base)
        if self.world == 'kunit':
            self.add_kunit()
        self.kbuild(base)

    def add_kunit(self):
        """The KUnit suites as a part of the module: they run when it is loaded."""
        shutil.copytree(KUNIT, self.base + '/tests', dirs_exist_ok=True)
        objects = sorted(name[:-1] + 'o' for name in os.listdir(KUNIT) if name.endswith('.c'))
        with open(self.base + '/Kbuild', 'a', encoding='utf-8') as file:
            file.write('\ntwheel-y += ' + ' '.join('tests/' + name for name in objects) + '\n')

    def kbuild(self, base):
        small = ['TW_SMALL=y', 'TW_CHECK=y'] if self.world == 'small' else []
        done = subprocess.run(['make', '-s', '-j2', '-C', self.kernel, 'ARCH=um', 'M=' + base,
                               *small, 'modules'], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            die('the module does not build:\n' + done.stdout.decode())

    def built(self, path, work):
        """The module with the source at path as the folder work has it; None: it is the same"""
        made = f'{work}/{self.world}.ko'
        try:
            os.replace(self.module.build(path, work), made)
        except Same:
            return None
        return made

    def root(self, work, module):
        root = work + '/root'
        shutil.rmtree(root, ignore_errors=True)
        for name in ('bin', 'dev', 'proc', 'sys', 'tmp'):
            os.makedirs(f'{root}/{name}')
        shutil.copy('/bin/busybox', root + '/bin/busybox')
        for applet in 'sh mount mkdir cut timeout dmesg insmod rmmod poweroff'.split():
            os.symlink('busybox', f'{root}/bin/{applet}')
        shutil.copy(TOP + '/tests/mutants/init', root + '/init')
        shutil.copy(module, root + '/twheel.ko')
        lines = []
        for name in self.names:
            source = read(f'{TOP}/tests/module/contract/{name}.c')
            words = (re.findall(r'^ \* module parameters: (.*)', source, re.M) or [''])[0]
            os.link(f'{TOP}/build/tests/module/contract/{name}', f'{root}/{name}')
            lines.append(f'{name} {words}\n')
        write(root + '/list', ''.join(lines))
        return root

    def look(self, module, work, limit=None):
        """What failed"""
        root = self.root(work, module)
        command = [self.kernel + '/linux', 'mem=1G', 'time-travel' + self.mode, 'rootfstype=hostfs',
                   'rootflags=' + root, 'rw', 'init=/init', 'oops=panic', 'panic_on_warn=1',
                   read(TOP + '/tests/harness/uml/words').split('\n')[1]]
        end = time.monotonic() + (limit or self.limit)
        log = work + '/log'
        with open(log, 'wb') as out, subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True) as process:
            why = None
            while process.poll() is None and not why:
                time.sleep(0.03)
                why = self.wrong(root) or self.splat(log)
                if time.monotonic() > end:
                    why = 'no end'
            if process.returncode is None:
                os.killpg(process.pid, 9)
        why = why or self.wrong(root) or self.splat(log)
        if not why and b'vm: down' not in read(log, 'rb'):
            why = 'the machine died'
        if not why:
            return None
        done = re.findall('^@start (.*)', self.said(root), re.M)
        return f'{self.world} {done[-1] if done else "boot"}: {why}'

    @staticmethod
    def said(root):
        try:
            with open(root + '/out', encoding='utf-8', errors='replace') as file:
                return file.read()
        except FileNotFoundError:
            return ''

    def wrong(self, root):
        found = re.search(r'^(?:\[[^]]*\] *)?(not ok .*|Bail out!.*|@failed .*|# unref.*)\n',
                          self.said(root), re.M)
        return found and found[1]

    @staticmethod
    def splat(log):
        text = read(log, 'rb').decode(errors='replace')
        text = text[text.find('vm: up'):] if 'vm: up' in text else ''
        found = re.search(r'(BUG\b|WARNING:|INFO: |Oops|Kernel panic|ODEBUG:|UBSAN:|'
                          r'KASAN:|corruption|Objects remaining|\bnot ok \d).*', text)
        return found and found[0].strip()


class Suites:
    """Suites, or some of their tests, by their own scripts, in a copy of the tree."""

    def __init__(self, suites):
        self.suites = suites

    def look(self, edit, text, tree):
        if not self.suites:
            return None
        os.makedirs(tree, exist_ok=True)
        subprocess.run(['rsync', '-rlp', '--checksum', '--delete', '--exclude=/build',
                        '--exclude=/.git', TOP + '/', tree + '/'], check=True)
        write(f'{tree}/{edit.file}', edit.planted(text))
        for words in self.suites:
            with open(tree + '/build.tap', 'wb') as out:
                status = run([f'tests/{words[0]}/run', *words[1:]], 600, cwd=tree,
                             stdout=out, stderr=subprocess.DEVNULL)
            failed = re.search(r'^not ok \d+ - (.*)', read(tree + '/build.tap'), re.M)
            if failed or status != 0:
                return f'{words[0]}: {failed[1] if failed else f"status {status}"}'
        return None

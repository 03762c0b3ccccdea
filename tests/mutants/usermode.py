# SPDX-License-Identifier: GPL-2.0
#
# The module with a mutant in it, in user-mode Linux. kbuild builds the module once, and
# what it ran for one file is run again. (kbuild itself takes longer to look at what there
# is to do.)

import glob
import os
import re
import subprocess
import threading
import time

from tree import FOLDERS, TOP, WORK, die, read, write

# Warnings that make no mutant, but nonsense
ERRORS = ''.join(' -Werror=' + name for name in (
    'return-type', 'int-conversion', 'incompatible-pointer-types',
    'implicit-function-declaration', 'uninitialized'))
KUNIT = 'tests/' + FOLDERS['kunit']


class DoesNotBuild(Exception):
    """The compiler does not take the mutant."""


def make_kernel():
    """The folder of a kernel of user mode that loads modules"""
    done = subprocess.run(['bash', '-c', '. scripts/lib.sh; lock "$cache/kunit.lock"; '
                           'tests/harness/uml/kernel -m'], cwd=TOP, check=True,
                          stdout=subprocess.PIPE)
    return done.stdout.decode().strip()


class Module:
    """The module for a kernel, of one world: usual, small, or with the KUnit suites in it."""

    def __init__(self, kernel, world):
        self.kernel, self.world, self.base = kernel, world, f'{WORK}/{world}'
        self.objects, self.codes, self.lock = {}, {}, threading.Lock()
        self.copy_sources(self.base)
        if world == 'kunit':
            objects = [name[:-1] + 'o' for name in sorted(glob.glob(KUNIT + '/*.c', root_dir=TOP))]
            with open(self.base + '/Kbuild', 'a', encoding='utf-8') as file:
                file.write('\ntwheel-y += ' + ' '.join(objects) + '\n')
        self.kbuild()
        for name in glob.glob(self.base + '/**/.*.o.cmd', recursive=True):
            text = read(name)
            command = re.match(r'(?:saved)?cmd_\S+ := (.*)', text)[1]
            source = re.search(r'^source_\S+ := (.*)', text, re.M)
            if source and source[1].startswith(self.base + '/'):
                self.objects[os.path.relpath(source[1], self.base)] = (command, text)

    @staticmethod
    def copy_sources(folder):
        os.makedirs(folder, exist_ok=True)
        subprocess.run(['rsync', '-rlR', '--checksum', '--include=*/', '--include=*.[ch]',
                        '--include=/Kbuild', '--exclude=*', 'Kbuild', 'core', 'kmod', 'uapi', 'tests',
                        folder], cwd=TOP, check=True)

    def kbuild(self):
        small = ['TW_SMALL=y', 'TW_CHECK=y'] if self.world == 'small' else []
        try:
            self.run(['make', '-s', '-j2', '-C', self.kernel, 'ARCH=um', 'M=' + self.base,
                      *small, 'modules'])
        except DoesNotBuild as why:
            die(f'the module does not build:\n{why}')

    def run(self, command):
        done = subprocess.run(command, cwd=self.kernel, check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise DoesNotBuild(done.stdout.decode(errors='replace'))

    def shell(self, command, work):
        self.run(['sh', '-c', command.replace(self.base, work)])

    def code(self, path, work):
        """
        What the compiler makes of it without sanitizers, in whose code are the names
        of files, and which keep the compiler from seeing that all is the same.
        """
        made = f'{work}/{path[:-1]}plain.o'
        command = re.sub(r' (-fsanitize\S*|-fasan\S*|--param asan\S*)', '', self.objects[path][0])
        self.shell(re.sub(r' -c -o \S+', f'{ERRORS} -g0 -ffile-prefix-map={work}=/ -c -o {made}',
                          command, count=1), work)
        return read(made, 'rb')

    def plain(self, path):
        with self.lock:
            if path not in self.codes:
                self.codes[path] = self.code(path, self.base)
            return self.codes[path]

    def using(self, path):
        """The sources in which a source is."""
        return [source for source, (_, text) in sorted(self.objects.items())
                if f'{self.base}/{path} ' in text.replace('\\\n', ' \n') + ' ']

    def built(self, path, text, work):
        """
        twheel.ko in the folder work, with that text for the source at path; None if it is
        the same to the processor.
        """
        work = f'{work}-{self.world}'
        self.copy_sources(work)
        write(f'{work}/{path}', text)
        new = [source for source in self.using(path)
               if self.code(source, work) != self.plain(source)]
        if not new:
            return None
        for source in new:
            self.shell(self.objects[source][0].replace(' -c -o ', f'{ERRORS} -g0 -c -o ', 1), work)
        objects = [os.path.relpath(os.path.join(self.kernel, name), self.base)
                   for name in read(self.base + '/twheel.mod').split()]
        write(work + '/twheel.mod', ''.join(
            f'{work if name[:-1] + "c" in new else self.base}/{name}\n' for name in objects))
        for name in 'twheel.o', 'twheel.ko':
            command = read(f'{self.base}/.{name}.cmd')
            command = re.match(r'(?:saved)?cmd_\S+ := (.*)', command)[1] + ' '
            for file in 'twheel.mod ', 'twheel.o ', 'twheel.ko ':
                command = command.replace(f'{self.base}/{file}', f'{work}/{file}')
            self.run(['sh', '-c', command])
        return work + '/twheel.ko'


class UserMode:
    """
    User-mode Linux, in which programs of tests/module/contract are run with a module.
    Waiting takes no time there. With "inf-cpu" work takes none either, which is quickest;
    but who works until some time has passed never ends.
    """

    def __init__(self, module, names, mode='=inf-cpu'):
        self.module, self.mode, self.limit = module, mode, 300
        self.programs = [f'build/tests/{FOLDERS["contract"]}/{name}' for name in names]
        subprocess.run([TOP + '/tests/harness/programs', '6.1-cloud', FOLDERS['contract'], *names],
                       check=True, stdout=subprocess.DEVNULL)
        start = time.monotonic()
        why = self.look(module.base + '/twheel.ko', WORK + '/none')
        if why:
            die(f'it fails without any mutant: {why}')
        # A machine that is busy makes it slower.
        self.limit = 10 + 5 * (time.monotonic() - start)

    def look(self, module, work):
        """What failed"""
        log = work + '.log'
        words = ('mem=1G time-travel' + self.mode + ' ignore_loglevel oops=panic '
                 'panic_on_warn=1 kunit.enable=1')
        tap = subprocess.run(
            ['tests/harness/uml/boot', self.module.kernel + '/linux', log,
             str(int(self.limit)), words, *self.programs], cwd=TOP, check=False,
            env={**os.environ, 'MODULE': module}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode(errors='replace')
        said = read(log, 'rb').decode(errors='replace')
        failed = re.search(r'\bnot ok \d.*', said) or re.search('^not ok - .*', tap, re.M)
        return f'{self.module.world} {failed[0]}' if failed else None

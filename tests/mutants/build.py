# SPDX-License-Identifier: GPL-2.0
#
# Builds the module with a mutant in it quickly: kbuild builds it once, and what it
# ran for the one file is run again. (kbuild itself takes longer to look at what there
# is to do.)

import glob
import os
import re
import subprocess
import threading

# Warnings that make no mutant, but nonsense
ERRORS = ''.join(' -Werror=' + name for name in (
    'return-type', 'int-conversion', 'incompatible-pointer-types',
    'implicit-function-declaration', 'uninitialized'))


def read(name, mode='r'):
    with open(name, mode, **({} if 'b' in mode else {'encoding': 'utf-8'})) as file:
        return file.read()


def write(name, text):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, 'w', encoding='utf-8') as file:
        file.write(text)


class DoesNotBuild(Exception):
    """The compiler does not take the mutant."""


class Same(Exception):
    """The mutant is the same to the processor."""


class Module:
    """
    The module for one kernel. kbuild has built it in the folder base; run says
    where its commands were run.
    """

    def __init__(self, base, run):
        self.base, self.run = base, run
        self.objects, self.codes, self.lock = {}, {}, threading.Lock()
        for name in glob.glob(base + '/*/.*.o.cmd'):
            text = read(name)
            command = re.match(r'(?:saved)?cmd_\S+ := (.*)', text)[1]
            source = re.search(r'^source_\S+ := (.*)', text, re.M)
            if source and source[1].startswith(base + '/'):
                self.objects[os.path.relpath(source[1], base)] = (command, text)

    def command(self, name):
        return re.match(r'(?:saved)?cmd_\S+ := (.*)', read(f'{self.base}/.{name}.cmd'))[1]

    def shell(self, command):
        done = subprocess.run(['sh', '-c', command], cwd=self.run, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            raise DoesNotBuild(done.stdout.decode(errors='replace'))

    def compile(self, path, work):
        """Its object, relative to the folder work."""
        command, _ = self.objects[path]
        self.shell(command.replace(' -c -o ', f'{ERRORS} -g0 -c -o ', 1)
                   .replace(self.base, work))
        return path[:-1] + 'o'

    def code(self, path, work):
        """
        What the compiler makes of it without sanitizers, in whose code are the names
        of files, and which keep the compiler from seeing that all is the same.
        """
        made = f'{work}/{path[:-1]}plain.o'
        command = re.sub(r' (-fsanitize\S*|-fasan\S*|--param asan\S*)', '', self.objects[path][0])
        command = command.replace(self.base, work)
        self.shell(re.sub(r' -c -o \S+', f'{ERRORS} -g0 -ffile-prefix-map={work}={self.base} '
                          f'-c -o {made}', command, count=1))
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

    def build(self, path, work):
        """twheel.ko in the folder work, which has the sources with the mutant at path."""
        new = [self.compile(source, work) for source in self.using(path)
               if self.code(source, work) != self.plain(source)]
        if not new:
            raise Same
        objects = [os.path.relpath(os.path.join(self.run, name), self.base)
                   for name in read(self.base + '/twheel.mod').split()]
        write(work + '/twheel.mod', ''.join(
            f'{work if name in new else self.base}/{name}\n' for name in objects))
        for name in ('twheel.o', 'twheel.ko'):
            command = self.command(name)
            for file in ('twheel.mod ', 'twheel.o ', 'twheel.ko '):
                command = (command + ' ').replace(f'{self.base}/{file}', f'{work}/{file}')
            self.shell(command)
        return work + '/twheel.ko'

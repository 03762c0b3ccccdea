# SPDX-License-Identifier: GPL-2.0
#
# The C sources, and where in them each function is. It relies on how kernel sources are
# laid out: a definition begins, and ends, where a line begins.

import glob
import re

from tree import TOP, read

DEFINITION = re.compile(r'''
    ^\#[ ]*define[ ](?P<macro>\w+)(?:[^\n]*\\\n)*[^\n]*
  | ^(?:struct|union|enum)[ ](?P<type>\w+)[ ]\{\n.*?^\}
  | ^[^\s\#/*}](?:[^;{}\n]*\b)?(?P<table>\w+)(?:\[\w*\])*[ ]=[ ]\{\n.*?^\}
  | ^(?=\w)[^\n]*?\b(?!__attribute__|__printf)(?P<function>\w+)\((?:(?!\n\n)[^;{}])*\n\{\n.*?^\}
''', re.S | re.M | re.X)


class NoSuchPlace(Exception):
    """What an edit is to replace is not there, or more than once."""


def definitions(text):
    """(kind, name, start, end) of each function, macro, type and table of a source."""
    for match in DEFINITION.finditer(text):
        yield match.lastgroup, match[match.lastgroup], *match.span()


def blocks(path):
    """
    (head, pairs of old and new text) of each edit in a file of such: a line that is the
    head, and to each pair an old text ("-") and a new one ("+") if there is any. A long one
    goes on in the next line.
    """
    found = []
    for line in read(path).splitlines():
        if line.startswith('\t-'):
            found[-1][1].append([line[3:], ''])
        elif line.startswith('\t+'):
            found[-1][1][-1][1] = line[3:]
        elif line.startswith('\t'):
            pair = found[-1][1][-1]
            pair[bool(pair[1])] += '\n' + line[3:]
        elif line and line[0] != '#':
            found.append((line, []))
    return found


def pattern(text):
    """Matches that, wherever its lines are broken; what ends with a word ends a word."""
    found = r'\s+'.join(map(re.escape, text.split()))
    found = r'\b' + found if re.match(r'\w', text) else found
    return re.compile(found + r'\b' if re.search(r'\w$', text) else found)


class Sources:
    def __init__(self):
        paths = sum((sorted(glob.glob(f'{folder}/**/*.[ch]', root_dir=TOP, recursive=True))
                     for folder in ('bpf', 'core', 'kmod', 'tests/core/invariants', 'uapi', 'userlib',
                                    'twheeld', 'twheel-run')), ['Kbuild'])
        self.texts = {path: read(f'{TOP}/{path}') for path in paths}
        self.places = {'Kbuild': [('Kbuild', 0, len(self.texts['Kbuild']))]}
        for path, text in self.texts.items():
            for _, name, start, end in definitions(text):
                self.places.setdefault(name, []).append((path, start, end))

    def edited(self, definition, pairs):
        """
        The path and the text of the source in which, in the definition of that name (or
        "PATH NAME", if others of that name have the same), each OLD is replaced by its NEW.
        """
        *folder, name = definition.split()
        places = [place for place in self.places.get(name, [])
                  if place[0].startswith(''.join(folder))]
        spots = []
        for old, new in pairs:
            found = [(path, match.start(), match.end(), new) for path, start, end in places
                     for match in pattern(old).finditer(self.texts[path], start, end)]
            if len(found) != 1:
                raise NoSuchPlace(f'{len(found)} times in {definition}: {old}')
            spots += found
        path = spots[0][0]
        text = self.texts[path]
        for other, start, end, new in sorted(spots, reverse=True):
            if other != path:
                raise NoSuchPlace(f'not all in one file: {definition}')
            text = text[:start] + new + text[end:]
        return path, text

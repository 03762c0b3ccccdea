# SPDX-License-Identifier: GPL-2.0
#
# The edits that make a mutant of a C source: text in, edits out.

import collections
import re

from source import definitions

TOKEN = re.compile(r'''
    (?P<skip>\s+ | /\*.*?\*/ | //[^\n]* | (?<=\n)\#(?:[^\n]*\\\n)*[^\n]*)
  | (?P<text>"(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>\d\w*)
  | (?P<op><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
''', re.S | re.X)
STATEMENT = re.compile(r'''
    (?: (?<=[;{}):/]\n) | (?<=\telse\n) | (?<=\tdo\n) | (?<=\}\ else\n) | (?<=\n\n) )
    (\t+) (?! (?:if|for|while|do|switch|case|default|else)\b )
    ( [^\s;{}/] (?: [^;{}] | \)\{[^;{}]*\} )*; )$''', re.M | re.X)
MEMBER = re.compile(r'^\t(?:\.\w+ = [^{;]*?|[A-Z_]+\([^;]*?\)),$', re.M)

RELATION = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '=='}
LOGIC = {'&&': '||', '||': '&&'}
STEP = {'++': '--', '--': '++', '+=': '-=', '-=': '+=', '|=': '&=', '&=': '|='}
BINARY = {'+': '-', '-': '+', '|': '&', '&': '|', '<<': '>>', '>>': '<<', '*': '/',
          '/': '*', '%': '/'}
NAMES = {'min': 'max', 'max': 'min', 'min_t': 'max_t', 'max_t': 'min_t',
         'true': 'false', 'false': 'true'}
BLOCKS = {'if', 'for', 'while', 'do', 'switch', 'case', 'default', 'else'}
DECLARES = {'struct', 'union', 'enum', 'const', 'static', 'unsigned', 'signed', 'int',
            'long', 'char', 'void', 'bool', 'register', 'volatile'}

Token = collections.namedtuple('Token', 'start end kind text')


class Edit:
    """One edit of a file, in a function: [start, end) becomes other text, of as many lines."""

    reason = None

    def __init__(self, file, function, kind, source, start, end, new):
        self.file, self.function, self.kind, self.source = file, function, kind, source
        self.start, self.end = start, end
        self.new = new.replace('\n', ' ') + '\n' * source.count('\n', start, end)
        first = source.rfind('\n', 0, start) + 1
        last = source.find('\n', end)
        self.line = source.count('\n', 0, start) + 1
        self.before = ' '.join(source[first:last].split())
        self.after = ' '.join((source[first:start] + new + source[end:last]).split())

    def __str__(self):
        return f'    - {self.before}\n    + {self.after}'

    def key(self):
        """What names it, wherever its function and the line are by now."""
        return self.function, self.before, self.after

    @property
    def text(self):
        return self.source[:self.start] + self.new + self.source[self.end:]


def tokens_of(source, start, end):
    found = []
    while start < end:
        match = TOKEN.match(source, start, end)
        if match.lastgroup != 'skip':
            found.append(Token(*match.span(), match.lastgroup, match[0]))
        start = match.end()
    return found


def partners(tokens):
    """Where the parenthesis ends that begins at a token."""
    ends, open_at = {}, []
    for at, token in enumerate(tokens):
        if token.text in ('(', '[', '{'):
            open_at.append(at)
        elif token.text in (')', ']', '}'):
            ends[open_at.pop()] = at
    return ends


def conditions(tokens, ends):
    """(start, end) of each condition, its parentheses not included."""
    for at, token in enumerate(tokens[:-1]):
        if token.text in ('if', 'while') and tokens[at + 1].text == '(':
            yield tokens[at + 2].start, tokens[ends[at + 1]].start


def statements(source, start, end):
    """(start, end) of each statement that could be left out"""
    for match in STATEMENT.finditer(source, start, end):
        text = match[2]
        word = re.match(r'\w*', text)[0]
        declares = word in DECLARES or word.endswith('_t') or \
            re.match(r'(?!return|goto)\w+ \**\w', text)
        # What follows the last return of a function is nothing.
        if not declares and (word != 'return' or match[1] != '\t'):
            yield match.span(2)


def arguments(tokens, ends, at):
    """(start, end) of each argument of the call whose parenthesis is at a token."""
    found, start, here = [], at + 1, at + 1
    while here < ends[at]:
        if tokens[here].text == ',':
            found.append((tokens[start].start, tokens[here - 1].end))
            start = here + 1
        here = ends.get(here, here) + 1
    if start < ends[at]:
        found.append((tokens[start].start, tokens[ends[at] - 1].end))
    return found


def swaps(source, tokens, ends):
    """(start, end, new) of each call, two neighbours of its arguments swapped."""
    for at, token in enumerate(tokens[:-1]):
        if token.kind != 'name' or tokens[at + 1].text != '(' or \
                token.text in BLOCKS or token.text in NAMES:
            continue
        found = arguments(tokens, ends, at + 1)
        for (a, b), (c, d) in zip(found, found[1:]):
            if source[a:b] != source[c:d]:
                yield a, d, source[c:d] + source[b:c] + source[a:b]


def tokenwise(source, tokens):
    """(kind, start, end, new) of what is done to one token."""
    for at, token in enumerate(tokens):
        text, start, end = token.text, token.start, token.end
        before, after = tokens[at - 1], tokens[min(at + 1, len(tokens) - 1)]
        value = before.kind in ('name', 'number') and before.text not in ('return', 'case') or \
            before.text in (')', ']')
        spaced = source[start - 1] in ' \n\t' and source[end] in ' \n\t'
        if text in RELATION:
            yield 'relation', start, end, RELATION[text]
        elif text in LOGIC:
            yield 'logic', start, end, LOGIC[text]
        elif text in STEP:
            yield 'step', start, end, STEP[text]
        elif text in BINARY and value and spaced:
            yield 'operator', start, end, BINARY[text]
        elif token.kind == 'op' and text in '!~' and after.text != '=':
            yield 'operator', start, end, ''
        elif text in NAMES and (after.text == '(' or text in ('true', 'false')):
            yield 'name', start, end, NAMES[text]
        elif token.kind == 'number':
            number = re.match(r'(0x[0-9a-fA-F]+|[1-9]\d*|0(?!\d))([uUlL]*)$', text)
            if number:
                n, suffix = int(number[1], 0), number[2]
                yield 'constant', start, end, f'{n + 1}{suffix}'
                if n:
                    yield 'constant', start, end, f'{n - 1}{suffix}'


def edits_of_function(source, start, end):
    """(kind, start, end, new) of each edit of a function"""
    start = source.index('\n{\n', start) + 2
    tokens = tokens_of(source, start, end - 1)
    ends = partners(tokens)
    yield from (('statement', *spot, ';') for spot in statements(source, start, end))
    for start, end in conditions(tokens, ends):
        yield 'condition', start, end, f'!({source[start:end]})'
        yield 'condition', start, end, 'true'
        yield 'condition', start, end, 'false'
    for start, end, new in swaps(source, tokens, ends):
        yield 'swap', start, end, new
    yield from tokenwise(source, tokens)


def edits(file, source):
    """All edits of a source"""
    found = []
    for kind, name, start, end in definitions(source):
        if kind == 'function':
            parts = edits_of_function(source, start, end)
        else:
            parts = [('member', member.start() + 1, member.end(), '')
                     for member in MEMBER.finditer(source, start, end) if kind == 'table']
        found += [Edit(file, name, part, source, *rest) for part, *rest in parts]
    return found

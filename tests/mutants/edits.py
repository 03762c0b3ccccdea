# SPDX-License-Identifier: GPL-2.0
#
# The edits that make a mutant of a C source: text in, edits out. It relies on how
# kernel sources are laid out: a function's body is what lies between lines that are
# "{" and "}".

import re

TOKEN = re.compile(r'''
    (?P<skip>\s+ | /\*.*?\*/ | //[^\n]* | (?<=\n)\#(?:[^\n]*\\\n)*[^\n]*)
  | (?P<text>"(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>\d\w*)
  | (?P<op><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
''', re.S | re.X)
BODY = re.compile(r'^\{\n.*?^\}', re.S | re.M)
TABLE = re.compile(r'^\w[^\n]* = \{\n.*?^\};', re.S | re.M)
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


class Token:
    def __init__(self, match):
        self.start, self.end = match.span()
        self.kind, self.text = match.lastgroup, match.group()


class Edit:
    """One edit of a file: [start, end) becomes other text, of as many lines."""

    def __init__(self, file, kind, source, start, end, new):
        self.file, self.kind = file, kind
        self.start, self.end = start, end
        self.new = new + '\n' * source.count('\n', start, end)
        first = source.rfind('\n', 0, start) + 1
        last = source.find('\n', end)
        self.line = source.count('\n', 0, start) + 1
        self.before = ' '.join(source[first:last].split())
        self.after = ' '.join((source[first:start] + new + source[end:last]).split())
        self.nth = 1

    def key(self):
        """What names it, wherever in its file the line is by now."""
        nth = f' #{self.nth}' if self.nth > 1 else ''
        return f'{self.file}{nth}\n-\t{self.before}\n+\t{self.after}'

    def planted(self, source):
        return source[:self.start] + self.new + source[self.end:]


def tokens_of(source, start, end):
    found = []
    while start < end:
        match = TOKEN.match(source, start, end)
        if match.lastgroup != 'skip':
            found.append(Token(match))
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


def statements(tokens, ends):
    """(start, end) of each statement that could be left out."""
    after_head = {ends[at + 1] for at, token in enumerate(tokens[:-1])
                  if token.text in ('if', 'for', 'while') and at + 1 in ends}
    inner = set()
    for at, end in ends.items():
        if tokens[at].text != '{':
            inner.update(range(at + 1, end + 1))
    at = 0
    while at < len(tokens):
        before = tokens[at - 1].text if at else ''
        starts = before in ('{', '}', ';', 'else', 'do', ':') or at - 1 in after_head
        token = tokens[at]
        if not starts or at in inner or token.text in BLOCKS or token.text in '{};':
            at += 1
            continue
        end = at
        while end < len(tokens) and (tokens[end].text != ';' or end in inner):
            end = ends.get(end, end) + 1
        declares = token.text in DECLARES or token.text.endswith('_t') or (
            token.kind == tokens[at + 1].kind == 'name' and
            token.text not in ('return', 'goto')) or (
            tokens[at + 1].text == '*' and token.kind == 'name')
        # What follows the last return of a function is nothing.
        last = token.text == 'return' and at - 1 not in after_head
        if not declares and not last and end < len(tokens):
            yield token.start, tokens[end].end
        at = end


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


def edits(file, source):
    """All edits of a source, each with a key of its own."""
    found = []

    def add(kind, start, end, new):
        found.append(Edit(file, kind, source, start, end, new))

    for body in BODY.finditer(source):
        tokens = tokens_of(source, body.start() + 2, body.end() - 1)
        ends = partners(tokens)
        for start, end in statements(tokens, ends):
            add('statement', start, end, ';')
        for start, end in conditions(tokens, ends):
            add('condition', start, end, f'!({source[start:end]})'.replace('\n', ' '))
            add('condition', start, end, 'true')
            add('condition', start, end, 'false')
        for start, end, new in swaps(source, tokens, ends):
            add('swap', start, end, new.replace('\n', ' '))
        for kind, start, end, new in tokenwise(source, tokens):
            add(kind, start, end, new)
    for table in TABLE.finditer(source):
        for member in MEMBER.finditer(source, table.start(), table.end()):
            add('member', member.start() + 1, member.end(), '')
    seen = {}
    for edit in found:
        key = edit.key()
        seen[key] = edit.nth = seen.get(key, 0) + 1
    return found

# SPDX-License-Identifier: GPL-2.0
#
# Conversations made at random, which both servers of a pair have to answer the same.

import random

import database
from two_servers import Job

MOST = 65535
LINE = 224
# A line of that length, or of a multiple of LINE more, has no end to beanstalkd, as the
# two bytes of it fall into different fillings of its buffer.
BLIND = LINE + 1
TUBES = ['default', 'a', 'b', 'c', 'A-z+/;.$_()9', 'x' * 200]
BAD_TUBES = ['', '-a', 'a b', 'ä'.encode(), 'x' * 201, 'a,', b'a\0b', ' a', 'a ', 'a:b', '*']
NUMBERS = [0, 1, 7, 1023, 1024, 2**31, 2**32 - 1]
BAD_NUMBERS = ['', '-1', 'x', '1x', '0x10', '+1', '1.5', 2**32, 2**64, 10**30, ' ', '1 1', b'\0']
NAMES = [b'put', b'peek', b'peek-ready', b'peek-delayed', b'peek-buried', b'reserve',
         b'reserve-with-timeout', b'reserve-job', b'delete', b'release', b'bury', b'kick',
         b'kick-job', b'touch', b'stats', b'stats-job', b'stats-tube', b'use', b'watch',
         b'ignore', b'list-tubes', b'list-tube-used', b'list-tubes-watched', b'pause-tube']
# A line that begins so is answered by closing, whatever follows.
QUIT = b'quit'
END = b'\r\n'


class Client:
    '''A connection, as its client knows it.'''

    def __init__(self):
        self.used = 'default'
        self.watched = {'default'}
        self.held = []


class Conversation:
    '''One, by a seed. Its times are days and more: nothing falls due while it lasts, however slow the
    machine is.'''

    def __init__(self, pair, seed):
        self.pair, self.random = pair, random.Random(seed)
        self.clients = {}
        self.opened = 0
        self.made = 0
        for _ in range(4):
            self.do_open()

    WEIGHTS = [('put', 26), ('reserve', 14), ('held', 20), ('any_job', 12), ('kick', 4),
               ('tubes', 10), ('peek', 6), ('lists', 5), ('stats', 8), ('pause', 2),
               ('wrong', 12), ('wrong_body', 5), ('long', 3), ('pipeline', 8), ('wait', 6),
               ('close', 2), ('open', 2), ('quit', 1)]

    # The commands to choose from

    def one(self, *things):
        return self.random.choice(things)

    def chance(self, percent):
        return self.random.random() * 100 < percent

    def job(self):
        '''A job of late, mostly one that is there.'''
        if not self.made or self.chance(5):
            return self.one(0, 2**32, 2**63, 2**64 - 1)
        return Job(self.random.randrange(max(0, self.made - 12), self.made))

    def priority(self):
        return self.one(*NUMBERS) if self.chance(30) else self.random.randrange(5)

    def delay(self):
        return self.one(0, 0, 0, 0, 10**5, 2 * 10**5, 10**6, 2**31, 2**32 - 1)

    def ttr(self):
        return self.one(10**5, 10**6, 10**7, 2**32 - 1)

    def body(self):
        kind = self.random.randrange(20)
        if kind == 0:
            return self.random.randbytes(MOST)
        if kind == 1:
            return b''
        if kind == 2:
            return b'stats\r\nquit\r\n'
        return self.random.randbytes(self.random.randrange(200))

    def idle(self):
        '''A connection that does not wait.'''
        names = [n for n in self.clients if n not in self.pair.waits]
        if len(names) < 2:
            self.do_open()
            return self.idle()
        return self.one(*names)

    # Saying it

    def say(self, name, *parts, replies=1):
        cuts = ()
        if self.chance(10):
            cuts = [self.random.randrange(1, 40) for _ in range(self.one(1, 2, 8))]
        got = self.pair.send(name, parts, replies, cuts)
        for reply in got:
            self.learn(name, reply)
        if self.pair.waits:
            self.others(self.pair.settle('that'))
        return got

    def others(self, answered):
        for name, replies in answered.items():
            for reply in replies:
                self.learn(name, reply)

    def learn(self, name, reply):
        if reply[0] == 'INSERTED':
            self.made += 1
        elif reply[0] == 'RESERVED':
            self.clients[name].held.append(reply[1])
        elif reply[0] == 'USING':
            self.clients[name].used = reply[1]

    # The steps

    def step(self):
        getattr(self, 'do_' + self.random.choices(*zip(*self.WEIGHTS))[0])()

    def do_open(self):
        if len(self.clients) - len(self.pair.waits) > 6:
            return
        name = 'c%d' % self.opened
        self.opened += 1
        self.pair.open(name)
        self.clients[name] = Client()

    def do_close(self):
        name = self.one(*self.clients)
        # In which order several jobs come back is not said, so nobody waits for them. And
        # what follows a reserve that waits is done or not when its client is gone.
        if len(self.clients[name].held) > 1 and self.pair.waits or \
                self.pair.waits.get(name, 1) > 1:
            return
        self.pair.say('%s closes' % name)
        self.gone(name)

    def do_quit(self):
        name = self.idle()
        if len(self.clients[name].held) > 1 and self.pair.waits:
            return
        got = self.pair.send(name, [self.one(QUIT, b'quit now', b'quitter'), END])
        if got[0] != ['(closed)']:
            self.pair.fail('quit does not close')
        self.gone(name)

    def gone(self, name):
        del self.clients[name]
        self.pair.waits.pop(name, None)
        for side in self.pair.sides:
            side.connections.pop(name).close()
        self.pair.same_count()
        self.others(self.pair.settle('it closed'))

    def put(self):
        body = self.body()
        space = b'  ' if self.chance(3) else b' '
        return [b'put ', self.priority(), space, self.delay(), b' ', self.ttr(), b' ',
                len(body), END, body, END]

    def do_put(self):
        self.say(self.idle(), *self.put())

    def reserve(self):
        return [self.one(b'reserve-with-timeout 0', b'reserve-with-timeout 0',
                         b'reserve-with-timeout  0', b'reserve-with-timeout x'), END]

    def do_reserve(self):
        self.say(self.idle(), *self.reserve())

    def do_held(self):
        '''Commands of a job's holder, and sometimes of somebody else.'''
        name = self.idle()
        holder = self.clients[name]
        if not holder.held:
            return self.do_reserve()
        job = self.one(*holder.held)
        what = self.one('delete', 'release', 'release', 'bury', 'bury', 'touch', 'stats-job')
        if self.chance(90):
            by = name
            if what in ('delete', 'release', 'bury'):
                holder.held.remove(job)
        else:
            by = self.idle()
        return self.say_of_job(by, what, job)

    def say_of_job(self, by, what, job):
        parts = [what, b' ', job]
        if what in ('release', 'bury'):
            parts += [b' ', self.priority()]
        if what == 'release':
            parts += [b' ', self.delay()]
        self.say(by, *parts, END)

    def do_any_job(self):
        what = self.one('delete', 'peek', 'stats-job', 'stats-job', 'kick-job', 'reserve-job',
                        'touch', 'release', 'bury')
        self.say_of_job(self.idle(), what, self.job())

    def do_kick(self):
        self.say(self.idle(), b'kick ', self.one(0, 1, 1, 2, 5, 1000, 2**32 - 1, '3x'), END)

    def do_tubes(self):
        name = self.idle()
        what, tube = self.one('use', 'use', 'watch', 'watch', 'ignore'), self.one(*TUBES)
        watched = self.clients[name].watched
        got = self.say(name, what, b' ', tube, END)
        if what == 'watch':
            watched.add(tube)
        elif what == 'ignore' and got[0][0] == 'WATCHING':
            watched.discard(tube)

    def do_peek(self):
        self.say(self.idle(), self.one('peek-ready', 'peek-delayed', 'peek-buried'), END)

    def do_lists(self):
        self.say(self.idle(), self.one('list-tubes', 'list-tube-used', 'list-tubes-watched'), END)

    def do_stats(self):
        if self.chance(40):
            self.say(self.idle(), b'stats', END)
        else:
            self.say(self.idle(), b'stats-tube ', self.one(*TUBES, 'nowhere'), END)

    def do_pause(self):
        tube = self.one(*TUBES[1:])
        got = self.say(self.idle(), b'pause-tube ', tube, b' ', self.one(0, 0, 10**5), END)
        if database.shared() and got == [['PAUSED']]:
            # There, a tube is paused still when nobody has used it meanwhile.
            for side in self.pair.sides:
                side.control.ask('watch', tube)

    def wrong_line(self):
        parts = self.wrong()
        if len(self.pair.sides[0].render(parts)) + 2 == BLIND:
            parts.append(b'x')
        return parts

    # A word that is wrong in a line that is else right. No line is right by chance: what
    # takes a body or closes would change what follows.
    def wrong(self):
        kind = self.random.randrange(6)
        if kind == 0:
            return [self.one(b'', b' ', b'nope', b'STATS', b'Put 0 0 1 1', b'\0', b'a\nb', b'\xff',
                             b'peek ', b'put', b' stats', b'delete1', b'stats\n',
                             b'reserve-with-timeout 99999999999999999999',
                             self.random.randbytes(9).replace(b'\r', b'x').replace(b'q', b'x'))]
        if kind == 1:
            name = self.one(*[n for n in NAMES if n != b'put'])
            if name == b'reserve':
                name = b'reserve '
            # In a pipeline, what follows somebody's reserve that waits counts in stats, or not yet.
            return [name, self.one(b'x', b' ', b' x y z', b'\0', b'-', b'' if b'-w' not in name and
                                   name not in (b'reserve ', b'stats') else b'\0')]
        if kind == 2:
            words = [self.priority(), self.delay(), self.ttr(), 3]
            words[self.random.randrange(4)] = self.one('-1', 'x', 2**32, 10**30, b'\0', '+1')
            return [b'put ', b' '.join(w if isinstance(w, bytes) else str(w).encode()
                                       for w in words)]
        if kind == 3:
            return [self.one(b'use ', b'watch ', b'ignore ', b'stats-tube '), self.one(*BAD_TUBES)]
        if kind == 4:
            return [b'pause-tube ', self.one(*TUBES, *BAD_TUBES), b' ', self.one(*BAD_NUMBERS)]
        return [self.one(b'peek ', b'delete ', b'bury ', b'touch ', b'kick-job ', b'reserve-job ',
                         b'stats-job ', b'release ', b'kick '), self.one(*BAD_NUMBERS)]

    def do_wrong(self):
        self.say(self.idle(), *self.wrong_line(), END)

    def do_wrong_body(self):
        kind = self.random.randrange(4)
        head = [b'put ', self.priority(), b' ', self.delay(), b' ', self.ttr(), b' ']
        if kind == 0:
            size = MOST + self.one(1, 2, 3, 500, 3000)
            self.say(self.idle(), *head, size, self.one(b'', b' x'), END, b'b' * size, END)
        elif kind == 1:
            self.say(self.idle(), *head, 3, END, b'abc', self.one(b'xx', b'\n\r', b'\r\r', b'\0\0'))
        elif kind == 2:
            self.say(self.idle(), *head, 3, END, b'abcdefg', END, replies=2)
        else:
            self.say(self.idle(), *head, 3, self.one(b' ', b'x', b' 1'), END)

    def do_long(self):
        '''Lines about as long as they may be, and far longer.'''
        size = self.one(LINE - 3, LINE - 2, LINE - 1, LINE, 300, 447, 448, 1000, 5000, 66000)
        if (size + 2) % LINE == BLIND % LINE:
            size += 1
        line = self.one(b'stats-tube ', b'delete ', b'x', b'use ')
        self.say(self.idle(), line + b'y' * (size - len(line)), END)

    def do_pipeline(self):
        parts, count = [], self.random.randrange(2, 8)
        for _ in range(count):
            kind = self.random.randrange(7)
            if kind == 0:
                parts += self.put()
            elif kind == 1:
                parts += [*self.wrong_line(), END]
            elif kind == 2:
                parts += self.reserve()
            elif kind == 3:
                parts += [self.one('delete', 'peek', 'stats-job', 'touch', 'kick-job'), b' ',
                          self.job(), END]
            elif kind == 4:
                parts += [self.one('peek-ready', 'peek-buried', 'peek-delayed'), END]
            elif kind == 5:
                parts += [b'use ', self.one(*TUBES), END]
            else:
                parts += [b'kick 1', END]
        self.say(self.idle(), *parts, replies=count)

    def do_wait(self):
        '''A reserve that may wait. Whom of several a job is given to is not said, so one
        waits for a tube.'''
        name = self.idle()
        watched = self.clients[name].watched
        if len(self.pair.waits) > 2 or \
                any(watched & self.clients[n].watched for n in self.pair.waits):
            return
        line = self.one(b'reserve', b'reserve-with-timeout %d' % self.one(1000, 2**31 - 1))
        after = self.one(0, 0, 1, 3)
        self.others(self.pair.may_wait(name, [line, END, b'list-tube-used\r\n' * after], after))

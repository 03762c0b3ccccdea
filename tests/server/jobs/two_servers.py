# SPDX-License-Identifier: GPL-2.0
#
# Two servers that hear the same, and have to say the same.

import database
import wire

# How many seconds a time in a statistic may differ by, as one server starts, and is asked, after the
# other.
SECONDS = {'age': 3, 'time-left': 3, 'pause-time-left': 3, 'uptime': 30}

# Differences that are allowed, and why.
DIFFERENT = {
    'pid': 'of the process',
    'id': 'made at random',
    'version': 'of the program',
    'rusage-utime': 'what each needs',
    'rusage-stime': 'what each needs',
    'file': 'beanstalkd numbers its binlog, twheeld has a store',
    'binlog-oldest-index': 'beanstalkd numbers its binlog, twheeld has a store',
    'binlog-current-index': 'beanstalkd numbers its binlog, twheeld has a store',
    'binlog-records-written': 'beanstalkd counts without a binlog, too',
    'binlog-records-migrated': 'twheeld has no binlog to compact',
    'binlog-max-size': 'twheeld has no binlog to begin anew',
}
# A store that others share counts no events of a tube that no client of a server uses, and a
# server keeps a tube for longer than its last client.
OF_THE_SERVER = ('total-jobs', 'cmd-delete', 'cmd-pause-tube') if database.shared() else ()
# These ask the servers how far they are, more often where one takes longer.
ASKED_HERE = ('cmd-stats', 'total-connections')


class Difference(Exception):
    '''The two said different things.'''


class Job:
    '''The job that was the nth to be inserted; each server has its own id for it.'''

    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return '<%d>' % self.number


class Side:
    '''One of the servers, and its state.'''

    def __init__(self, server):
        self.server = server
        self.control = server.connect()
        self.connections = {}
        self.ids, self.numbers = [], {}

    def render(self, parts):
        '''The bytes of a command, with this server's ids.'''
        out = b''
        for part in parts:
            if isinstance(part, Job):
                number = part.number
                out += b'%d' % (self.ids[number] if number < len(self.ids) else 10**9 + number)
            else:
                out += part if isinstance(part, bytes) else str(part).encode()
        return out

    def inserted(self, number):
        if self.ids and number <= self.ids[-1]:
            raise Difference('the id %d was given after %d' % (number, self.ids[-1]))
        self.numbers[number] = len(self.ids)
        self.ids.append(number)

    def same_words(self, reply):
        '''A reply with the numbers of jobs in place of ids.'''
        if reply is None:
            return None
        if reply[0] == 'INSERTED':
            self.inserted(int(reply[1]))
        if reply[0] in ('INSERTED', 'RESERVED', 'FOUND'):
            return [reply[0], Job(self.numbers[int(reply[1])]), *reply[2:]]
        if reply[0] == 'OK':
            return ['OK', self.same_table(wire.table(reply[2]))]
        return reply

    def same_table(self, got):
        # beanstalkd's order is that of an array in which the last takes the place of
        # what is removed. The protocol does not speak of an order.
        if isinstance(got, list):
            return sorted(got)
        if 'tube' in got:
            got['id'] = repr(Job(self.numbers[int(got['id'])]))
        if 'name' in got:
            for name in OF_THE_SERVER:
                got.pop(name)
        for name in ASKED_HERE:
            got.pop(name, None)
        return got

    def stats(self):
        reply = self.control.ask('stats')
        return wire.table(reply[2])

    def caught_up(self):
        '''Wait until all commands are done: where others share the store, some work comes after the
        reply. Nothing overtakes a delete; a second step gives jobs to clients that wait.'''
        for _ in range(2):
            if self.control.ask('delete %d' % 10**12) != ['NOT_FOUND']:
                raise Difference('a job that never was is deleted')

    def waiting(self):
        return int(self.stats()['current-waiting'])


def alike(one, other):
    '''Whether two replies are the same but for what may differ.'''
    if not (one and other and one[0] == other[0] == 'OK' and isinstance(one[1], dict)):
        return repr(one) == repr(other)
    a, b = one[1], other[1]
    if list(a) != list(b):
        return False
    return all(same_field(name, a[name], b[name], 'tube' in a) for name in a)


def same_field(name, a, b, of_job):
    if name in SECONDS:
        return abs(int(a) - int(b)) <= SECONDS[name]
    return a == b or (name in DIFFERENT and not (name == 'id' and of_job))


def shown(reply, other):
    '''A reply as text; of statistics, what differs from the other's.'''
    if reply and reply[0] == 'OK' and isinstance(reply[1], dict) and \
            other and other[0] == 'OK' and isinstance(other[1], dict):
        return 'OK ' + ' '.join('%s: %s' % (k, v) for k, v in reply[1].items()
                                if k not in other[1] or
                                not same_field(k, v, other[1][k], 'tube' in reply[1]))
    text = repr(reply)
    return text if len(text) < 300 else text[:300] + '...'


class Pair:
    '''Both servers, and the conversation that was had with them.'''

    def __init__(self, oracle, subject):
        self.sides = [Side(oracle), Side(subject)]
        self.log = []
        self.compared = 0
        # Replies that are still to come, by connection: the first of them is that of a
        # reserve that waits.
        self.waits = {}

    def say(self, text):
        self.log.append(text)

    def fail(self, why):
        raise Difference(why)

    def open(self, name):
        for side in self.sides:
            side.connections[name] = side.server.connect()
        self.same_count()
        self.say('%s opens' % name)

    def same_count(self):
        for side in self.sides:
            want = len(side.connections) + 1
            wire.wait_for('%s: the number of connections' % side.server.program,
                          lambda s=side, n=want: int(s.stats()['current-connections']) == n)

    def send(self, name, parts, replies=1, cuts=()):
        '''Commands on a connection, cut at these places; then their replies.'''
        self.say('%s> %s' % (name, brief(parts)))
        for side in self.sides:
            data = side.render(parts)
            at = 0
            for cut in sorted(c for c in cuts if c < len(data)):
                side.connections[name].send(data[at:cut])
                # Something that takes its turn between the pieces
                side.stats()
                at = cut
            side.connections[name].send(data[at:])
        return [self.compare(name) for _ in range(replies)]

    def compare(self, name):
        '''The next reply on a connection of both.'''
        got = []
        for side in self.sides:
            try:
                reply = side.connections[name].reply()
            except wire.Closed:
                reply = ['(closed)']
            if reply is None:
                self.fail('%s does not answer %s' % (side.server.program, name))
            try:
                got.append(side.same_words(reply))
            except (KeyError, ValueError) as error:
                self.fail('%s says %r to %s: %r' % (side.server.program, reply, name, error))
            # What follows a reserve that waits is done at once when that is answered, or some time later.
            if any(count > 1 for count in self.waits.values()) and isinstance(got[-1][-1], dict):
                got[-1][-1].pop('cmd-list-tube-used', None)
        return self.judge(name, *got)

    def judge(self, name, one, other):
        self.compared += 1
        if not alike(one, other):
            self.fail('to %s one says  %s\n  and the other %s' %
                      (name, shown(one, other), shown(other, one)))
        self.say('%s< %s' % (name, brief([repr(one)])))
        return one

    def may_wait(self, name, parts, after=0):
        '''A reserve that waits if there is no job; what follows it on the connection
        has that many replies.'''
        self.say('%s> %s' % (name, brief(parts)))
        before = [side.waiting() for side in self.sides]
        for side in self.sides:
            side.connections[name].send(side.render(parts))
        for side, count in zip(self.sides, before):
            wire.wait_for('%s: a reserve that waits or is answered' % side.server.program,
                          lambda s=side, n=count: s.connections[name].input or
                          s.waiting() > n or came(s.connections[name]))
        self.waits[name] = 1 + after
        return self.settle(name)

    def settle(self, why):
        '''Take replies to those that waited, once the servers have given them.'''
        if database.shared():
            for side in self.sides:
                side.caught_up()
        if not self.waits:
            return {}
        done = []
        for side in self.sides:
            wire.wait_for('%s: as many wait as were not answered, after %s' %
                          (side.server.program, why), lambda s=side: self.settled(s))
            done.append({n for n in self.waits if came(side.connections[n])})
        if done[0] != done[1]:
            self.fail('of those who wait, one answers %s and the other %s' %
                      (sorted(done[0]), sorted(done[1])))
        return {name: [self.compare(name) for _ in range(self.waits.pop(name))]
                for name in sorted(done[0])}

    def settled(self, side):
        waiting = side.waiting()
        return waiting == sum(not came(side.connections[n]) for n in self.waits)


def came(connection):
    '''Whether something came that is not taken yet.'''
    if connection.input:
        return True
    try:
        connection.socket.setblocking(False)
        connection.input += connection.socket.recv(1 << 20)
    except BlockingIOError:
        pass
    except ConnectionError:
        return True
    finally:
        connection.socket.settimeout(wire.PATIENCE)
    return bool(connection.input)


def brief(parts):
    text = ''.join(p.decode('latin-1') if isinstance(p, bytes) else str(p) for p in parts)
    text = text.replace('\r\n', '|')
    text = ascii(text)[1:-1]
    return text if len(text) < 200 else '%s... (%d bytes)' % (text[:200], len(text))

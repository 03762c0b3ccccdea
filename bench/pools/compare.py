#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
#
# compare.py [-r ROUNDS] [-s] TASKS...: pools beside what programs have otherwise, in one
#	run, as lines of JSON: all are there, and asked in turns, so that what else the
#	machine does hits all. Given is the median of the rounds, as times what the pool
#	of one worker took in the same round, and the least and the most.
# -s: how often a thread is switched to for an expiry, with 8 workers, instead

import glob
import json
import os
import statistics
import subprocess
import sys

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../..')
BUILD = os.path.join(TOP, 'build/bench/native')
POOLS = os.path.join(TOP, 'build/bench/pools/pools')
JAVA = ['java', '-Xms2g', '-Xmx2g', '-cp', f'{BUILD}:/usr/share/java/netty-common.jar', 'Peers']

OPERATIONS = ('start', 'reset_later', 'reset_earlier', 'cancel', 'run')

# A round does everything with few tasks as often as makes this many.
REPEAT = 20000

# With fewer, what else Java's heap has is more than they are.
MEASURABLE = 100000

# Who starts and cancels beside all tasks, as the JDK's queue looks at each of these
PAIRS = ('pool-1', 'pool-4', 'jdk-executor-1', 'jdk-executor-4', 'netty')


def commands(tasks):
    """All peers, ours first."""
    found = {f'pool-{n}': [POOLS, str(n), str(tasks)] for n in (1, 4, 0)}
    for name, threads in (('jdk-executor', 1), ('jdk-executor', 4), ('netty', 1),
                          ('jdk-delayqueue', 1)):
        who = name if name in ('netty', 'jdk-delayqueue') else f'{name}-{threads}'
        found[who] = [*JAVA, name, str(tasks), str(threads)]
    for name in ('libevent', 'libev', 'libuv'):
        found[name] = [f'{BUILD}/{name}', '-a', str(tasks)]
    return found


def switching(tasks):
    """Those that share expiries among 8 threads, and two that have only one."""
    return {'pool-8': [POOLS, '8', str(tasks)],
            'pool-0, 8 take': [POOLS, '0', str(tasks)],
            'jdk-executor-8': [*JAVA, 'jdk-executor', str(tasks), '8'],
            'jdk-delayqueue, 8 take': [*JAVA, 'jdk-delayqueue', str(tasks), '8'],
            'netty': [*JAVA, 'netty', str(tasks), '1']}


class Peer:
    """A program that answers each line with a line of numbers."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, what):
        self.process.stdin.write(what + '\n')
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f'compare.py: {self.process.args}: no answer to "{what}"')
        return [float(word) for word in answer.split()]

    def switches(self):
        """How often any of its threads was switched from, and ns that they worked."""
        switches = worked = 0
        for thread in glob.glob(f'/proc/{self.process.pid}/task/*'):
            with open(thread + '/status', encoding='ascii') as file:
                switches += sum(int(line.split()[1]) for line in file
                                if 'ctxt_switches' in line)
            with open(thread + '/schedstat', encoding='ascii') as file:
                worked += int(file.read().split()[0])
        return switches, worked

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def line(peer, operation, tasks, metric, values):
    print(json.dumps({'suite': 'pools', 'workload': 'tasks', 'peer': peer,
                      'operation': operation, 'timers': tasks, 'batch': 1, 'metric': metric,
                      'value': round(statistics.median(values), 2),
                      'least': round(min(values), 2), 'most': round(max(values), 2)}),
          flush=True)


def measure(name, peer, tasks):
    """One round: operation to ns for a task."""
    times = max(1, REPEAT // tasks)
    answers = [peer.ask('uniform') for _ in range(times)]
    found = {operation: sum(answer[i] for answer in answers) / times / tasks
             for i, operation in enumerate(OPERATIONS)}
    if name in PAIRS:
        found['start_cancel_1_thread'] = peer.ask('pairs 1')[1]
        by_clock, of_processor = peer.ask('pairs 4')
        found['start_cancel_4_threads'] = by_clock
        found['start_cancel_4_threads_processor_time'] = of_processor
    return found


def report_ratios(rounds, tasks):
    for operation in rounds[0]['pool-1']:
        for name in rounds[0]:
            if operation in rounds[0][name]:
                line(name, operation, tasks, 'ratio',
                     [one[name][operation] / one['pool-1'][operation] for one in rounds])


def compare(tasks, nr_rounds):
    print(f'compare.py: {tasks} tasks', file=sys.stderr)
    peers = {name: Peer(command) for name, command in commands(tasks).items()}
    if tasks >= MEASURABLE:
        for name, peer in peers.items():
            line(name, 'pending', tasks, 'bytes', peer.ask('memory'))
    rounds = []
    for _ in range(nr_rounds):
        rounds.append({name: measure(name, peer, tasks) for name, peer in peers.items()})
        print('compare.py:', {name: {op: round(ns) for op, ns in found.items()}
                              for name, found in rounds[-1].items()}, file=sys.stderr)
    report_ratios(rounds, tasks)
    for peer in peers.values():
        peer.close()


def count_switches(tasks):
    """One after the other, as all would have the processor at once."""
    for name, command in switching(tasks).items():
        peer = Peer(command)
        peer.ask('memory')
        before = peer.switches()
        runs = peer.ask('rate')[0]
        after = peer.switches()
        line(name, 'expiry', tasks, 'switches', [(after[0] - before[0]) / runs])
        line(name, 'expiry', tasks, 'us_of_processor', [(after[1] - before[1]) / runs / 1000])
        peer.process.kill()
        peer.process.wait()


def main(arguments):
    nr_rounds = 7
    if arguments[:1] == ['-r']:
        nr_rounds, arguments = int(arguments[1]), arguments[2:]
    if arguments[:1] == ['-s']:
        for tasks in arguments[1:]:
            count_switches(int(tasks))
    else:
        for tasks in arguments:
            compare(int(tasks), nr_rounds)


main(sys.argv[1:])

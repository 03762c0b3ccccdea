# SPDX-License-Identifier: GPL-2.0
"""
loops.py TIMERS [ROUNDS]: asyncio's own loop and twheel.asyncio's, the same program on both,
in turns: what each step takes of processor time, as lines of JSON.
"""

import asyncio
import gc
import json
import random
import sys
import time

import twheel.asyncio


def nothing():
    pass


class Program:
    """Each step is what one loop does for all timers; its processor time is counted."""

    def __init__(self, loop, delays):
        self.loop = loop
        self.delays = delays
        self.took = {}
        self.handles = []

    def step(self, name, function):
        gc.collect()
        start = time.process_time_ns()
        function()
        self.took[name] = time.process_time_ns() - start

    def call_later(self):
        call_later = self.loop.call_later
        self.handles = [call_later(delay, nothing) for delay in self.delays]

    def cancel(self):
        for handle in self.handles:
            handle.cancel()
        # A loop that keeps cancelled handles has them until it looks at them
        self.loop.run_until_complete(self.turn())

    async def turn(self):
        await asyncio.sleep(0)

    def reset(self):
        """A connection's timeout: cancelled and started anew as data comes."""
        call_later, handles = self.loop.call_later, self.handles
        for i, delay in enumerate(self.delays):
            handles[i].cancel()
            handles[i] = call_later(delay, nothing)

    def expire(self):
        """All of them, which are spread over a second that is over soon."""
        left = len(self.delays)
        done = self.loop.create_future()

        def expired():
            nonlocal left
            left -= 1
            if not left:
                done.set_result(None)

        for delay in self.delays:
            self.loop.call_later(delay / 3600 + 0.01, expired)
        self.loop.run_until_complete(done)

    async def timeouts(self):
        """What programs do mostly: wait for something that comes, with a timeout."""
        async def one(delay):
            async with asyncio.timeout(delay):
                await asyncio.sleep(0)

        for at in range(0, len(self.delays), 1000):
            await asyncio.gather(*map(one, self.delays[at:at + 1000]))

    def run(self):
        self.step("call_later", self.call_later)
        self.step("cancel_and_call_later", self.reset)
        self.step("cancel", self.cancel)
        self.step("call_later_and_expire", self.expire)
        self.step("asyncio.timeout", lambda: self.loop.run_until_complete(self.timeouts()))
        return self.took


def main():
    timers = int(sys.argv[1])
    makers = {"twheel.asyncio": twheel.asyncio.EventLoop,
              "asyncio's own": asyncio.SelectorEventLoop}
    for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else 7):
        numbers = random.Random(seed)
        delays = [3600 * numbers.uniform(0.001, 1) for _ in range(timers)]
        for peer in reversed(makers) if seed % 2 else makers:
            loop = makers[peer]()
            for step, took in Program(loop, delays).run().items():
                print(json.dumps({"peer": peer, "operation": step, "timers": timers,
                                  "metric": "ns", "value": took / timers}))
            loop.close()


main()

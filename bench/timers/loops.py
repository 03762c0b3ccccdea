# SPDX-License-Identifier: GPL-2.0
"""What cases.h asks, of asyncio and uvloop: loops.py NAME"""

import asyncio
import os
import random
import sys
import time

now, TIMERS = time.monotonic, 100


def row(name, text):
    print(f"\t{name}\t{text}", end="")


def busy(delay):
    end = now() + delay
    while now() < end:
        pass


async def case_never(loop):
    texts = []
    for name, value in (("INFINITY s", float("inf")), ("2^63", 2.0 ** 63), ("2^64", 2.0 ** 64)):
        fired = []
        try:
            handle = loop.call_later(value, fired.append, 1)
            await asyncio.sleep(0.1)
            texts.append(f"{name}: {'at once' if fired else 'waits'}")
            handle.cancel()
        except (OverflowError, ValueError):
            texts.append(f"{name}: refused")
    row("never", ";".join(texts))


async def case_left(loop):
    seen = loop.create_future()
    handle = loop.call_later(10, print)
    busy(0.3)
    row("left", "from the turn" if handle.when() - loop.time() > 9.85 else "from now")
    handle.cancel()
    await asyncio.sleep(0.01)

    def within():
        left = abs(handle.when() - loop.time())
        print("; 0 in the callback" if left < 0.1 else "; more in the callback", end="")
        seen.set_result(None)

    handle = loop.call_later(0.01, within)
    await seen
    row("done", "not said")


async def case_now(loop):
    def first(inside):
        busy(0.3)
        began = now()
        loop.call_later(0.2, lambda: seen.set_result(now() - began))
        if inside:
            loop.add_reader(ready[0], loop.remove_reader, ready[0])

    texts = []
    for inside in False, True:
        seen = loop.create_future()
        loop.call_later(0.01, first, inside)
        texts.append("from the turn" if await seen < 0.15 else "from now")
    row("now", texts[0] if texts[0] == texts[1] else f"{texts[0]}; beside I/O {texts[1]}")


async def case_equal(loop):
    order, wanted, handles = [], [], {}
    random.seed(1)

    def many():
        for _ in range(300):
            i = random.randrange(TIMERS)
            if i in handles:
                handles[i].cancel()
                wanted.remove(i)
            handles[i] = loop.call_later(0.2, order.append, i)
            wanted.append(i)

    loop.call_later(0.01, many)
    await asyncio.sleep(0.5)
    row("equal", "as started" if order == wanted else "any")
    row("stall", "no periods")


async def case_again(loop):
    seen, count, done = [], [0], loop.create_future()

    def again():
        if not count[0]:
            loop.add_reader(ready[0], readable)
        count[0] += 1
        if count[0] < 100:
            loop.call_later(0, again)
        else:
            done.set_result(None)

    def readable():
        seen.append(count[0])
        loop.remove_reader(ready[0])

    loop.call_later(0.01, again)
    await done
    row("again", "others in between" if seen and seen[0] < 100 else "before all else")


async def case_cancel(loop):
    order, handles = [], []

    def stop_other(i):
        order.append(i)
        handles[1 - i].cancel()

    handles += [loop.call_later(0.05, stop_other, i) for i in range(2)]
    busy(0.1)
    await asyncio.sleep(0.2)
    row("cancel", "does not run" if len(order) == 1 else "runs")


async def main():
    loop = asyncio.get_running_loop()
    for case in case_never, case_left, case_now, case_equal, case_again, case_cancel:
        await case(loop)
    print()


ready = os.pipe()
os.write(ready[1], b"x")
if sys.argv[1] == "uvloop":
    import uvloop
    uvloop.install()
    print(f"uvloop {uvloop.__version__}", end="")
else:
    print(f"asyncio, Python {sys.version.split()[0]}", end="")
asyncio.run(main())

# SPDX-License-Identifier: LGPL-2.1-or-later
"""
An event loop for asyncio whose timers are in a wheel.

    import twheel.asyncio

    twheel.asyncio.run(main())          # as asyncio.run()
    twheel.asyncio.install()            # or: for all loops from now on

It is asyncio's own selector loop. Only call_later() and call_at() are others: they and
cancel() cost the same with ten timers and with a million, and a cancelled handle and what
it refers to are let go at once. A callback is never early, and as late as a tick (1 ms)
besides what the loop is late itself. Those that are taken together come in the order of
their times; hundreds that are due in one tick may be taken in two parts.

A loop whose time() is replaced, as for tests, has the timers that are started from then on in
asyncio's own heap, and runs them by that clock, as asyncio does.

Timers are shared ones, armed without a system call, where the module is there; ordinary
ones beyond TIMERS of them, and without the module the library's own.

A loop belongs to the process that made it. A child after fork(2) may close it, or forget
it, which the parent does not notice; it can't go on with it, as with any loop of asyncio's:
there call_later(), call_at(), cancel() of a timer, and timers that are due, give an Error
(EBADF). The child makes a loop of its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import operator
import selectors
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from ._twheel import Timers

__all__ = ["EventLoop", "new_event_loop", "run"]

_T = TypeVar("_T")

TICK_NS = 1_000_000
"""Length of a tick."""

TIMERS = 65536
"""Most shared timers of a loop. They take 29 bytes each, also while they are not used."""

_time = asyncio.BaseEventLoop.time
_when = operator.attrgetter("_when")


class _TimerHandle(asyncio.TimerHandle):
    """A handle that knows its timer; None for one that is in the loop's heap."""

    __slots__ = ("_token",)
    _token: int | None


class EventLoop(asyncio.SelectorEventLoop):
    """asyncio's selector loop with the timers of a wheel."""

    # asyncio's own, which no type checker knows
    _closed: bool = True  # until it is made, so that nothing is closed if that fails
    _debug: bool
    _ready: Any
    _scheduled: list[asyncio.TimerHandle]
    _selector: selectors.BaseSelector
    _check_closed: Callable[[], None]
    _check_thread: Callable[[], None]
    _check_callback: Callable[[object, str], None]

    def __init__(
        self,
        selector: selectors.BaseSelector | None = None,
        *,
        backend: str | None = None,
        tick_ns: int = TICK_NS,
        timers: int = TIMERS,
    ) -> None:
        self._timers: Timers[_TimerHandle] = Timers(backend=backend, tick=tick_ns, shared=timers)
        self._timers_fd = self._timers.fileno()
        try:
            super().__init__(selector)
        except BaseException:
            self._timers.close()
            self._closed = True
            raise
        # No reader to be called: _process_events() looks after it, in the same turn.
        self._selector.register(self._timers_fd, selectors.EVENT_READ, (None, None))

    @property
    def timer_backend(self) -> str:
        """What its timers are: 'shared', 'kernel' or 'user'."""
        return self._timers.backend

    # Checkers take their types from the base: those differ from Python to Python.
    if not TYPE_CHECKING:

        def call_later(
            self,
            delay: float,
            callback: Callable[..., object],
            *args: Any,
            context: contextvars.Context | None = None,
        ) -> asyncio.TimerHandle:
            """Have callback(*args) called after delay seconds."""
            if delay is None:
                raise TypeError("delay must not be None")
            now = self.time()
            return self._call_at(now, now + delay, callback, args, context, "call_later")

        def call_at(
            self,
            when: float,
            callback: Callable[..., object],
            *args: Any,
            context: contextvars.Context | None = None,
        ) -> asyncio.TimerHandle:
            """Have callback(*args) called at that time of the loop."""
            if when is None:
                raise TypeError("when cannot be None")
            return self._call_at(self.time(), when, callback, args, context, "call_at")

    def _call_at(
        self,
        now: float,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: contextvars.Context | None,
        method: str,
    ) -> asyncio.TimerHandle:
        self._check_closed()
        if self._debug:
            self._check_thread()
            self._check_callback(callback, method)
        handle: Any = _TimerHandle(when, callback, args, self, context)
        if handle._source_traceback:
            # Who called is of interest, not this function and the one before
            del handle._source_traceback[-2:]
        if when > now and getattr(self.time, "__func__", None) is _time:
            handle._token = self._timers.add(when, handle)
        else:
            # This is due: the next turn takes it from the heap, without waiting. Or somebody has
            # replaced the clock, of which the wheel knows nothing: so it stays in asyncio's heap.
            handle._token = None
            heapq.heappush(self._scheduled, handle)
        handle._scheduled = True
        scheduled: asyncio.TimerHandle = handle
        return scheduled

    def _timer_handle_cancelled(self, handle: Any) -> None:
        if handle._token is None:
            super()._timer_handle_cancelled(handle)  # type: ignore[misc]
        elif handle._scheduled:
            self._timers.cancel(handle._token)
            handle._scheduled = False

    def _process_events(self, event_list: list[Any]) -> None:
        super()._process_events(event_list)  # type: ignore[misc]
        # A timer that is due makes the descriptor readable, so without events there is none.
        if event_list:
            self._take_due()

    def _take_due(self) -> None:
        due: list[Any] = self._timers.due()
        if not due:
            return
        if self._scheduled:
            # In one order with those of the heap, from which the loop takes them at once.
            for handle in due:
                handle._token = None
                heapq.heappush(self._scheduled, handle)
            return
        due.sort(key=_when)
        for handle in due:
            handle._scheduled = False
        self._ready.extend(due)

    def close(self) -> None:
        """End the loop and let go of all that is scheduled."""
        if self.is_running():
            raise RuntimeError("Cannot close a running event loop")
        if self.is_closed():
            return
        if self._timers.inherited:
            # The epoll is the parent's as well, who waits for what is in it: leave that there.
            self._selector.close()
            self._selector = selectors.SelectSelector()
        else:
            self._selector.unregister(self._timers_fd)
        super().close()
        self._timers.close()


def new_event_loop() -> EventLoop:
    """A loop for asyncio.Runner(loop_factory=new_event_loop)."""
    return EventLoop()


if sys.version_info < (3, 14):
    __all__ += ["EventLoopPolicy", "install"]

    class EventLoopPolicy(asyncio.DefaultEventLoopPolicy):
        """asyncio's policy with these loops."""

        _loop_factory = EventLoop

    def install() -> None:
        """Have all loops that are made from now on be these."""
        asyncio.set_event_loop_policy(EventLoopPolicy())


def run(main: Coroutine[Any, Any, _T], *, debug: bool | None = None) -> _T:
    """asyncio.run() with such a loop."""
    with asyncio.Runner(debug=debug, loop_factory=new_event_loop) as runner:
        return runner.run(main)

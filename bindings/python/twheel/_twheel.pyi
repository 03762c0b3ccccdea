# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the module in C has, for type checkers. help(twheel) has the texts."""

from array import array
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar, final

from typing_extensions import Self, TypeAlias

_T = TypeVar("_T")
_Backend: TypeAlias = str | None
_Read: TypeAlias = bytes | bytearray | memoryview | array[int] | Any
_Write: TypeAlias = bytearray | memoryview | array[int] | Any

ABS: int
BOOTTIME: int
EVENT_PERIODIC: int
EVENT_SIZE: int
MONOTONIC: int
NONE: int
OP_ARM: int
OP_CANCEL: int
OP_MODIFY: int
OP_QUERY: int
OP_SIZE: int
PENDING: int
READY: int
REALTIME: int
TAI: int

class Error(OSError): ...
class NoTimer(Error): ...
class Full(Error): ...
class Stopped(Error): ...
class NotReady(Error, BlockingIOError): ...

class Event(NamedTuple):
    user_data: int
    id: int
    deadline: int
    overrun: int
    flags: int

class Timer(NamedTuple):
    id: int
    deadline: int
    user_data: int
    interval: int
    slack: int
    jitter: int
    state: int

class Wheel:
    def __new__(
        cls,
        *,
        backend: _Backend = None,
        clock: int = ...,
        tick: int = 0,
        limit: int = 0,
        shared: int = 0,
        count: bool = False,
        short_events: bool = False,
    ) -> Self: ...
    @classmethod
    def from_fd(cls, fd: int, /) -> Self: ...
    @property
    def backend(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    @property
    def shared(self) -> int: ...
    def arm(
        self,
        deadline: int,
        user_data: int = 0,
        *,
        interval: int = 0,
        absolute: bool = False,
        slack: int = 0,
        jitter: int = 0,
    ) -> int: ...
    def modify(
        self,
        id: int,
        deadline: int,
        user_data: int = 0,
        *,
        interval: int = 0,
        absolute: bool = False,
        slack: int = 0,
        jitter: int = 0,
    ) -> int: ...
    def cancel(self, id: int, /) -> None: ...
    def query(self, id: int, /) -> Timer: ...
    def submit(self, ops: _Write, /) -> int: ...
    def arm_many(
        self,
        deadlines: _Read,
        user_data: _Read | None = None,
        ids: _Write | None = None,
        *,
        interval: int = 0,
        absolute: bool = False,
        slack: int = 0,
        jitter: int = 0,
    ) -> Any: ...
    def cancel_many(self, ids: _Read, /) -> int: ...
    def read(self, max: int = 256, timeout: float | None = None) -> list[Event]: ...
    def read_into(self, buffer: _Write, timeout: float | None = None) -> int: ...
    def read_count(self, timeout: float | None = None) -> int: ...
    def drain(self, max: int = 256, /) -> list[Timer]: ...
    def shared_arm(self, n: int, deadline: int, /) -> int: ...
    def shared_cancel(self, n: int, /) -> int: ...
    def shared_take(self, max: int = 256, /) -> list[int]: ...
    def shared_take_into(self, buffer: _Write, /) -> int: ...
    def shared_arm_many(self, first: int, deadlines: _Read, /) -> None: ...
    def shared_recover(self) -> None: ...
    def now(self) -> int: ...
    def fileno(self) -> int: ...
    def set_eventfd(self, fd: int, /) -> None: ...
    def info(self) -> dict[str, int]: ...
    def stats(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Timers(Generic[_T]):
    def __new__(cls, *, backend: _Backend = None, tick: int = 0, shared: int = 0) -> Self: ...
    @property
    def backend(self) -> str: ...
    @property
    def inherited(self) -> bool: ...
    def add(self, when: float, object: _T, /) -> int: ...
    def cancel(self, token: int, /) -> bool: ...
    def due(self) -> list[_T]: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...
    def __len__(self) -> int: ...

@final
class Task:
    @property
    def function(self) -> Callable[..., object]: ...
    @property
    def args(self) -> tuple[Any, ...]: ...
    def reset(
        self,
        when: int,
        *,
        period: int = 0,
        absolute: bool = False,
        fixed_delay: bool = False,
        catch_up: bool = False,
    ) -> None: ...
    def run_now(self) -> None: ...
    def cancel(self) -> bool: ...
    def cancel_wait(self) -> bool: ...

@final
class Pool:
    def __new__(
        cls,
        threads: int = 1,
        *,
        backend: _Backend = None,
        clock: int = ...,
        tick: int = 0,
        capacity: int = 0,
        on_error: Callable[[Task, BaseException], object] | None = None,
    ) -> Self: ...
    def start(
        self,
        function: Callable[..., object],
        when: int,
        /,
        *args: Any,
        period: int = 0,
        absolute: bool = False,
        fixed_delay: bool = False,
        catch_up: bool = False,
    ) -> Task: ...
    def stop(self, *, run_once: bool = False, run_periodic: bool = False) -> list[Task]: ...
    def take(self, max: int = 64, timeout: float | None = None) -> list[Task]: ...
    def fileno(self) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

def check_interpreter() -> None: ...
def stop_pools() -> None: ...

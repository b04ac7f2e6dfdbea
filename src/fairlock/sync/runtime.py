"""The runtime of threads: waiting blocks. None of these coroutines ever suspends."""

import _thread
import select
import sys
import threading
import time
from _thread import allocate_lock
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from ..engine.boot_clock import boot_clock
from ..engine.run_sync import run
from ..errors import ConfigError

T = TypeVar("T")

_LONGEST = 4_000_000.0  # seconds; a wait forever is made of these


class ThreadEvent:
    """A raw lock, held while not set: a third of the cost of threading.Event. For one waiter."""

    __slots__ = ("_gate", "_is_set")

    def __init__(self) -> None:
        if _thread.allocate_lock is not allocate_lock:
            refuse_gevent()
        self._gate = allocate_lock()
        self._gate.acquire()
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        try:
            self._gate.release()
        except RuntimeError:
            pass  # it was set already

    def clear(self) -> None:
        self._is_set = False
        self._gate.acquire(False)

    async def wait(self, timeout: float | None) -> bool:
        return self.block(timeout)

    def block(self, timeout: float | None) -> bool:
        """Wait as `wait` does, without a coroutine."""
        if not self._is_set:
            if timeout is None:
                while not self._gate.acquire(True, _LONGEST):
                    pass
            elif timeout <= 0 or not self._gate.acquire(True, min(timeout, _LONGEST)):
                return self._is_set
        return True


class _Me(threading.local):
    """The identity of a thread. Not its number: the next thread gets that when this one ends, and would inherit."""

    def __init__(self) -> None:
        self.token = object()


me = _Me()


def refuse_gevent() -> None:
    """Locks made before gevent patched the process stop every green thread, not only the one that waits: the first
    acquire would hang forever. Patched before this import, it works. Eventlet gets a sentence of its own."""
    refuse_eventlet()
    raise ConfigError(
        "gevent has patched this process after fairlock was imported, and a wait would stop every green thread. Call "
        "gevent.monkey.patch_all() first, before fairlock is imported."
    )


def refuse_eventlet() -> None:
    """ConfigError if eventlet has patched this process: it takes select.poll away, with which threads wait here."""
    patcher = sys.modules.get("eventlet.patcher")
    if not hasattr(select, "poll") or (patcher is not None and patcher.is_monkey_patched("thread")):
        raise ConfigError(
            "eventlet has patched this process, and fairlock does not work under it: a wait would fail or stop every "
            "green thread. Use threads, or fairlock.aio with asyncio; gunicorn and Celery have an option for that."
        )


class ThreadRuntime:
    blocking = True
    quiet_end: type[BaseException] = SystemExit
    clock = staticmethod(boot_clock)
    mutex = staticmethod(threading.Lock)
    event = ThreadEvent

    def __init__(self) -> None:
        refuse_eventlet()

    def current(self) -> object:
        return me.token

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def call(self, fn: Callable[..., T], *args: Any) -> T:
        return fn(*args)

    async def readable(self, fds: Sequence[int], timeout: float | None) -> list[int]:
        if not hasattr(select, "poll"):
            refuse_eventlet()
        poll = select.poll()
        for fd in fds:
            poll.register(fd, select.POLLIN)
        limit = None if timeout is None else max(timeout * 1000, 0)
        return [fd for fd, _ in poll.poll(limit)]

    async def shield(self, work: Coroutine[Any, Any, T]) -> T:
        return run(work)

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        if _thread.allocate_lock is not allocate_lock:
            work.close()
            refuse_gevent()
        threading.Thread(target=run, args=(work,), name=name, daemon=True).start()

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        run(work)



"""A connection within a limit of time, where the driver has none that fits.

No driver knows how long its caller still waits (`deadline`), and each has limits of its own: pymysql one for each
read, psycopg one in whole seconds from two up, an engine of the caller whatever that engine was given.
python-oracledb limits only the TCP connect: a server or a listener that accepts and then hangs is waited for forever,
and while the first connection of a process is being made, every other one waits for it behind a lock of the driver, an
event loop included: `enable_thin_mode` sets what that lock guards.

A thread that is blocked in a driver cannot be ended. So a connection that may take too long is made by another thread,
which is left behind and closes what it receives in the end. At most LEFT_BEHIND of one client are.
"""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..deadline import left

if TYPE_CHECKING:
    from concurrent.futures import Future

LEFT_BEHIND = 8

Open = Callable[[], Any]


class Handshake:
    def __init__(self, timeout: float, blocking: bool, oracle: bool) -> None:
        self._timeout = timeout
        self._blocking = blocking
        self._oracle = oracle
        self._room = threading.BoundedSemaphore(LEFT_BEHIND)
        self._pid = os.getpid()

    def make(self, connect: Open) -> Any:
        """Return what `connect` returns. Raise TimeoutError if it takes too long."""
        limit = left(self._timeout)
        if self._oracle:
            _choose_mode()
        elif limit >= self._timeout:
            return connect()  # the driver's own limit comes first
        return self._by_thread(connect, limit) if self._blocking else self._by_task(connect, limit)

    def _by_thread(self, connect: Open, limit: float) -> Any:
        from concurrent.futures import Future

        if self._pid != os.getpid():  # none of the parent's threads is here
            self._room, self._pid = threading.BoundedSemaphore(LEFT_BEHIND), os.getpid()
        if not self._room.acquire(timeout=limit):
            raise TimeoutError
        made: Future[Any] = Future()
        try:
            threading.Thread(target=self._work, args=(connect, made), name="fairlock-connect", daemon=True).start()
        except RuntimeError:  # there are too many threads: it takes as long as the driver lets it
            self._room.release()
            return connect()
        try:
            return made.result(limit)
        except BaseException:  # it is late, or this is a Ctrl-C
            made.add_done_callback(_close)
            raise

    def _work(self, connect: Open, made: "Future[Any]") -> None:
        try:
            made.set_result(connect())
        except BaseException as error:
            made.set_exception(error)
        finally:
            self._room.release()

    def _by_task(self, connect: Open, limit: float) -> Any:
        import asyncio

        from sqlalchemy.util import await_only, greenlet_spawn

        async def bounded() -> Any:
            async with asyncio.timeout(limit):
                return await greenlet_spawn(connect)

        return await_only(bounded())


def _close(made: "Future[Any]") -> None:
    if made.exception() is None:
        with suppress(Exception):
            made.result().close()


def _choose_mode() -> None:
    import oracledb

    if oracledb.is_thin_mode():
        oracledb.enable_thin_mode()  # type: ignore[no-untyped-call]

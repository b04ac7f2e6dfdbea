"""A connection within a limit of time, where the driver has no limit of its own.

python-oracledb limits only the TCP connect. A server or a listener that accepts and then hangs is waited for forever,
and while the first connection of a process is being made, every other one waits for it behind a lock of the driver, an
event loop included: `enable_thin_mode` sets what that lock guards. A thread that is blocked in the driver cannot be
ended; it is left behind and closes what it gets in the end. At most LEFT_BEHIND of one client are.
"""

import threading
from collections.abc import Callable
from typing import Any

LEFT_BEHIND = 8

Open = Callable[[], Any]


class Handshake:
    def __init__(self, timeout: float, blocking: bool) -> None:
        self._timeout = timeout
        self._blocking = blocking
        self._room = threading.BoundedSemaphore(LEFT_BEHIND)

    def make(self, connect: Open) -> Any:
        """What `connect` returns; TimeoutError if it takes too long."""
        _choose_mode()
        return self._by_thread(connect) if self._blocking else self._by_task(connect)

    def _by_thread(self, connect: Open) -> Any:
        if not self._room.acquire(timeout=self._timeout):
            raise TimeoutError
        mutex = threading.Lock()
        done = threading.Event()
        outcome: list[Any] = []
        late = False

        def work() -> None:
            made: Any = None
            try:
                made = connect()
                said: BaseException | None = None
            except BaseException as error:
                said = error
            with mutex:
                unwanted = made if late else None
                outcome.extend((made, said))
            self._room.release()
            done.set()
            if unwanted is not None:
                unwanted.close()

        threading.Thread(target=work, name="holdfast-connect", daemon=True).start()
        done.wait(self._timeout)
        with mutex:
            if not outcome:
                late = True
                raise TimeoutError
        made, error = outcome
        if error is not None:
            raise error
        return made

    def _by_task(self, connect: Open) -> Any:
        import asyncio

        from sqlalchemy.util import await_only, greenlet_spawn

        async def bounded() -> Any:
            async with asyncio.timeout(self._timeout):
                return await greenlet_spawn(connect)

        return await_only(bounded())


def _choose_mode() -> None:
    import oracledb

    if oracledb.is_thin_mode():
        oracledb.enable_thin_mode()  # type: ignore[no-untyped-call]

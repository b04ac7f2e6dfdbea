"""python-oracledb itself against listeners that hang or refuse: no Oracle is needed for that much of its protocol."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import fairlock
import fairlock.aio
from fairlock.stores.sql.executor import _hang_up
from tests.sql.test_errors import said

TIMEOUT = 0.5
REFUSE = 4  # the type of a packet


@pytest.fixture
def listener() -> Iterator[Callable[[int], str]]:
    """listener(12514) -> the URL of a listener that refuses every connection by this code; 0: it never replies."""
    sockets: list[socket.socket] = []

    def serve(open: socket.socket, code: int) -> None:
        while True:
            try:
                one = open.accept()[0]
            except OSError:
                return
            sockets.append(one)
            if code:
                one.recv(8192)
                why = f"(DESCRIPTION=(TMP=)(VSNNUM=318767104)(ERR={code})(ERROR_STACK=(ERROR=(CODE={code})(EMFI=4))))"
                body = struct.pack(">BBH", 34, 0, len(why)) + why.encode()
                one.sendall(struct.pack(">HHBBH", len(body) + 8, 0, REFUSE, 0, 0) + body)

    def start(code: int) -> str:
        open = socket.create_server(("127.0.0.1", 0))
        sockets.append(open)
        threading.Thread(target=serve, args=(open, code), daemon=True).start()
        return f"oracle://app:open-sesame@127.0.0.1:{open.getsockname()[1]}/?service_name=nope"

    yield start
    for each in sockets:
        try:
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        each.close()


def test_a_thread_does_not_wait_forever_for_a_listener_that_hangs(listener: Callable[[int], str]) -> None:
    began = time.monotonic()
    with fairlock.connect(listener(0), timeout=TIMEOUT) as locks:
        with pytest.raises(fairlock.StoreError, match="does not reply in time"):
            locks.lock("x").acquire(False)
        assert time.monotonic() - began < 4 * TIMEOUT + 1


def test_a_task_does_not_wait_for_minutes_and_its_loop_continues(listener: Callable[[int], str]) -> None:
    """Also while a thread of the process waits for the same."""
    url = listener(0)
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - before)

    async def play() -> None:
        ticking = asyncio.ensure_future(tick())
        async with fairlock.aio.connect(url, timeout=TIMEOUT) as locks:
            with pytest.raises(fairlock.StoreError, match="does not reply in time"):
                await locks.lock("x").acquire(False)
        ticking.cancel()

    def beside() -> None:
        with fairlock.connect(url, timeout=TIMEOUT) as locks, pytest.raises(fairlock.StoreError):
            locks.lock("x").acquire(False)

    thread = threading.Thread(target=beside)
    thread.start()
    began = time.monotonic()
    asyncio.run(play())
    assert time.monotonic() - began < 4 * TIMEOUT + 1
    assert longest < TIMEOUT
    thread.join(10)


def test_threads_that_are_left_behind_in_the_driver_are_few(listener: Callable[[int], str]) -> None:
    with fairlock.connect(listener(0), timeout=0.05) as locks:
        for _ in range(12):
            with pytest.raises(fairlock.StoreError):
                locks.lock("x").acquire(False)
    assert sum(thread.name == "fairlock-connect" for thread in threading.enumerate()) <= 8


@pytest.mark.parametrize(
    "code, kind, words",
    [
        (12514, fairlock.ConfigError, "there is no such database"),  # of a service, as DPY-6001
        (12505, fairlock.ConfigError, "there is no such database"),  # of a SID, as DPY-6003
        (12520, fairlock.StoreError, "no connection left"),  # and all others as DPY-6000
        (12528, fairlock.StoreError, "just starting or stopping"),
        (12541, fairlock.StoreError, "cannot be reached"),
    ],
)
def test_why_a_listener_refuses(
    listener: Callable[[int], str], code: int, kind: type[Exception], words: str
) -> None:
    error = said(listener(code))
    assert type(error) is kind
    assert words in str(error)
    assert "/nope" in str(error), "the sentence names the service"


def test_a_connection_that_only_a_loop_can_close_is_left_in_silence(recwarn: pytest.WarningsRecorder) -> None:
    """So it is in asyncio with python-oracledb 3, which has no terminate()."""

    class Driver:
        call_timeout = 5000

        async def close(self) -> None:
            raise AssertionError("nobody runs it")

    _hang_up(Driver())
    gc.collect()
    assert not list(recwarn)


def test_no_user_no_host_and_no_listener() -> None:
    assert "does not accept this user" in str(said("oracle://127.0.0.1:1/?service_name=nope"))
    assert "no such host" in str(said("oracle://a:b@no-such-host.invalid:1/?service_name=nope"))
    assert "nothing listens there" in str(said("oracle://a:b@127.0.0.1:1/?service_name=nope"))

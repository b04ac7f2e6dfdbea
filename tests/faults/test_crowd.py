"""A crowd waits for one lock while connections break: nobody is left behind while the others are served.

Once two of 345 waiters on PostgreSQL had waited for over a minute. What can make one wait longer than the others: its
wake-up is lost with a connection; its requests lose against those of others again and again; a pool of connections is
empty; the one that asks for it hangs; its place is lost, because it was silent for longer than places last. Only the
last one is possible by design, and is reported (`place_lost`); each of the others shows here, as a wait that is longer
than the others or as a waiter that half of the crowd passes. (On a machine that is busy with other work a waiter may
need a while to get into the queue, or be too late at its turn: then a few pass it.)
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import fairlock
from tests.redis.proxy import Proxy
from tests.servers.server import until
from tests.servers.sql import Database, PostgreSQL
from tests.sql.test_server_dies import cut_all

WORKER = Path(__file__).with_name("crowd.py")
IN_LINE = 1.0  # seconds after which one that asked stands in the queue, on a busy machine
LONGER = 3.0  # times as long as the others; one that loses its place needs two


class Wait(NamedTuple):
    asked: float
    granted: float
    ticket: str


def waits_of(
    server: Database, processes: int, threads: int, tasks: int, seconds: float, faults: list[Callable[[], None]]
) -> tuple[list[Wait], set[str]]:
    """Return the crowd's waits and the tickets that lost their place. The faults come one by one, evenly spread."""
    words = [sys.executable, "-W", "ignore", str(WORKER), server.url, str(threads), str(tasks), str(seconds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    crowd = [subprocess.Popen(words, **pipes) for _ in range(processes)]
    try:
        for one in crowd:
            assert one.stdout and one.stdout.readline() == "ready\n"
        begin = time.monotonic()
        for one in crowd:
            assert one.stdin
            print("go", file=one.stdin, flush=True)
        for number, fault in enumerate(faults, 1):
            time.sleep(max(begin + seconds * number / (len(faults) + 1) - time.monotonic(), 0))
            fault()
        found = [json.loads(one.communicate(timeout=60 + seconds)[0]) for one in crowd]
    finally:
        for one in crowd:
            one.kill()
            one.communicate()
    waits = [Wait(*wait) for seen, _ in found for wait in seen]
    return sorted(waits, key=lambda wait: wait.asked), {ticket for _, lost in found for ticket in lost}


def check(waits: list[Wait], lost: set[str], waiters: int, hung: float) -> None:
    """`hung`: seconds for which nobody could be served."""
    assert len(waits) >= waiters, f"they hardly waited: {len(waits)} times"
    kept = [wait for wait in waits if wait.ticket not in lost]
    usual = statistics.median(wait.granted - wait.asked for wait in waits)
    longest = max(waits, key=lambda wait: wait.granted - wait.asked)
    assert longest.granted - longest.asked < LONGER * (usual + hung) + IN_LINE, (longest, usual)
    for wait in kept:
        passed = [each for each in waits if each.asked > wait.asked + IN_LINE and each.granted < wait.granted]
        assert len(passed) <= waiters / 2, f"{wait} was passed by {len(passed)}"


def cut_listeners(server: PostgreSQL) -> None:
    server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'fairlock listener'")


def test_no_waiter_is_left_behind(postgresql: PostgreSQL) -> None:
    faults = [lambda: cut_listeners(postgresql), lambda: cut_all(postgresql)]
    check(*waits_of(postgresql, 2, 10, 10, 2.5, faults), waiters=40, hung=1.0)


def test_a_hang_that_costs_a_place_is_reported_to_its_waiter(postgresql: PostgreSQL) -> None:
    """While the server hangs nobody can keep a place, and the first in the queue has one for three seconds. Here it is
    the last to get through when the server goes on."""
    granted: list[int] = []
    told: dict[int, list[str]] = {number: [] for number in range(3)}

    def wait(number: int, url: str) -> None:
        with fairlock.connect(url, on_event=lambda event: told[number].append(event.kind)) as locks:
            with locks.lock("x"):
                granted.append(number)

    with Proxy(postgresql.port) as slow, fairlock.connect(postgresql.url) as locks:
        urls = [postgresql.url.replace(f":{postgresql.port}", f":{slow.port}"), postgresql.url, postgresql.url]
        waiters = [threading.Thread(target=wait, args=each) for each in enumerate(urls)]
        with locks.lock("x"):
            for number, one in enumerate(waiters, 1):
                one.start()
                until(lambda n=number: len(locks.snapshot("x").resources[0].queue) == n, "it waits")  # type: ignore[misc]
            slow.fate = lambda request: 4.5
            postgresql.stop()
            time.sleep(4.0)
            postgresql.cont()
            until(lambda: len(locks.snapshot("x").resources[0].queue) == 2, "the others have gone on")
            slow.fate = lambda request: ""
            until(lambda: "place_lost" in told[0], "the first is told that it lost its place")
        for one in waiters:
            one.join()
    assert granted == [1, 2, 0], "the others keep theirs"


@pytest.mark.soak
@pytest.mark.parametrize("store", ["postgresql", "mariadb"])
def test_none_of_345_waiters_is_left_behind(store: str, request: pytest.FixtureRequest) -> None:
    server: Database = request.getfixturevalue(store)

    def hang() -> None:
        server.stop()
        time.sleep(2.0)
        server.cont()

    faults = [hang, lambda: cut_all(server), lambda: cut_all(server)] * 3
    check(*waits_of(server, 8, 22, 21, 60.0, faults), waiters=344, hung=3.0)

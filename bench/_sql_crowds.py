"""Crowds at one semaphore of a SQL database: of threads or of tasks, in one client or in several processes.

Slots are not passed on inside a process, so each grant is made by the store: here it shows what a crowd of clients
costs that compare and swap the same row.
"""

import asyncio
import statistics
import threading
import time
from typing import NamedTuple

import _crowd
import sqlalchemy.ext.asyncio  # noqa: F401  # here, and not in each child while others are measured

import fairlock
import fairlock.aio
from fairlock.testing.request_count import count_requests

SLOTS, INSIDE = 10, 0.03
FACES = ("threads", "tasks")
ONE, EIGHT, COST = (
    "200 of one client, 10 slots, 30 ms, s", "8 processes of 8, 10 slots, 30 ms, 10 times each, s",
    "8 processes of 8, statements per grant",
)  # fmt: skip
WANTED = [  # figure, contender, limit; the limit is a multiple of another contender's figure if one is named
    (ONE, "PostgreSQL, tasks", 2.0, ""),
    (ONE, "MariaDB, tasks", 4.0, ""),
    (EIGHT, "PostgreSQL, tasks", 1.0, "PostgreSQL, threads"),
    (EIGHT, "MariaDB, tasks", 1.0, "MariaDB, threads"),
    (COST, "PostgreSQL, tasks", 6.0, ""),
    (COST, "MariaDB, tasks", 6.0, ""),
]


class Spent(NamedTuple):
    seconds: float  # from the common start until the last one is out
    statements: float  # for each grant


def spend(url: str, face: str, processes: int, each: int, times: int) -> Spent:
    """Run the processes, each with one client and `each` threads or tasks that acquire and release `times` times."""
    state, ready, ended, statements = (_crowd.board(size) for size in (1, processes, processes, processes))
    name = f"crowd {time.monotonic_ns()}"

    def by_threads(me: int) -> None:
        with fairlock.connect(url) as client:
            client.ping()
            count = count_requests(client)

            def work() -> None:
                for _ in range(times):
                    with client.semaphore(name, SLOTS):
                        time.sleep(INSIDE)

            crowd = [threading.Thread(target=work) for _ in range(each)]
            ready[me] = 1
            _crowd.wait_until(lambda: state[0] > 0)
            for one in crowd:
                one.start()
            for one in crowd:
                one.join()
            ended[me], statements[me] = time.monotonic_ns(), count()

    async def by_tasks(me: int) -> None:
        async with fairlock.aio.connect(url) as client:
            await client.ping()
            count = count_requests(client)

            async def work() -> None:
                for _ in range(times):
                    async with client.semaphore(name, SLOTS):
                        await asyncio.sleep(INSIDE)

            ready[me] = 1
            _crowd.wait_until(lambda: state[0] > 0)
            await asyncio.gather(*(work() for _ in range(each)))
            ended[me], statements[me] = time.monotonic_ns(), count()

    with _crowd.Crowd(processes, by_threads if face == "threads" else lambda me: asyncio.run(by_tasks(me))):
        _crowd.wait_until(lambda: sum(ready) == processes)
        state[0] = time.monotonic_ns()
    return Spent((max(ended) - state[0]) / 1e9, sum(statements) / (processes * each * times))


def crowds(urls: dict[str, str], number: int) -> dict[str, dict[str, float]]:
    """One round: both faces at each of these servers, in another order each time."""
    found: dict[str, dict[str, float]] = {ONE: {}, EIGHT: {}, COST: {}}
    for store, url in urls.items():
        for face in FACES if number % 2 else FACES[::-1]:
            who = f"{store}, {face}"
            found[ONE][who] = spend(url, face, 1, 200, 1).seconds
            found[EIGHT][who], found[COST][who] = spend(url, face, 8, 8, 10)
    return found


def requests(results: list[dict[str, dict[str, float]]]) -> list[list[str]]:
    """A table of what is wanted of crowds, and what was found."""
    rows = [["crowds", "wanted", "median (lowest to highest)"]]
    for measure, who, most, other in WANTED:
        found = [r[measure][who] / (r[measure][other] if other else 1) for r in results if measure in r]
        if found:
            what = f"{measure}: {who}" + (f", of {other}" if other else "")
            rows.append([what, f"≤ {most:g}", f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"])
    return rows

"""What a snapshot costs when very many names were used and few are held: `ls`, and one poll of the page.

    ./dev bench snapshots [--only STORE] [--names N] [--held N] [--rounds N]

Each store has 100,000 used names that are idle, and 50 that another client holds. `ls`, `top` and the page call
`snapshot()`; a poll of the page also compares it with the one before. Commands and statements are
counted by the server, or by SQLite, not by the client. The CPU time is that of the client; on SQLite that is all.
"""

import sys

sys.path.append(sys.path.pop(0))  # or redis.py beside this file would be found as the driver of that name

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

from _about import about, publish

import fairlock
from fairlock import aio
from fairlock.web.event_journal_file import Journal
from fairlock.web.snapshot_poller import Poller
from tests.servers.fixtures import redis_program, sql_program
from tests.servers.server import Server
from tests.servers.sql import USER, PostgreSQL

COPY = """INSERT INTO fairlock_locks (key, score, owner, body, version)
    SELECT 'order:' || n, score, owner, body, version + n FROM fairlock_locks, {numbers} WHERE key = 'used'"""
SERIES = {
    "sqlite": "(WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n < {last}) SELECT n FROM s)",
    "postgresql": "generate_series(0, {last}) AS s(n)",
}
Count = Callable[[Callable[[], object]], int]


@contextmanager
def redis(names: int) -> Iterator[tuple[str, Count]]:
    server = Server(redis_program())

    async def fill() -> None:
        async with aio.connect(server.url) as locks:

            async def use(number: int) -> None:
                async with locks.lock(f"order:{number}"):
                    pass

            for first in range(0, names, 500):
                await asyncio.gather(*[use(number) for number in range(first, min(first + 500, names))])

    asyncio.run(fill())
    try:
        yield server.url, server.count_commands
    finally:
        server.end()


@contextmanager
def sqlite(names: int) -> Iterator[tuple[str, Count]]:
    import sqlite3

    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/locks.db"
        use(url)
        database = sqlite3.connect(f"{folder}/locks.db")
        database.execute(COPY.format(numbers=SERIES["sqlite"].format(last=names - 1)))
        database.commit()
        database.close()

        def count(do: Callable[[], object]) -> int:
            store: Any = reading[0].session.backend.store  # type: ignore[attr-defined]
            found: list[str] = []
            store._db.cursor.connection.set_trace_callback(found.append)
            do()
            store._db.cursor.connection.set_trace_callback(None)
            return len(found)

        yield url, count


@contextmanager
def postgresql(names: int) -> Iterator[tuple[str, Count]]:
    server = PostgreSQL(sql_program("postgres", "psycopg"))
    server.run(f"ALTER ROLE {USER} SET log_statement = 'all'")
    use(server.url)
    server.run(COPY.format(numbers=SERIES["postgresql"].format(last=names - 1)))
    server.run("VACUUM ANALYZE fairlock_locks")

    def statements() -> int:
        text = (server.folder / "out").read_text(errors="replace")
        return text.count("LOG:  statement:") + text.count("LOG:  execute ")

    def count(do: Callable[[], object]) -> int:
        before = statements()
        do()
        return statements() - before

    try:
        yield server.url, count
    finally:
        server.end()


STORES = {"redis": redis, "sqlite": sqlite, "postgresql": postgresql}
reading: list[fairlock.Locks] = []  # the client that reads, for those that count by it


def use(url: str) -> None:
    with fairlock.connect(url) as locks, locks.lock("used"):
        pass


def measure(store: str, names: int, held: int, rounds: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"snapshot": [], "snapshot, CPU": [], "poll": [], "poll, CPU": [], "commands": []}
    with STORES[store](names) as (url, count), fairlock.connect(url) as holder, fairlock.connect(url) as locks:
        reading[:] = [locks]
        leases = [holder.lock(f"order:{number * (names // held)}").acquire() for number in range(held)]
        holder.snapshot()  # on Redis the others see it from here on
        poller = Poller(locks, Journal(None))
        for _ in range(rounds + 1):
            for what, do in (("snapshot", snapshot(locks, held)), ("poll", lambda: asyncio.run(poller._look()))):
                begun, cpu = time.perf_counter(), time.process_time()
                do()
                found[what].append(time.perf_counter() - begun)
                found[what + ", CPU"].append(time.process_time() - cpu)
        found = {what: values[1:] for what, values in found.items()}  # the first one opens connections
        found["commands"] = [count(locks.snapshot)]
        assert all(leases)
    return found


def snapshot(locks: fairlock.Locks, held: int) -> Callable[[], None]:
    def do() -> None:
        assert len(locks.snapshot().resources) == held

    return do


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=STORES)
    parser.add_argument("--names", type=int, default=100_000)
    parser.add_argument("--held", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--into", type=Path)
    args = parser.parse_args()
    begun = time.monotonic()
    rows = [["store", "snapshot", "CPU of the client", "one poll of the page", "commands or statements of a snapshot"]]
    rounds = {}
    for store in [args.only] if args.only else list(STORES):
        found = rounds[store] = measure(store, args.names, args.held, args.rounds)
        numbers = [f"{statistics.median(found[what]) * 1000:.1f} ms" for what in ("snapshot", "snapshot, CPU", "poll")]
        rows.append([store, *numbers, f"{found['commands'][0]:.0f}"])
        print(rows[-1], flush=True)
    publish("snapshots", "snapshots", [rows], about(args.rounds, begun, ("redis", "psycopg")), {}, rounds, args.into)


if __name__ == "__main__":
    main()

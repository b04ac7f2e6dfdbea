"""holdfast on PostgreSQL and MariaDB beside what one would write by hand, in one run.

    ./dev bench sql [--rounds N] [--seconds S]

Every round measures every contender once, one right after the other and each time in another order; ratios are taken
within a round, and of those the median. The servers are the bench's own and do not wait for the disk, so that the way
of working shows and not the disk. Prints a table.
"""

import argparse
import os
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(sys.path.pop(0))  # or redis.py beside this file would be found as the driver of that name
sys.path.append(str(Path(__file__).resolve().parent.parent))

import holdfast
from tests.servers.fixtures import sql_program
from tests.servers.sql import MariaDB, PostgreSQL

Measure = Callable[[float], float]


def rate(step: Callable[[], None], seconds: float) -> float:
    for _ in range(20):
        step()
    done, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        step()
        done += 1
    return done / (time.perf_counter() - begun)


def crowd(make: Callable[[], Callable[[], Any]], clients: int, seconds: float) -> float:
    """Grants per second of so many, each of whom stays inside for 5 ms."""
    counts = [0] * clients
    ready = threading.Barrier(clients)
    end = [0.0]

    def work(number: int) -> None:
        enter = make()
        if ready.wait() == 0:
            end[0] = time.perf_counter() + seconds
        time.sleep(0.01)
        while time.perf_counter() < end[0]:
            with enter():
                counts[number] += 1
                time.sleep(0.005)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(counts) / seconds


class Raw:
    """The statements of holdfast, sent by psycopg with nothing around them."""

    def __init__(self, url: str) -> None:
        import psycopg

        with holdfast.connect(url) as locks, locks.lock("raw"):
            store = locks._desk.backend.store  # type: ignore[attr-defined]
            self.text = store.dialect.write.text
        self.db = psycopg.connect(url, autocommit=True, prepare_threshold=2)
        row = self.db.execute("SELECT score, owner, body, version FROM holdfast_locks WHERE key = 'raw'").fetchone()
        assert row is not None
        self.score, self.owner, self.body, self.version = row

    def write(self) -> None:
        version = int.from_bytes(os.urandom(8)) >> 2
        values = {
            "v_key": "raw", "v_score": self.score, "v_owner": self.owner, "v_body": self.body, "v_version": version,
            "v_expected": self.version, "v_now": time.time_ns() // 1000 - 1000,
        }  # fmt: skip
        written = self.db.execute(self.text, values).fetchone()
        assert written is not None and written[5] == version, "it was refused"
        self.version = version

    def cycle(self) -> None:
        self.write()
        self.write()


class Advisory:
    """A session's advisory lock, on a connection that is kept."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.db = psycopg.connect(url, autocommit=True, prepare_threshold=2)

    def __call__(self) -> "Advisory":
        return self

    def __enter__(self) -> None:
        self.db.execute("SELECT pg_advisory_lock(42)")

    def __exit__(self, *_: object) -> None:
        self.db.execute("SELECT pg_advisory_unlock(42)")


def advisory_anew(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SELECT pg_advisory_lock(43)")


def contenders(url: str) -> dict[str, dict[str, Measure]]:
    locks = holdfast.connect(url)
    raw = Raw(url)
    alone = locks.lock("alone")

    def cycle() -> None:
        with alone:
            pass

    def ours() -> Callable[[], Any]:
        lock = holdfast.connect(url).lock("crowd")
        return lambda: lock

    return {
        "alone: cycles/s": {
            "holdfast": lambda s: rate(cycle, s),
            "the same statements by psycopg": lambda s: rate(raw.cycle, s),
            "advisory lock, new connection": lambda s: rate(lambda: advisory_anew(url), s),
        },
        "16 clients, 5 ms inside: grants/s": {
            "holdfast": lambda s: crowd(ours, 16, s),
            "advisory lock, kept connection": lambda s: crowd(lambda: Advisory(url), 16, s),
        },
    }


def named(url: str) -> dict[str, dict[str, Measure]]:
    import pymysql
    from sqlalchemy.engine import make_url

    where = make_url(url)
    alone = holdfast.connect(url).lock("alone")
    login: dict[str, Any] = {
        "host": where.host, "port": where.port, "user": where.username, "password": where.password,
        "database": where.database, "autocommit": True, "ssl_disabled": True,
    }  # fmt: skip
    cursor = pymysql.connect(**login).cursor()

    def cycle() -> None:
        with alone:
            pass

    def get_lock() -> None:
        cursor.execute("SELECT GET_LOCK('x', 5)")
        cursor.execute("SELECT RELEASE_LOCK('x')")

    return {
        "MariaDB, alone: cycles/s": {
            "holdfast": lambda s: rate(cycle, s),
            "GET_LOCK, kept connection": lambda s: rate(get_lock, s),
        }
    }


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--seconds", type=float, default=2.0)
    said = words.parse_args()
    servers = [PostgreSQL(sql_program("postgres", "psycopg")), MariaDB(sql_program("mariadbd", "pymysql"))]
    try:
        found: dict[str, dict[str, list[float]]] = {}
        measures = {**contenders(servers[0].url), **named(servers[1].url)}
        for _ in range(said.rounds):
            for what, who in measures.items():
                for name in random.sample(list(who), len(who)):
                    found.setdefault(what, {}).setdefault(name, []).append(who[name](said.seconds))
        for what, figures in found.items():
            print(f"\n{what}")
            for name, values in figures.items():
                ratios = [mine / its for mine, its in zip(figures["holdfast"], values, strict=True)]
                figure, of_it = statistics.median(values), statistics.median(ratios)
                print(f"  {name:<34}{figure:>9.0f}   holdfast has {of_it:.2f} of it")
    finally:
        for server in servers:
            server.end()
    sys.stdout.flush()
    os._exit(0)  # clients that were left open have nobody to talk to any more


if __name__ == "__main__":
    main()

"""fairlock on PostgreSQL and MariaDB beside what one would write by hand, and two libraries, in one run.

    ./dev bench sql [--rounds N] [--into FOLDER] [--only MEASURE …]

Every round measures every contender once, one right after the other and each time in another order; ratios are taken
within a round, and of those the median. All contenders are processes of their own. The servers are the bench's own and
do not wait for the disk, so that the way of working shows and not the disk. Prints a table; with --into also writes
sql.json (all figures of all rounds), and the table into bench-sql.md, if that has a place for it.
"""

import sys

sys.path.append(sys.path.pop(0))  # or redis.py beside this file would be found as the driver of that name

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

import _crowd
from _about import about, publish
from _sql_contenders import (
    POOL,
    AdvisoryAnew,
    AdvisoryKept,
    ByPsycopg,
    Fairlock,
    ForUpdate,
    OnSql,
    Pals,
    RawWorker,
    Tooz,
    Worker,
)
from _sql_crowds import COST, EIGHT, ONE, crowds, requests

import fairlock
from tests.servers.fixtures import sql_program
from tests.servers.sql import MariaDB, PostgreSQL

ROUNDS = 5
PACKAGES = ("psycopg", "sqlalchemy", "pymysql", "pals", "tooz")
MEASURES = ("alone", "crowd", "idle", "pool", "mariadb", "crowds")
ITEMS = 20_000  # more than 16 workers have in their time
Figures = dict[str, dict[str, float]]  # by measure, by contender
Rounds = list[Figures]

ALONE, CROWD, IDLE, ITEM, MARIADB = (
    "alone, cycles/s", "64 processes, 5 ms inside, grants/s", "idle while one waits, ms", "16 workers, items/s",
    "MariaDB, alone, cycles/s",
)  # fmt: skip
RATIOS = [  # measure, the other, what is wanted
    (ALONE, ByPsycopg.name, "≥ 0.8"),
    (ALONE, AdvisoryAnew.name, "≥ 4"),
    (ALONE, Pals.name, "> 1"),
    (ALONE, Tooz.name, "> 1"),
    (CROWD, AdvisoryKept.name, "≥ 0.75"),
    (IDLE, ForUpdate.name, "≤ 2.5"),
    (ITEM, RawWorker.name, "≥ 0.8"),
    (MARIADB, Tooz.name, "> 1"),
]


def alone(kinds: Sequence[type[OnSql]], url: str, missing: dict[str, str]) -> dict[str, float]:
    """In turns of a few milliseconds, all of them in one process."""
    found = [kind(url) for kind in kinds if kind.name not in missing]
    rates = _crowd.cycles(found, "", 3.0)
    return {one.name: same for one, (_, same) in zip(found, rates, strict=True)}


def crowd(contender: OnSql, size: int, seconds: float) -> float:
    """Return the grants per second of `size` processes, each of which holds the lock for 5 ms and comes back at once.

    It counts from when each has held the lock: the cost of a start at the same instant is another matter.
    """
    state, counts = _crowd.board(2), _crowd.board(size)

    def work(me: int) -> None:
        contender.open("")
        _crowd.wait_until(lambda: state[0] > 0)
        while not state[1]:
            with contender.same():
                counts[me] += 1
                time.sleep(0.005)
        contender.close()

    with _crowd.Crowd(size, work):
        state[0] = 1
        try:
            _crowd.wait_until(lambda: min(counts) > 0)
            before, begun = sum(counts), time.monotonic()
            time.sleep(seconds)
            found = (sum(counts) - before) / (time.monotonic() - begun)
        finally:
            state[1] = 1
    return found


def drain(kind: type[Worker], url: str) -> float:
    """Items per second that 16 processes take and finish together."""
    with fairlock.connect(url) as locks:
        for item in range(0, ITEMS, 5000):
            locks.pool(POOL).add_many(f"item {n}" for n in range(item, item + 5000))
    state, ready, counts = _crowd.board(1), _crowd.board(16), _crowd.board(16)

    def work(me: int) -> None:
        worker = kind(url)
        for _ in range(5):
            worker()
        ready[me] = 1
        _crowd.wait_until(lambda: state[0] > 0)
        end = state[0] / 1e9 + 1.5
        while time.monotonic() < end:
            if not worker():
                raise RuntimeError("there was nothing left to take")
            counts[me] += 1

    with _crowd.Crowd(16, work):
        _crowd.wait_until(lambda: sum(ready) == 16)
        state[0] = time.monotonic_ns()
    return sum(counts) / 1.5


class Servers:
    def __init__(self) -> None:
        self.postgresql = PostgreSQL(sql_program("postgres", "psycopg"))
        self.mariadb = MariaDB(sql_program("mariadbd", "pymysql"))
        self.clear()

    def clear(self) -> None:
        self.postgresql.forget_everything()
        self.postgresql.run("VACUUM")  # or those that come later have to read past the rows of those before
        self.mariadb.forget_everything()
        self.postgresql.run("DROP TABLE IF EXISTS bench_rows")
        self.postgresql.run("CREATE TABLE bench_rows AS SELECT 1 AS n")
        self.postgresql.run("GRANT ALL ON bench_rows TO app")
        with fairlock.connect(self.postgresql.url) as locks:
            locks.pool(POOL).add("first")
            locks.lock("x").acquire(False)

    def end(self) -> None:
        self.postgresql.end()
        self.mariadb.end()


def turned(kinds: Sequence[type], number: int) -> list[type]:
    turn = number % len(kinds)
    return [*kinds[turn:], *kinds[:turn]]


def a_round(number: int, servers: Servers, only: list[str], missing: dict[str, str]) -> Figures:
    url, maria = servers.postgresql.url, servers.mariadb.url
    found: Figures = {}
    if "alone" in only:
        kinds = turned((Fairlock, ByPsycopg, AdvisoryAnew, Pals, Tooz), number)
        found[ALONE] = alone(kinds, url, missing)
    if "crowd" in only:
        found[CROWD] = {}
        for kind in turned((Fairlock, AdvisoryKept), number):
            found[CROWD][kind.name] = crowd(kind(url), 64, 4.0)
    if "idle" in only:
        found[IDLE] = {}
        for kind in turned((Fairlock, ForUpdate), number):
            found[IDLE][kind.name] = statistics.median(_crowd.idle(kind(url), "", 0.02, 120, 6.0)) * 1e3
    if "pool" in only:
        found[ITEM] = {}
        for worker in turned((Worker, RawWorker), number):
            servers.clear()
            found[ITEM][worker.name] = drain(worker, url)
    if "mariadb" in only:
        found[MARIADB] = alone(turned((Fairlock, Tooz), number), maria, missing)
    if "crowds" in only:
        found |= crowds({"PostgreSQL": url, "MariaDB": maria}, number)
    return found


def lacking() -> dict[str, str]:
    missing = {}
    for kind, module in ((Pals, "pals"), (Tooz, "tooz")):
        try:
            __import__(module)
            __import__("psycopg2")
        except ImportError as error:
            missing[kind.name] = str(error)
    return missing


def spread(found: list[float], digits: int) -> str:
    middle = f"{statistics.median(found):,.{digits}f}"
    return middle if len(found) == 1 else f"{middle} ({min(found):,.{digits}f} to {max(found):,.{digits}f})"


def tables(results: Rounds) -> list[list[list[str]]]:
    ratios = [["fairlock", "wanted", "median (lowest to highest)"]]
    for measure, other, wanted in RATIOS:
        pairs = [(r[measure]["fairlock"], r[measure].get(other)) for r in results if measure in r]
        if found := [ours / its for ours, its in pairs if its]:
            ratios.append([f"{measure.rpartition(',')[0]}: of {other}", wanted, spread(found, 2)])
    figures = [["", "who", "median (lowest to highest)"]]
    for measure in (ALONE, CROWD, IDLE, ITEM, MARIADB, ONE, EIGHT, COST):
        for name in results[0].get(measure, {}):
            digits = 2 if measure in (IDLE, ONE, EIGHT, COST) else 0
            figures.append([measure, name, spread([r[measure][name] for r in results if name in r[measure]], digits)])
    return [table for table in (ratios, requests(results), figures) if len(table) > 1]


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--rounds", type=int, default=ROUNDS)
    words.add_argument("--into", type=Path, help="write sql.json here, and the table into bench-sql.md")
    words.add_argument("--only", nargs="*", default=[], choices=MEASURES, metavar="MEASURE")
    wanted = words.parse_args()
    begun = time.monotonic()
    missing = lacking()
    results: Rounds = []
    servers = Servers()
    try:
        for number in range(wanted.rounds):
            results.append(a_round(number, servers, wanted.only or list(MEASURES), missing))
            print(f"round {number + 1} of {wanted.rounds}", file=sys.stderr, flush=True)
    finally:
        servers.end()
    run_by = about(wanted.rounds, begun, PACKAGES)
    publish("sql", "SQL", tables(results), run_by, missing, results, wanted.into)


if __name__ == "__main__":
    main()

"""One client that holds very many leases: how many it loses, and what renewing them costs it.

    ./dev bench renewals [--only STORE] [--face threads|tasks] [--leases N] [--lease SECONDS] [--seconds SECONDS]

100,000 leases of 30 s on Redis and 20,000 on PostgreSQL and MariaDB, for two minutes each. The client is a process of
its own. Its CPU time is counted from when it holds all of them, and a figure of 40 % means 0.4 of one core.
"""

import sys

sys.path.append(sys.path.pop(0))  # or redis.py beside this file would be found as the driver of that name

import argparse
import asyncio
import json
import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

from _about import about, publish

import fairlock
from fairlock import aio
from tests.servers.fixtures import redis_program, sql_program
from tests.servers.server import Server
from tests.servers.sql import MariaDB, PostgreSQL

LEASES = {"redis": 100_000, "postgresql": 20_000, "mariadb": 20_000}
SERVERS: dict[str, Callable[[], Any]] = {
    "redis": lambda: Server(redis_program()),
    "postgresql": lambda: PostgreSQL(sql_program("postgres", "psycopg")),
    "mariadb": lambda: MariaDB(sql_program("mariadbd", "pymysql")),
}
THREADS = 2  # that acquire
LOOKS = 4  # how often the leases are checked in the measured time; each check costs the client time, too


def name_of(number: int) -> str:
    return f"lease number {number}"


def by_threads(url: str, count: int, lease: float, seconds: float) -> None:
    with fairlock.connect(url, lease=lease) as locks:
        with ThreadPoolExecutor(THREADS) as pool:
            leases = list(pool.map(lambda number: locks.lock(name_of(number)).acquire(), range(count)))
        figures = watched(leases, seconds, time.sleep)
        print(json.dumps(figures), flush=True)
        os._exit(0)  # the releases are not measured


def by_tasks(url: str, count: int, lease: float, seconds: float) -> None:
    async def main() -> None:
        locks = aio.connect(url, lease=lease)
        leases: list[Any] = []
        for first in range(0, count, 500):
            numbers = range(first, min(first + 500, count))
            leases += await asyncio.gather(*[locks.lock(name_of(number)).acquire() for number in numbers])
        meter = Meter(leases)
        for _ in range(LOOKS):
            await asyncio.sleep(seconds / LOOKS)
            meter.look()
        print(json.dumps(meter.figures()), flush=True)
        os._exit(0)

    asyncio.run(main())


class Meter:
    def __init__(self, leases: list[Any]) -> None:
        self.leases = leases
        self.least = float("inf")
        self.spent = 0.0  # by the checks themselves
        self.wall, self.cpu = time.monotonic(), time.process_time()

    def look(self) -> None:
        before = time.process_time()
        self.least = min(self.least, min(lease.remaining() for lease in self.leases))
        self.spent += time.process_time() - before

    def figures(self) -> dict[str, float]:
        wall, cpu = time.monotonic() - self.wall, time.process_time() - self.cpu - self.spent
        lost = sum(not lease.held for lease in self.leases)
        return {"lost": lost, "cpu, %": 100 * cpu / wall, "least remaining, s": self.least, "seconds": wall}


def watched(leases: list[Any], seconds: float, sleep: Callable[[float], None]) -> dict[str, float]:
    meter = Meter(leases)
    for _ in range(LOOKS):
        sleep(seconds / LOOKS)
        meter.look()
    return meter.figures()


def measure(store: str, face: str, count: int, lease: float, seconds: float) -> dict[str, float]:
    server = SERVERS[store]()
    try:
        words = [sys.executable, __file__, "--client", server.url, face, str(count), str(lease), str(seconds)]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        found: dict[str, float] = json.loads(done.stdout)
        return found
    finally:
        server.end()


def main() -> None:
    if sys.argv[1:2] == ["--client"]:
        url, face, count, lease, seconds = sys.argv[2:]
        (by_threads if face == "threads" else by_tasks)(url, int(count), float(lease), float(seconds))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=LEASES)
    parser.add_argument("--face", choices=("threads", "tasks"))
    parser.add_argument("--leases", type=int)
    parser.add_argument("--lease", type=float, default=30.0)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--into", type=Path)
    args = parser.parse_args()
    begun = time.monotonic()
    rows = [["store, face", "leases", "lost", "CPU of the client", "least remaining"]]
    rounds = {}
    for store in [args.only] if args.only else list(LEASES):
        for face in [args.face] if args.face else ["threads", "tasks"]:
            count = args.leases or LEASES[store]
            found = rounds[f"{store}, {face}"] = measure(store, face, count, args.lease, args.seconds)
            cpu, least = f"{found['cpu, %']:.0f} %", f"{found['least remaining, s']:.1f} s"
            rows.append([f"{store}, {face}", f"{count:,}", f"{found['lost']:.0f}", cpu, least])
            print(rows[-1], flush=True)
    publish("renewals", "renewals", [rows], about(1, begun, ("redis", "psycopg", "pymysql")), {}, rounds, args.into)


if __name__ == "__main__":
    main()

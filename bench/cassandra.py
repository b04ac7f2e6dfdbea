"""What a take of an item costs in Cassandra, with the pool in sixteen partitions and in one.

    ./dev bench cassandra [--nodes N] [--workers N] [--items N] [--rounds N]

Real nodes on loopback. In each round both have their turn, in changing order: a crowd of workers drains a pool. Printed
are the medians, of items a second and of transactions for each item: one to take it and one to finish it are the least.
"""

import argparse
import os
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != HERE]  # its own name is the driver's
sys.path.insert(0, str(HERE.parent))

import fairlock
from fairlock.stores.cassandra.pool_items import BUCKETS, CassandraItemStore
from tests.servers.cassandra import Ring, missing


def drain(ring: Ring, buckets: int, workers: int, items: int) -> tuple[float, float]:
    """Let the workers acquire and finish all items. Return the items per second and the transactions per item."""
    CassandraItemStore.buckets = buckets
    pool = f"jobs-{buckets}-{os.urandom(4).hex()}"
    clients = [fairlock.connect(ring.session(), keyspace="fairlock") for _ in range(workers)]
    wires: list[Any] = [locks._session.backend.store.wire for locks in clients]  # type: ignore[attr-defined]
    clients[0].pool(pool).add_many([(f"item {number}", None) for number in range(items)])
    before = sum(wire.sent for wire in wires)
    done: list[str] = []

    def work(locks: fairlock.Locks) -> None:
        jobs = locks.pool(pool, lease=60)
        while (item := jobs.acquire(blocking=False)) is not None:
            item.done()
            done.append(item.key)

    threads = [threading.Thread(target=work, args=(locks,)) for locks in clients]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begun
    assert len(done) == len(set(done)) == items, "each item is done once"
    sent = sum(wire.sent for wire in wires) - before
    for locks in clients:
        locks.close()
    return items / took, sent / items


def main() -> None:
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("nodes", 1), ("workers", 16), ("items", 256), ("rounds", 3)):
        said.add_argument(f"--{name}", type=int, default=default)
    asked = said.parse_args()
    if what := missing():
        sys.exit(f"{what}.")
    ring = Ring(asked.nodes)
    found: dict[int, list[tuple[float, float]]] = {BUCKETS: [], 1: []}
    try:
        drain(ring, BUCKETS, asked.workers, asked.workers)  # until it is warm
        for number in range(asked.rounds):
            for buckets in sorted(found, reverse=bool(number % 2)):
                found[buckets].append(drain(ring, buckets, asked.workers, asked.items))
    finally:
        ring.end()
    for buckets, rounds in found.items():
        rate, sent = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"{buckets:>3} partitions: {rate:6.1f} items/s, {sent:.2f} transactions an item")
    ratio = statistics.median(many[0] / one[0] for many, one in zip(found[BUCKETS], found[1], strict=True))
    print(f"sixteen against one: {ratio:.2f} times as many; nodes: {asked.nodes}, workers: {asked.workers}")


if __name__ == "__main__":
    main()

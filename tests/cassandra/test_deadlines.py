"""A timeout is a promise: on a node that hangs, whatever has one is back soon after it."""

import asyncio
import time

import pytest

import fairlock
from fairlock import StoreError, aio
from tests.machine_load import within
from tests.servers.cassandra import Ring

TIMEOUT = 0.3
LATE = 1.0


def test_a_node_that_hangs(cassandra: Ring) -> None:
    """For clients that are connected: to connect takes longer than that, and is not counted."""

    def by_thread(locks: fairlock.Locks) -> float:
        began = time.monotonic()
        with pytest.raises(StoreError, match="does not reply"):
            locks.lock("x").acquire(timeout=TIMEOUT)
        return time.monotonic() - began - TIMEOUT

    async def by_task(locks: aio.Locks) -> float:
        began = time.monotonic()
        with pytest.raises(StoreError, match="does not reply"):
            await locks.lock("y").acquire(timeout=TIMEOUT)
        return time.monotonic() - began - TIMEOUT

    async def both() -> list[float]:
        with fairlock.connect(cassandra.url) as locks:
            async with aio.connect(cassandra.url) as others:
                with locks.lock("x", timeout=60):
                    pass
                async with others.lock("y", timeout=60):
                    pass
                cassandra.nodes[0].stop()
                try:
                    return await asyncio.gather(asyncio.to_thread(by_thread, locks), by_task(others))
                finally:
                    cassandra.nodes[0].cont()

    late = asyncio.run(both())
    assert max(late) < within(LATE, below=2), late

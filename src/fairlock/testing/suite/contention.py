"""Crowds: many threads or tasks of a few clients that want the same thing at the same time."""

import pytest

from ... import aio
from ..harness import Harness
from ..request_count import count_requests
from .parametrize import LOCK, READER, WRITER, Behaviours, Kind

MANY = 40
SLOTS = 3
MOST = 6  # requests for each acquire and release, including conflicts and polls
SERVERS = {"redis": 4, "valkey": 4, "postgresql": 4, "mariadb": 4}
EMBEDDED = {"sqlite": 24}  # in a file of this machine, where a refused write costs microseconds and is not avoided


def _slots(client: aio.Locks, name: str) -> aio.Lock:
    return client.semaphore(name, SLOTS)


class TestCrowds(Behaviours):
    @pytest.mark.parametrize("kind", [LOCK, WRITER, READER, Kind("semaphore(3)", _slots, _slots)], ids=str)
    async def test_each_of_a_crowd_gets_the_lock_with_few_requests(self, harness: Harness, kind: Kind) -> None:
        clients = [harness.connect(), harness.connect()]
        requests = count_requests(*(harness.unwrapped(client) for client in clients))
        holders = most = highest = 0

        async def work(number: int) -> None:
            nonlocal holders, most, highest
            before = highest
            async with kind.mine(clients[number % 2], "x") as lease:
                assert lease.fence > before, "it came after that fence was given out"
                highest = max(highest, lease.fence)
                holders += 1
                most = max(most, holders)
                await harness.rest()
                holders -= 1

        crowd = [harness.go(work(number)) for number in range(MANY)]
        await harness.until(lambda: all(each.done for each in crowd), "all have held it")
        for each in crowd:
            await each.result()
        if kind is not READER:
            assert most <= (SLOTS if kind.mine is _slots else 1)
        scheme = harness.unwrapped(clients[0])._session.backend.where.partition(":")[0]
        assert requests() <= (SERVERS | EMBEDDED).get(scheme, MOST) * MANY

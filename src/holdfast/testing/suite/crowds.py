"""Crowds: many threads or tasks of a few clients that want the same thing at the same time."""

import pytest

from ... import aio
from ..requests import requests_of
from ..world import World
from .stage import LOCK, READER, WRITER, Behaviours, Kind

MANY = 40
SLOTS = 3
EMBEDDED = 24  # the same in a file of this machine, where a refused write costs microseconds and is not avoided
MOST = 6  # requests for each who gets in and out again, with those who collide and those who only look


def _slots(client: aio.Locks, name: str) -> aio.Lock:
    return client.semaphore(name, SLOTS)


class TestCrowds(Behaviours):
    @pytest.mark.parametrize("kind", [LOCK, WRITER, READER, Kind("semaphore(3)", _slots, _slots)], ids=str)
    async def test_each_of_a_crowd_gets_in_by_few_requests(self, world: World, kind: Kind) -> None:
        clients = [world.connect(), world.connect()]
        requests = requests_of(*(world.undressed(client) for client in clients))
        inside = most = 0

        async def work(number: int) -> None:
            nonlocal inside, most
            async with kind.mine(clients[number % 2], "x"):
                inside += 1
                most = max(most, inside)
                await world.rest()
                inside -= 1

        crowd = [world.go(work(number)) for number in range(MANY)]

        async def all_are_through() -> bool:
            return all(each.done for each in crowd)

        await world.until(all_are_through, "everybody was inside")
        for each in crowd:
            await each.result()
        if kind is not READER:
            assert most <= (SLOTS if kind.mine is _slots else 1)
        embedded = world.undressed(clients[0])._desk.backend.where.startswith("sqlite:")
        assert requests() <= (EMBEDDED if embedded else MOST) * MANY

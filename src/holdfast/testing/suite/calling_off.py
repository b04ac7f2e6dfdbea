"""Calling off the wait of another thread or task: it ends without what it waited for, and leaves no place behind."""

import threading

import pytest

from ...errors import ConfigError
from ..world import World
from .stage import Behaviours, Kind, PoolBehaviours, every_kind, take

WITHIN = 0.2  # seconds of the hand clock in which a wait that was called off has ended


@every_kind
class TestCallingOff(Behaviours):
    async def test_a_wait_that_is_called_off_ends_and_leaves_no_place_behind(self, world: World, kind: Kind) -> None:
        held = await take(kind.rival(world.connect(), "x"))
        client, cancel = world.connect(), threading.Event()
        waiting = world.go(kind.mine(client, "x").acquire(cancel=cancel))
        await world.in_line("x", 1)
        cancel.set()
        assert await waiting.result(within=WITHIN) is None
        assert (await world.resource("x")).line == ()
        await held.release()
        assert await kind.mine(client, "x").acquire(False)

    async def test_only_the_one_that_is_called_off_ends(self, world: World, kind: Kind) -> None:
        held = await take(kind.rival(world.connect(), "x"))
        client, cancel = world.connect(), threading.Event()
        stays = [world.go(kind.mine(client, "x").acquire())]
        await world.in_line("x", 1)
        ends = world.go(kind.mine(client, "x").acquire(cancel=cancel))
        stays.append(world.go(kind.mine(client, "x").acquire()))
        await world.rest()
        cancel.set()
        assert await ends.result(within=WITHIN) is None
        await held.release()
        for one in stays:
            lease = await one.result()
            assert lease is not None
            await lease.release()

    async def test_one_that_was_called_off_before_it_began_does_not_wait(self, world: World, kind: Kind) -> None:
        await take(kind.rival(world.connect(), "x"))
        cancel = threading.Event()
        cancel.set()
        assert await world.go(kind.mine(world.connect(), "x").acquire(cancel=cancel)).result(within=WITHIN) is None
        assert (await world.resource("x")).line == ()


class TestCallingOffInVain(Behaviours):
    async def test_what_has_no_is_set_is_refused(self, world: World) -> None:
        with pytest.raises(ConfigError, match="cancel must be an Event"):
            await world.connect().lock("x").acquire(cancel=5)  # type: ignore[call-overload]


class TestCallingOffItems(PoolBehaviours):
    async def test_a_wait_for_an_item_can_be_called_off(self, world: World) -> None:
        client, cancel = world.connect(), threading.Event()
        waiting = world.go(client.pool("jobs").acquire(cancel=cancel))
        await world.workers("jobs", 1)
        cancel.set()
        assert await waiting.result(within=WITHIN) is None
        await world.workers("jobs", 0)

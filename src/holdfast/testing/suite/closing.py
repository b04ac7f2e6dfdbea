"""Closing a client at any moment: a waiter learns it at once, and nothing of it stays in the store."""

from collections.abc import Awaitable, Callable

import pytest

from ...errors import ConfigError
from ..faults import Faults
from ..world import World
from .stage import Behaviours, Kind, PoolBehaviours, every_kind, get, take


@every_kind
class TestClosing(Behaviours):
    async def test_closing_ends_those_who_wait_and_leaves_no_place_behind(self, world: World, kind: Kind) -> None:
        held = await take(kind.rival(world.connect(), "x"))
        client = world.connect(lease=60)
        waiting = [world.go(kind.mine(client, "x").acquire()) for _ in range(3)]
        await world.in_line("x", 1 if kind.label != "semaphore(1)" else 3)
        await client.close()
        for one in waiting:
            with pytest.raises(ConfigError, match="closed"):
                await one.result()
        assert (await world.resource("x")).line == ()
        await held.release()
        assert await kind.rival(world.connect(), "x").acquire(False)

    async def test_the_next_in_line_does_not_wait_for_a_closed_one(self, world: World, kind: Kind) -> None:
        held = await take(kind.rival(world.connect(), "x"))
        client, later = world.connect(lease=60), world.connect(lease=60)
        closed = world.go(kind.mine(client, "x").acquire())
        await world.in_line("x", 1)
        next_one = world.go(kind.mine(later, "x").acquire())
        await world.in_line("x", 2)
        await client.close()
        with pytest.raises(ConfigError):
            await closed.result()
        await held.release()
        lease = await next_one.result()
        assert lease is not None
        assert lease.held


class TestClosingAmidFaults(Behaviours):
    async def test_an_acquire_whose_reply_is_lost_is_undone_by_closing(self, world: World) -> None:
        """The store has let it in and the client does not know: nobody waits a lease for that."""
        faults = Faults(*["after"] * 3, on="Enter")
        client = world.connect(lease=60, faults=faults)
        acquiring = world.go(client.lock("x").acquire())
        await world.until(_said(faults, "Enter"), "the first Enter is sent")
        await world.go(client.close()).result(within=3)
        try:
            lease = await acquiring.result(within=1)
        except ConfigError:
            pass
        else:
            assert lease is not None
            assert not lease.held  # it was quicker, and closing has released it
        assert await world.connect().lock("x").acquire(False)

    async def test_a_lease_that_closing_has_released_may_be_released_again(self, world: World) -> None:
        client = world.connect()
        lease = await take(client.lock("x"))
        await client.close()
        await lease.release()
        assert not lease.lost


class TestClosingWithItems(PoolBehaviours):
    async def test_closing_ends_those_who_wait_for_an_item(self, world: World) -> None:
        client, other = world.connect(), world.connect()
        waiting = [world.go(client.pool("jobs").acquire()) for _ in range(2)]
        await world.workers("jobs", 2)
        await client.close()
        for one in waiting:
            with pytest.raises(ConfigError, match="closed"):
                await one.result()
        await other.pool("jobs").add("a")
        item = await get(other.pool("jobs"), blocking=False)
        assert item.key == "a"


def _said(faults: Faults, what: str) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        return what in faults.said

    return check

"""Closing a client at any moment: its waiters learn of it at once, and nothing of it stays in the store."""

import pytest

from ...errors import ConfigError
from ..faults import Faults
from ..harness import Harness
from .parametrize import Behaviours, Kind, PoolBehaviours, every_kind, get, take


@every_kind
class TestClosing(Behaviours):
    async def test_closing_ends_waits_and_leaves_no_place_behind(self, harness: Harness, kind: Kind) -> None:
        held = await take(kind.rival(harness.connect(), "x"))
        client = harness.connect(lease=60)
        waiting = [harness.go(kind.mine(client, "x").acquire()) for _ in range(3)]
        await harness.in_queue("x", 1 if kind.label != "semaphore(1)" else 3)
        await client.close()
        for one in waiting:
            with pytest.raises(ConfigError, match="closed"):
                await one.result()
        assert (await harness.resource("x")).queue == ()
        await held.release()
        assert await kind.rival(harness.connect(), "x").acquire(False)

    async def test_the_next_waiter_does_not_wait_for_a_closed_client(self, harness: Harness, kind: Kind) -> None:
        held = await take(kind.rival(harness.connect(), "x"))
        client, later = harness.connect(lease=60), harness.connect(lease=60)
        closed = await harness.queue_up(kind.mine(client, "x").acquire())
        next_one = await harness.queue_up(take(kind.mine(later, "x")), 2)
        await client.close()
        with pytest.raises(ConfigError):
            await closed.result()
        await held.release()
        assert (await next_one.result()).held


class TestClosingDuringFaults(Behaviours):
    async def test_an_acquire_whose_reply_is_lost_is_undone_by_closing(self, harness: Harness) -> None:
        """The store has granted it and the client does not know: no other client waits a lease for that."""
        faults = Faults(*["after"] * 3, on="Acquire")
        client = harness.connect(lease=60, faults=faults)
        acquiring = harness.go(client.lock("x").acquire())
        await harness.until(lambda: "Acquire" in faults.sent, "the first Acquire is sent")
        await harness.go(client.close()).result(within=3)
        try:
            lease = await acquiring.result(within=1)
        except ConfigError:
            pass
        else:
            assert lease is not None
            assert not lease.held  # it was quicker, and closing has released it
        assert await harness.connect().lock("x").acquire(False)

    async def test_a_lease_that_closing_has_released_may_be_released_again(self, harness: Harness) -> None:
        client = harness.connect()
        lease = await take(client.lock("x"))
        await client.close()
        await lease.release()
        assert not lease.lost


class TestClosingWithItems(PoolBehaviours):
    async def test_closing_ends_waits_for_an_item(self, harness: Harness) -> None:
        client, other = harness.connect(), harness.connect()
        waiting = [harness.go(client.pool("jobs").acquire()) for _ in range(2)]
        await harness.workers("jobs", 2)
        await client.close()
        for one in waiting:
            with pytest.raises(ConfigError, match="closed"):
                await one.result()
        await other.pool("jobs").add("a")
        item = await get(other.pool("jobs"), blocking=False)
        assert item.key == "a"

"""Leases without a process: `detach` and `attach`."""

import pytest

from ...errors import LeaseLost, NotHeld
from ..harness import Harness
from .parametrize import Behaviours, Kind, every_kind, take


@every_kind
class TestDetaching(Behaviours):
    async def test_what_is_detached_lives_on_without_its_client(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect()
        lease = await take(kind.mine(client, "x"))
        ticket = await lease.detach(60)
        assert (ticket, lease.held, lease.lost) == (lease.ticket, False, False)
        await client.close()
        assert await kind.rival(harness.connect(), "x").acquire(False) is None

    async def test_it_ends_if_no_client_attaches_it(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        await lease.detach(0.5)
        assert (await harness.go(take(kind.rival(harness.connect(), "x"))).result(within=0.51)).held

    async def test_any_client_with_the_ticket_takes_it_over(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        ticket = await lease.detach(0.5)
        taken = await harness.connect().attach("x", ticket)
        assert (taken.held, taken.fence, taken.ticket, taken.name) == (True, lease.fence, ticket, "x")
        await harness.pass_time(20 if harness.manual_clock else 1)
        assert taken.held, "it is renewed again"
        assert await kind.rival(harness.connect(), "x").acquire(False) is None
        await taken.release()
        assert await kind.rival(harness.connect(), "x").acquire(False)

    async def test_a_ticket_without_a_grant_is_not_attached(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect()
        with pytest.raises(NotHeld):
            await client.attach("x", "0" * 32)
        lease = await take(kind.mine(client, "x"))
        ticket = await lease.detach(60)
        await harness.connect().evict("x", reason="cleaning up", at_once=True)
        with pytest.raises(LeaseLost, match="evicted"):
            await client.attach("x", ticket)

    async def test_other_waiters_of_the_same_client_keep_waiting(self, harness: Harness, kind: Kind) -> None:
        """Detaching ends the passing on: the lock is not theirs to pass any more."""
        client = harness.connect()
        lease = await take(kind.mine(client, "x"))
        waiting = harness.go(take(kind.rival(client, "x")))
        await harness.pass_time(0.05)
        ticket = await lease.detach(60)
        await harness.in_queue("x", 1)
        assert not waiting.done
        taken = await harness.connect().attach("x", ticket)
        await taken.release()
        assert (await waiting.result()).fence > lease.fence

"""Releasing: which release counts, the effect of a second one, and what is left when a client ends."""

import gc

import pytest

from ...errors import ConfigError, NotHeld
from ...rules.locks import Release
from ..harness import Harness
from .parametrize import Behaviours, Kind, every_kind, every_mutex, take


@every_kind
class TestReleasing(Behaviours):
    async def test_a_lease_may_be_released_again(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        await lease.release()
        later = await take(kind.mine(harness.connect(), "x"))
        await lease.release()
        await lease.release()
        assert later.held
        assert [e.fence for e in (await harness.resource("x")).holders] == [later.fence]

    async def test_nothing_to_release_is_an_error(self, harness: Harness, kind: Kind) -> None:
        lock = kind.mine(harness.connect(), "x")
        with pytest.raises(NotHeld, match="'x' is not held"):
            await lock.release()
        await take(lock)
        await lock.release()
        with pytest.raises(RuntimeError):  # as threading raises it
            await lock.release()

    async def test_a_released_lease_is_not_held(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        await lease.release()
        assert (lease.held, lease.lost, lease.remaining(), lease.reason) == (False, False, 0.0, None)
        with pytest.raises(NotHeld, match="released"):
            lease.ensure_held()
        with pytest.raises(NotHeld):
            await lease.renew()

    async def test_another_thread_or_task_may_release(self, harness: Harness, kind: Kind) -> None:
        lock = kind.mine(harness.connect(), "x")
        lease = await take(lock)
        await harness.go(lease.release()).result()
        assert not lease.held
        await take(lock)
        await harness.go(lock.release()).result()
        assert not lock.held
        assert (await harness.resource("x")).holders == ()

    async def test_a_hold_may_be_left_elsewhere_than_it_was_entered(self, harness: Harness, kind: Kind) -> None:
        holding = kind.mine(harness.connect(), "x").hold()
        await harness.go(holding.__aenter__()).result()
        assert len((await harness.resource("x")).holders) == 1
        await harness.go(holding.__aexit__(None, None, None)).result()
        assert (await harness.resource("x")).holders == ()

    async def test_a_forgotten_lease_is_kept(self, harness: Harness, kind: Kind) -> None:
        """`if locks.lock("x").acquire(False): …` must hold: what keeps it is the client, not the variable."""
        client = harness.connect(lease=harness.short_lease)
        assert await kind.mine(client, "x").acquire(False)
        gc.collect()
        await harness.pass_time(2)
        assert await kind.rival(harness.connect(), "x").acquire(False) is None

    async def test_closing_a_client_releases_what_it_holds(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect()
        lease = await take(kind.mine(client, "x"))
        await client.close()
        assert not lease.held
        assert await kind.rival(harness.connect(), "x").acquire(False)

    async def test_a_closed_client_raises_a_sentence(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect()
        lock = kind.mine(client, "x")
        await client.close()
        await client.close()
        with pytest.raises(ConfigError, match="closed"):
            await lock.acquire(False)

    async def test_leaving_a_client_by_with_closes_it(self, harness: Harness, kind: Kind) -> None:
        async with harness.connect() as client:
            await take(kind.mine(client, "x"))
        assert (await harness.resource("x")).holders == ()


@every_mutex
class TestTickets(Behaviours):
    async def test_two_clients_with_one_label_are_two(self, harness: Harness, kind: Kind) -> None:
        """The ticket decides; the owner is a label for people."""
        lease = await take(kind.mine(harness.connect(owner="host"), "x"))
        other = kind.mine(harness.connect(owner="host"), "x")
        assert await other.acquire(False) is None
        with pytest.raises(NotHeld):
            await other.release()
        assert lease.held

    async def test_a_late_release_does_not_affect_the_next_holder(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect()
        lock = kind.mine(client, "x")
        old = await take(lock)
        await old.release()
        new = await take(lock)
        await old.release()
        for late in (Release(old.ticket, False, old.fence), Release(old.ticket)):  # as if it had been under way
            await harness.unwrapped(client).session.call("x", late)
        await new.renew()
        assert await kind.mine(harness.connect(), "x").acquire(False) is None


class TestSeveralLeasesOfOneLock(Behaviours):
    async def test_release_takes_the_newest_of_this_thread_else_the_oldest(self, harness: Harness) -> None:
        client = harness.connect()
        lock = client.semaphore("many", 5)
        first, second = await take(lock), await take(lock)
        elsewhere = await harness.go(take(lock)).result()
        await lock.release()
        assert (first.held, second.held, elsewhere.held) == (True, False, True)
        await harness.go(lock.release()).result()  # from a thread that has none: the oldest
        assert (first.held, elsewhere.held) == (False, True)

    async def test_a_semaphore_is_never_given_back_more_often_than_taken(self, harness: Harness) -> None:
        slots = harness.connect().semaphore("many", 2)
        lease = await take(slots)
        await lease.release()
        await lease.release()
        with pytest.raises(NotHeld):
            await slots.release()
        a, b = await take(slots), await take(slots)
        assert await slots.acquire(False) is None
        assert a.held
        assert b.held

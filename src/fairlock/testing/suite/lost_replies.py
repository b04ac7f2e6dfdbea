"""Replies are lost, messages come late or twice, the store is down: no false refusal, and nothing is left behind."""

import pytest

from ...errors import LockTimeout, StoreError
from ..faults import Faults
from ..harness import Harness
from .parametrize import LOCK, Behaviours, Kind, every_kind, take

any_fault = pytest.mark.parametrize("fault", ["before", "after", "late", "twice", "slow"])


@every_kind
@any_fault
class TestFaults(Behaviours):
    async def test_on_acquire_no_client_is_refused_by_itself(
        self, harness: Harness, kind: Kind, fault: str
    ) -> None:
        faults = Faults(fault, fault, on="Acquire")
        lock = kind.mine(harness.connect(faults=faults), "x")
        lease = await harness.go(take(lock, blocking=False)).result(within=1)
        assert faults.made
        assert lease.held
        assert [e.fence for e in (await harness.resource("x")).holders] == [lease.fence]
        assert await kind.rival(harness.connect(), "x").acquire(False) is None
        await lease.release()
        assert (await harness.resource("x")).holders == ()

    async def test_in_the_queue_no_place_is_lost_or_doubled(
        self, harness: Harness, kind: Kind, fault: str
    ) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        faults = Faults(fault, None, fault, fault, on="Acquire")
        waiting = harness.go(take(kind.rival(harness.connect(faults=faults), "x")))
        await harness.pass_time(0.1)
        await harness.in_queue("x", 1)
        await harness.pass_time(1.5 if harness.manual_clock else 0.1)
        assert len((await harness.resource("x")).queue) == 1
        await lease.release()
        late = await waiting.result(within=2)
        assert late.held
        assert len((await harness.resource("x")).holders) == 1

    async def test_on_renewal_nothing_is_lost(self, harness: Harness, kind: Kind, fault: str) -> None:
        faults = Faults(None, fault, fault, None, fault, on="Renew")
        client = harness.connect(lease=harness.short_lease, faults=faults)
        lease = await take(kind.mine(client, "x"))
        await harness.pass_time(5 if harness.manual_clock else 1.8)
        assert faults.made
        assert lease.held
        assert [e.fence for e in (await harness.resource("x")).holders] == [lease.fence]

    async def test_on_release_it_is_released_and_not_lost(
        self, harness: Harness, kind: Kind, fault: str
    ) -> None:
        faults = Faults(fault, fault, on="Release")
        lock = kind.mine(harness.connect(faults=faults), "x")
        lease = await take(lock)
        await harness.go(lease.release()).result(within=1)
        assert faults.made
        assert not lease.lost
        assert (await harness.resource("x")).holders == ()
        assert await kind.rival(harness.connect(), "x").acquire(False)

    async def test_giving_up_leaves_no_waiter_in_the_queue(self, harness: Harness, kind: Kind, fault: str) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        faults = Faults(fault, fault, on=("Release",))
        waiting = harness.go(kind.rival(harness.connect(faults=faults), "x").acquire(timeout=0.1))
        assert await waiting.result(within=1) is None
        assert faults.made
        await harness.in_queue("x", 0)
        await lease.release()
        assert (await harness.resource("x")).holders == ()


@every_kind
class TestStoreDown(Behaviours):
    async def test_to_begin_with_it_is_an_error_at_once(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        lock = kind.mine(harness.connect(faults=faults), "x")
        faults.cut = True
        begun = harness.time()
        with pytest.raises(StoreError) as caught:
            await lock.acquire(timeout=60)
        assert isinstance(caught.value, ConnectionError)
        assert harness.time() - begun < 1
        faults.over()
        await harness.pass_time(1.1 if harness.manual_clock else 0)
        await harness.empty("x")
        assert await lock.acquire(False)

    async def test_in_the_queue_it_is_retried_until_the_timeout(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        faults = Faults()
        client = harness.connect(faults=faults)
        waiting = await harness.queue_up(take(kind.rival(client, "x"), timeout=60))
        faults.cut = True
        await harness.pass_time(1.5 if harness.manual_clock else 0.3)
        assert not waiting.done
        faults.over()
        await lease.release()
        assert (await waiting.result(within=2)).held

    async def test_in_the_queue_the_timeout_is_kept_nevertheless(self, harness: Harness, kind: Kind) -> None:
        await take(kind.mine(harness.connect(), "x"))
        faults = Faults()
        poll_ttl = 0.5 if harness.manual_clock else 1.0  # or it gives up before it is seen
        waiting = await harness.queue_up(kind.rival(harness.connect(faults=faults), "x").acquire(timeout=poll_ttl))
        begun = harness.time()
        faults.cut = True
        try:
            assert await waiting.result(within=0.51) is None
        except StoreError:
            pass  # either is the truth
        assert harness.time() - begun < poll_ttl + 1

    async def test_a_message_that_arrives_after_its_own_release_finds_a_tombstone(
        self, harness: Harness, kind: Kind
    ) -> None:
        """An Acquire on its way while its sender gives up would otherwise hold the lock for a whole lease."""
        faults = Faults("late", "down", on="Acquire")
        client = harness.connect(faults=faults, lease=3600)
        lock = kind.mine(client, "x")
        with pytest.raises(StoreError):
            await harness.go(lock.acquire()).result(within=1)
        await harness.pass_time(1.1 if harness.manual_clock else 0)
        await harness.until(lambda: "Release" in faults.sent, "it has left")
        assert (await harness.resource("x")).holders == ()
        assert await kind.rival(harness.connect(), "x").acquire(False)


class TestManyFaults(Behaviours):
    @pytest.mark.parametrize("seed", range(6))
    async def test_random_faults_leave_nothing_behind_and_no_lock_held_twice(self, harness: Harness, seed: int) -> None:
        holders = 0
        worst = 0
        turns = 0

        async def work(number: int) -> None:
            nonlocal holders, worst, turns
            faults = Faults.by_chance(seed * 10 + number, before=0.06, after=0.06, late=0.03, twice=0.05, slow=0.02)
            client = harness.connect(faults=faults)
            lock = (LOCK.mine if number % 2 else LOCK.rival)(client, "x", timeout=60)
            for _ in range(10):
                try:
                    async with lock:
                        holders += 1
                        worst = max(worst, holders)
                        turns += 1
                        await harness.rest()
                        holders -= 1
                except (StoreError, LockTimeout):
                    pass

        working = [harness.go(work(number)) for number in range(4)]
        await harness.pass_time(60 if harness.manual_clock else 0)
        for each in working:
            await each.result()
        assert worst == 1
        assert turns >= 30
        await harness.pass_time(2 if harness.manual_clock else 0)
        await harness.empty("x")

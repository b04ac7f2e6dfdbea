"""Replies get lost, messages come late or twice, the store is down: no false refusal, no ghost, nothing left behind."""

import pytest

from ...errors import BackendError, LockTimeout
from ..faults import Faults
from ..world import World
from .stage import LOCK, Behaviours, Kind, every_kind, take

any_fault = pytest.mark.parametrize("fault", ["before", "after", "late", "twice", "slow"])


@every_kind
@any_fault
class TestFaults(Behaviours):
    async def test_on_the_way_in_nobody_is_refused_by_his_own_lock(self, world: World, kind: Kind, fault: str) -> None:
        faults = Faults(fault, fault, on="Enter")
        lock = kind.mine(world.connect(faults=faults), "x")
        lease = await world.go(take(lock, blocking=False)).result(within=1)
        assert faults.made
        assert lease.held
        assert [e.fence for e in (await world.resource("x")).inside] == [lease.fence]
        assert await kind.rival(world.connect(), "x").acquire(False) is None
        await lease.release()
        assert (await world.resource("x")).inside == ()

    async def test_in_line_nobody_loses_his_place_or_stands_twice(self, world: World, kind: Kind, fault: str) -> None:
        lease = await take(kind.mine(world.connect(), "x"))
        faults = Faults(fault, None, fault, fault, on="Enter")
        waiting = world.go(take(kind.rival(world.connect(faults=faults), "x")))
        await world.pass_time(0.1)
        await world.in_line("x", 1)
        await world.pass_time(1.5 if world.hand else 0.1)
        assert len((await world.resource("x")).line) == 1
        await lease.release()
        late = await waiting.result(within=2)
        assert late.held
        assert len((await world.resource("x")).inside) == 1

    async def test_on_renewal_nothing_is_lost(self, world: World, kind: Kind, fault: str) -> None:
        faults = Faults(None, fault, fault, None, fault, on="Renew")
        lease = await take(kind.mine(world.connect(lease=1 if world.hand is None else 0.5, faults=faults), "x"))
        await world.pass_time(5 if world.hand else 1.2)
        assert faults.made
        assert lease.held
        assert [e.fence for e in (await world.resource("x")).inside] == [lease.fence]

    async def test_on_the_way_out_it_is_released_and_nobody_says_lost(
        self, world: World, kind: Kind, fault: str
    ) -> None:
        faults = Faults(fault, fault, on="Leave")
        lock = kind.mine(world.connect(faults=faults), "x")
        lease = await take(lock)
        await world.go(lease.release()).result(within=1)
        assert faults.made
        assert not lease.lost
        assert (await world.resource("x")).inside == ()
        assert await kind.rival(world.connect(), "x").acquire(False)

    async def test_giving_up_leaves_nobody_in_line(self, world: World, kind: Kind, fault: str) -> None:
        lease = await take(kind.mine(world.connect(), "x"))
        faults = Faults(fault, fault, on=("Leave",))
        waiting = world.go(kind.rival(world.connect(faults=faults), "x").acquire(timeout=0.1))
        assert await waiting.result(within=1) is None
        assert faults.made
        await world.in_line("x", 0)
        await lease.release()
        assert (await world.resource("x")).inside == ()


@every_kind
class TestTheStoreIsDown(Behaviours):
    async def test_to_begin_with_it_is_an_error_at_once(self, world: World, kind: Kind) -> None:
        faults = Faults()
        lock = kind.mine(world.connect(faults=faults), "x")
        faults.cut = True
        begun = world.time()
        with pytest.raises(BackendError) as caught:
            await lock.acquire(timeout=60)
        assert isinstance(caught.value, ConnectionError)
        assert world.time() - begun < 1
        faults.over()
        await world.pass_time(1.1 if world.hand else 0)
        await world.empty("x")
        assert await lock.acquire(False)

    async def test_in_line_it_is_tried_until_the_time_is_over(self, world: World, kind: Kind) -> None:
        lease = await take(kind.mine(world.connect(), "x"))
        faults = Faults()
        client = world.connect(faults=faults)
        waiting = world.go(take(kind.rival(client, "x"), timeout=60))
        await world.in_line("x", 1)
        faults.cut = True
        await world.pass_time(1.5 if world.hand else 0.3)
        assert not waiting.done
        faults.over()
        await lease.release()
        assert (await waiting.result(within=2)).held

    async def test_in_line_the_timeout_is_kept_all_the_same(self, world: World, kind: Kind) -> None:
        await take(kind.mine(world.connect(), "x"))
        faults = Faults()
        patience = 0.5 if world.hand else 1.0  # or it gives up before it is seen
        waiting = world.go(kind.rival(world.connect(faults=faults), "x").acquire(timeout=patience))
        await world.in_line("x", 1)
        begun = world.time()
        faults.cut = True
        try:
            assert await waiting.result(within=0.51) is None
        except BackendError:
            pass  # either is the truth
        assert world.time() - begun < patience + 1
        faults.over()

    async def test_a_message_that_arrives_after_its_own_leave_finds_a_grave(self, world: World, kind: Kind) -> None:
        """An Enter under way while its sender gives up would otherwise put a ghost inside for a whole lease."""
        faults = Faults("late", "down", on="Enter")
        client = world.connect(faults=faults, lease=3600)
        lock = kind.mine(client, "x")
        with pytest.raises(BackendError):
            await world.go(lock.acquire()).result(within=1)
        await world.pass_time(1.1 if world.hand else 0)
        await world.until(lambda: _left(faults), "it has left")
        assert (await world.resource("x")).inside == ()
        assert await kind.rival(world.connect(), "x").acquire(False)


async def _left(faults: Faults) -> bool:
    return "Leave" in faults.said


class TestManyFaults(Behaviours):
    @pytest.mark.parametrize("seed", range(6))
    async def test_by_chance_nothing_is_left_behind_and_no_two_are_inside(self, world: World, seed: int) -> None:
        inside = 0
        worst = 0
        turns = 0

        async def work(number: int) -> None:
            nonlocal inside, worst, turns
            faults = Faults.by_chance(seed * 10 + number, before=0.06, after=0.06, late=0.03, twice=0.05, slow=0.02)
            client = world.connect(faults=faults)
            lock = (LOCK.mine if number % 2 else LOCK.rival)(client, "x", timeout=60)
            for _ in range(10):
                try:
                    async with lock:
                        inside += 1
                        worst = max(worst, inside)
                        turns += 1
                        await world.rest()
                        inside -= 1
                except (BackendError, LockTimeout):
                    pass

        working = [world.go(work(number)) for number in range(4)]
        await world.pass_time(60 if world.hand else 0)
        for each in working:
            await each.result()
        assert worst == 1
        assert turns >= 30
        await world.pass_time(2 if world.hand else 0)
        await world.empty("x")

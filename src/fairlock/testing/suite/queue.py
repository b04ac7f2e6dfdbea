"""The queue: first come, first served, across clients; passing, passing over, and the cost of dead waiters."""

import pytest

from ... import aio
from ..faults import Faults
from ..harness import Harness
from .parametrize import LOCK, Behaviours, Kind, every_kind, every_mutex, take


async def visit(lock: aio.Lock, label: str, log: list[str]) -> int:
    async with lock.hold() as lease:
        log.append(label)
        return lease.fence


@every_kind
class TestQueue(Behaviours):
    async def test_first_come_first_served_across_clients(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        log: list[str] = []
        waiting = []
        for number in range(5):
            # Alternately, so that readers do not go in together.
            make = kind.rival if number % 2 == 0 else kind.mine
            waiting.append(await harness.queue_up(visit(make(harness.connect(), "x"), str(number), log), number + 1))
        await lease.release()
        fences = [await each.result() for each in waiting]
        assert log == ["0", "1", "2", "3", "4"]
        assert fences == sorted(set(fences))
        assert fences[0] > lease.fence

    async def test_a_try_does_not_pass_the_queue(self, harness: Harness, kind: Kind) -> None:
        """Also one that would fit beside the holder: a reader while a writer waits."""
        await take(kind.mine(harness.connect(), "x"))
        await harness.queue_up(kind.rival(harness.connect(), "x").acquire(timeout=5))
        assert await kind.mine(harness.connect(), "x").acquire(False) is None
        await harness.pass_time(0)

    async def test_a_waiter_that_gives_up_lets_the_next_move_up(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        poll_ttl = brief(harness)
        first = await harness.queue_up(kind.rival(harness.connect(), "x").acquire(timeout=poll_ttl))
        second = await harness.queue_up(take(kind.rival(harness.connect(), "x")), 2)
        await harness.pass_time(poll_ttl + 0.001)
        assert await first.result() is None
        await harness.in_queue("x", 1)
        await lease.release()
        assert (await second.result()).held

    async def test_a_lost_wakeup_costs_a_moment_and_not_forever(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        faults = Faults()
        faults.unreachable = True
        waiting = await harness.queue_up(take(kind.rival(harness.connect(faults=faults), "x")))
        await lease.release()
        assert (await waiting.result(within=1.5)).held

    async def test_a_holder_that_falls_silent_costs_its_lease(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        gone = harness.connect(lease=0.5, faults=faults)
        await take(kind.mine(gone, "x"))
        faults.cut = True
        begun = harness.time()
        waiting = harness.go(take(kind.rival(harness.connect(), "x")))
        assert (await waiting.result(within=0.6)).held
        assert 0.3 <= harness.time() - begun < 2


class TestLocalHandoff(Behaviours):
    """Threads or tasks of one client share a place in the queue and pass the lock on."""

    @pytest.mark.parametrize("of_one_client", [True, False])
    async def test_each_holder_has_a_rising_fence_of_its_own(self, harness: Harness, of_one_client: bool) -> None:
        client = harness.connect()
        lease = await take((client if of_one_client else harness.connect()).lock("x"))
        fences: list[int] = []

        async def work() -> None:
            async with client.lock("x") as mine:
                fences.append(mine.fence)

        working = [harness.go(work()) for _ in range(50)]
        await harness.pass_time(0.05)
        await harness.in_queue("x", 0 if of_one_client else 1)  # all of them have one place
        await lease.release()
        for each in working:
            await each.result()
        assert len(fences) == 50
        assert fences == sorted(set(fences))
        assert fences[0] > lease.fence
        later = await take(harness.connect().lock("x"))
        assert later.fence > fences[-1]

    async def test_others_get_their_turn_though_a_crowd_keeps_coming(self, harness: Harness) -> None:
        busy, other = harness.connect(), harness.connect()
        over = False
        turns = 0

        async def crowd() -> None:
            nonlocal turns
            while not over:
                async with busy.lock("x"):
                    turns += 1
                    await harness.pass_time(0) if harness.manual_clock is None else None

        lease = await take(busy.lock("x"))
        waiting = await harness.queue_up(take(other.lock("x")))
        if harness.manual_clock is None:
            crowds = [harness.go(crowd()) for _ in range(3)]
            await lease.release()
            assert (await waiting.result()).held
            over = True
            await other.close()
            for each in crowds:
                await each.result()
        else:
            ahead = [harness.go(take(busy.lock("x"))) for _ in range(2)]
            await harness.pass_time(0.2)  # longer than a lock is passed on in a row
            await lease.release()
            assert (await waiting.result()).held
            assert not any(each.done for each in ahead)
            await other.close()
            first = await ahead[0].result()
            await first.release()
            assert (await ahead[1].result()).held

    async def test_without_local_handoff_each_waiter_has_a_place_of_its_own(self, harness: Harness) -> None:
        lease = await take(harness.connect().lock("x"))
        one, two = harness.connect(), harness.connect()
        log: list[str] = []
        waiting = []
        for number, client in enumerate((one, two, one, two)):
            lock = client.lock("x", local_handoff=False)
            waiting.append(await harness.queue_up(visit(lock, str(number), log), number + 1))
        await lease.release()
        for each in waiting:
            await each.result()
        assert log == ["0", "1", "2", "3"]

    async def test_readers_that_waited_together_are_granted_together(self, harness: Harness) -> None:
        lease = await take(harness.connect().lock("x"))
        client = harness.connect()
        crowd = [harness.go(take(client.rwlock("x").read())) for _ in range(5)]
        await harness.in_queue("x", 1)
        await lease.release()
        held = [await each.result() for each in crowd]
        assert all(each.held for each in held)
        writer = client.lock("x")
        for each in held:
            assert await writer.acquire(False) is None
            await each.release()
        assert await writer.acquire(False)

    async def test_a_waiter_that_gives_up_hands_the_lead_to_the_next(self, harness: Harness) -> None:
        lease = await take(harness.connect().lock("x"))
        client = harness.connect()
        poll_ttl = brief(harness)
        leader = await harness.queue_up(client.lock("x").acquire(timeout=poll_ttl))
        heirs = [harness.go(take(client.lock("x"))) for _ in range(2)]
        await harness.pass_time(poll_ttl + 0.05)
        assert await leader.result() is None
        await harness.in_queue("x", 1)
        await lease.release()
        await harness.until(lambda: any(each.done for each in heirs), "one of the heirs is in")
        first = next(each for each in heirs if each.done)
        await (await first.result()).release()
        second = next(each for each in heirs if each is not first)
        assert (await second.result()).held

    async def test_a_crowd_asks_the_store_no_more_than_once_a_second(self, harness: Harness) -> None:
        await take(harness.connect().lock("x"))
        faults = Faults()
        client = harness.connect(faults=faults)
        poll_ttl = 1.2 if harness.manual_clock else 2  # or the first give up while the last are still on their way
        crowd = [harness.go(client.lock("x").acquire(timeout=poll_ttl)) for _ in range(50)]
        await harness.in_queue("x", 1)
        before = len(faults.sent)
        await harness.pass_time(1.1)
        assert len(faults.sent) - before <= 2
        assert [await each.result(within=0.2) for each in crowd] == [None] * 50


def brief(harness: Harness) -> float:
    """Return the timeout of a waiter that gives up, after others have seen it in the queue."""
    return 0.2 if harness.manual_clock else 1.0


@every_mutex
class TestFences(Behaviours):
    async def test_fences_rise_across_clients_and_kinds(self, harness: Harness, kind: Kind) -> None:
        fences = []
        clients = [harness.connect() for _ in range(3)]
        for number in range(9):
            async with kind.mine(clients[number % 3], "x") as lease:
                fences.append(lease.fence)
        assert fences == sorted(set(fences))

    async def test_a_fence_is_greater_than_that_of_a_lost_holder(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        lost = await take(kind.mine(harness.connect(lease=0.5, faults=faults), "x"))
        faults.cut = True
        await harness.pass_time(0.6)
        assert (await take(kind.mine(harness.connect(), "x"))).fence > lost.fence


class TestFairAndUnfair(Behaviours):
    """A request with a large weight waits; `fair` decides whether a smaller one may pass it."""

    async def test_a_heavy_one_is_not_passed_by_light_ones(self, harness: Harness) -> None:
        slots = harness.connect().semaphore("x", 3)
        light = [await take(slots) for _ in range(2)]
        heavy = await harness.queue_up(take(harness.connect().semaphore("x", 3), weight=3))
        assert await slots.acquire(False) is None, "there is room for one, but another request waits"
        for each in light:
            await each.release()
        assert (await heavy.result()).held
        assert await slots.acquire(False) is None

    async def test_an_unfair_request_may_pass_the_queue(self, harness: Harness) -> None:
        slots = harness.connect().semaphore("x", 3)
        light = [await take(slots) for _ in range(2)]
        heavy = await harness.queue_up(take(harness.connect().semaphore("x", 3), weight=3))
        barging = await take(harness.connect().semaphore("x", 3, fair=False), blocking=False)
        for each in light:
            await each.release()
        assert not heavy.done
        await barging.release()
        assert (await heavy.result()).held

    async def test_an_unfair_one_that_does_not_fit_waits_like_the_others(self, harness: Harness) -> None:
        lease = await take(LOCK.mine(harness.connect(), "x"))
        unfair = harness.connect().lock("x", fair=False)
        assert await unfair.acquire(False) is None
        waiting = await harness.queue_up(take(unfair))
        await lease.release()
        assert (await waiting.result()).held


class TestDeadWaiters(Behaviours):
    async def test_a_dead_head_of_the_queue_costs_its_poll_ttl_and_not_a_lease(self, harness: Harness) -> None:
        lease = await take(harness.connect().lock("x"))
        faults = Faults()
        dead = await harness.queue_up(harness.connect(faults=faults).lock("x", lease=3600).acquire(timeout=30))
        faults.hang = True
        living = await harness.queue_up(take(harness.connect().lock("x")), 2)
        await lease.release()  # the dead waiter is granted the lock, and does not reply
        assert (await living.result(within=3.5)).held
        faults.cut = True
        faults.hang = False
        await harness.pass_time(0.1)
        del dead

    async def test_a_waiter_that_polls_keeps_its_place_however_long_it_takes(self, harness: Harness) -> None:
        lease = await take(harness.connect().lock("x"))
        kinds: list[str] = []
        waiting = harness.go(take(harness.connect(on_event=lambda event: kinds.append(event.kind)).lock("x")))
        await harness.in_queue("x", 1)
        await harness.pass_time(300 if harness.manual_clock else 1.1)
        assert len((await harness.resource("x")).queue) == 1
        await lease.release()
        assert (await waiting.result()).held
        assert "place_lost" not in kinds

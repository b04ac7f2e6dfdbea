"""Reentrancy, and waiting for a lock that is already held by the same thread or task."""

import logging

import pytest

from ...errors import AlreadyHeld, LeaseLost, LockTimeout
from ..faults import Faults
from ..harness import Harness
from .parametrize import Behaviours, Kind, enter_and_leave, every_mutex, take


class TestReentrancy(Behaviours):
    async def test_the_same_thread_or_task_acquires_again(self, harness: Harness) -> None:
        lock = harness.connect().lock("x", reentrant=True)
        async with lock as outer:
            async with lock as inner:
                assert inner is not outer
                assert (inner.ticket, inner.fence) == (outer.ticket, outer.fence)
            assert outer.held
            assert not inner.held
            assert await harness.connect().lock("x").acquire(False) is None
        assert (await harness.resource("x")).holders == ()

    async def test_the_order_of_releases_does_not_matter(self, harness: Harness) -> None:
        lock = harness.connect().lock("x", reentrant=True)
        first, second, third = await take(lock), await take(lock), await take(lock)
        await first.release()
        await third.release()
        assert second.held
        assert await harness.connect().lock("x").acquire(False) is None
        await second.release()
        assert (await harness.resource("x")).holders == ()

    async def test_another_thread_or_task_does_not_get_in(self, harness: Harness) -> None:
        lock = harness.connect().lock("x", reentrant=True)
        async with lock:
            assert await harness.go(lock.acquire(False)).result() is None

    async def test_nor_does_one_that_is_begun_after_another_ended_without_releasing(self, harness: Harness) -> None:
        """Threads are known by numbers that are used again."""
        lock = harness.connect().lock("x", reentrant=True)
        await harness.go(take(lock)).result()
        for _ in range(5):
            assert await harness.go(lock.acquire(False)).result() is None

    async def test_another_object_of_the_same_client_and_name_counts(self, harness: Harness) -> None:
        client = harness.connect()
        async with client.lock("x", reentrant=True):
            await enter_and_leave(client.lock("x", reentrant=True))
            assert await client.lock("x").acquire(False) is None, "only if it is asked for"
            assert await harness.connect().lock("x", reentrant=True).acquire(False) is None

    async def test_a_loss_is_a_loss_for_all_of_them(self, harness: Harness) -> None:
        faults = Faults()
        lock = harness.connect(lease=0.5, faults=faults).lock("x", reentrant=True)
        leases = [await take(lock) for _ in range(3)]
        faults.cut = True
        await harness.pass_time(0.6)
        assert [each.lost for each in leases] == [True] * 3
        faults.over()
        await harness.pass_time(1 if harness.manual_clock else 0)
        await harness.empty("x")
        again = await take(lock)
        assert again.fence > leases[0].fence
        for each in leases:
            with pytest.raises(LeaseLost):
                await each.release()
        assert again.held

    async def test_acquiring_again_after_an_unnoticed_pause_loses_the_outer_lease_and_gets_a_new_one(
        self, harness: Harness
    ) -> None:
        faults = Faults()
        lock = harness.connect(lease=0.5, faults=faults).lock("x", reentrant=True)
        outer = await take(lock)
        faults.hang = True
        await harness.pass_time(0.6)
        faults.over()
        inner = await take(lock, timeout=5)
        assert inner.fence > outer.fence
        assert outer.lost
        again = await take(lock)
        assert again.ticket == inner.ticket
        await again.release()
        await inner.release()
        await harness.empty("x")


@every_mutex
class TestSelfDeadlock(Behaviours):
    async def test_it_is_an_error_at_once(self, harness: Harness, kind: Kind) -> None:
        lock = kind.mine(harness.connect(), "x")
        async with lock:
            for waiting in (lock.acquire(), lock.acquire(timeout=None), take(lock)):
                with pytest.raises(AlreadyHeld, match=r"already holds 'x' \(with, .*\); waiting would never end"):
                    await waiting
            with pytest.raises(AlreadyHeld):
                await enter_and_leave(lock)
        assert (await harness.resource("x")).holders == ()

    async def test_with_a_timeout_it_is_only_a_wait(self, harness: Harness, kind: Kind) -> None:
        lock = kind.mine(harness.connect(), "x")

        async def nested() -> None:
            async with lock:
                assert await lock.acquire(False) is None
                assert await lock.acquire(timeout=0.05) is None
                with pytest.raises(LockTimeout):
                    await enter_and_leave(lock.hold(timeout=0.05))

        await harness.go(nested()).result(within=0.2)

    async def test_what_was_acquired_may_be_released_by_another(
        self, harness: Harness, kind: Kind, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Without `with` another thread may release it: so the acquire waits, with a warning after a second."""
        lock = kind.mine(harness.connect(), "x")

        async def twice() -> int:
            await take(lock)
            return (await take(lock)).fence

        with caplog.at_level(logging.WARNING, "fairlock"):
            waiting = harness.go(twice())
            await harness.pass_time(1.2)
        assert "which it holds itself" in caplog.text
        assert not waiting.done
        await lock.release()
        assert await waiting.result() > 0

    async def test_another_name_is_no_waiting_for_oneself(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect()
        async with kind.mine(client, "x"):
            await enter_and_leave(kind.mine(client, "y"))

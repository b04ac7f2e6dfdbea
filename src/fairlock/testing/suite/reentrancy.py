"""Reentrancy, waiting for a lock that is already held, several locks at once, decorators."""

import logging
from collections.abc import Iterator

import pytest

from ... import aio
from ...errors import AlreadyHeld, ConfigError, LeaseLost, LockTimeout
from ..faults import Faults
from ..harness import Harness
from .parametrize import Behaviours, Kind, every_mutex, take


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
            async with client.lock("x", reentrant=True):
                pass
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
        inner = await lock.acquire(timeout=5)
        assert inner is not None
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
                async with lock:
                    pass
        assert (await harness.resource("x")).holders == ()

    async def test_with_a_timeout_it_is_only_a_wait(self, harness: Harness, kind: Kind) -> None:
        lock = kind.mine(harness.connect(), "x")

        async def nested() -> None:
            async with lock:
                assert await lock.acquire(False) is None
                assert await lock.acquire(timeout=0.05) is None
                with pytest.raises(LockTimeout):
                    async with lock.hold(timeout=0.05):
                        pass

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
            async with kind.mine(client, "y"):
                pass


class TestLockAll(Behaviours):
    async def test_all_are_held_and_all_are_left(self, harness: Harness) -> None:
        client = harness.connect()
        async with client.lock_all("b", "a", client.lock("c", note="with a note")) as leases:
            assert list(leases) == ["a", "b", "c"]
            assert all(each.held for each in leases.values())
            assert [len((await harness.resource(name)).holders) for name in "abc"] == [1, 1, 1]
        assert [(await harness.resource(name)).holders for name in "abc"] == [(), (), ()]

    async def test_two_with_crossed_names_do_not_wait_for_each_other(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()

        async def both(client: aio.Locks, *names: str) -> None:
            for _ in range(20):
                async with client.lock_all(*names):
                    await harness.rest()

        working = [harness.go(both(one, "a", "b")), harness.go(both(two, "b", "a"))]
        for each in working:
            await each.result(within=1)

    async def test_if_one_is_not_to_be_had_none_is_kept(self, harness: Harness) -> None:
        await take(harness.connect(owner="other").lock("b"))
        client = harness.connect()

        async def all_of_them() -> None:
            async with client.lock_all("a", "b", "c", timeout=0.1):
                raise AssertionError("b is held by another")

        begun = harness.time()
        with pytest.raises(LockTimeout, match="'b' is held by other"):
            await harness.go(all_of_them()).result(within=0.15)
        assert harness.time() - begun < 1
        assert (await harness.resource("a")).holders == ()
        assert (await harness.resource("c")).holders == ()

    async def test_one_name_twice_is_refused(self, harness: Harness) -> None:
        with pytest.raises(ConfigError, match="twice"):
            async with harness.connect().lock_all("a", "b", "a"):
                pass
        assert (await harness.resource("a")).holders == ()

    async def test_what_the_body_raises_leaves_them_all(self, harness: Harness) -> None:
        with pytest.raises(ZeroDivisionError):
            async with harness.connect().lock_all("a", "b"):
                raise ZeroDivisionError
        assert (await harness.resource("a")).holders == ()
        assert (await harness.resource("b")).holders == ()


class TestDecorating(Behaviours):
    async def test_a_guarded_function_holds_the_lock_while_it_runs(self, harness: Harness) -> None:
        client = harness.connect()

        @client.guard("order:{order}")
        async def ship(order: int, *, fast: bool = False) -> tuple[int, int]:
            return order, len((await harness.resource(f"order:{order}")).holders)

        assert await ship(42) == (42, 1)
        assert await ship(order=43, fast=True) == (43, 1)
        assert (await harness.resource("order:42")).holders == ()

    async def test_without_a_name_the_functions_own_is_taken(self, harness: Harness) -> None:
        client = harness.connect()

        @client.guard
        async def report() -> list[str]:
            return [r.name for r in (await harness.observer.snapshot()).resources if r.holders]

        (name,) = await report()
        assert name.endswith("report")
        assert name.startswith("fairlock.testing.suite.reentrancy.")

    async def test_skip_does_nothing_if_it_is_taken(self, harness: Harness) -> None:
        calls: list[int] = []

        @harness.connect().guard("x", skip=True, note="skipping")
        async def work() -> int:
            calls.append(1)
            return 7

        assert await work() == 7
        lease = await take(harness.connect().lock("x"))
        assert await work() is None
        await lease.release()
        assert await work() == 7
        assert len(calls) == 2

    async def test_a_lock_decorates_too(self, harness: Harness) -> None:
        lock = harness.connect().lock("x")

        @lock
        async def work(one: int, two: int = 2) -> tuple[int, int, bool]:
            return one, two, lock.held

        assert await work(1) == (1, 2, True)
        assert not lock.held

    async def test_what_it_raises_comes_out(self, harness: Harness) -> None:
        @harness.connect().guard("x")
        async def work() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await work()
        assert (await harness.resource("x")).holders == ()

    async def test_a_name_that_cannot_be_filled_lists_the_arguments(self, harness: Harness) -> None:
        @harness.connect().guard("order:{oder}")
        async def ship(order: int) -> None: ...

        with pytest.raises(ConfigError, match="the arguments are: order"):
            await ship(1)

    async def test_a_filled_name_is_checked_like_any_other(self, harness: Harness) -> None:
        @harness.connect().guard("{name}")
        async def work(name: str) -> None: ...

        with pytest.raises(ConfigError, match="control characters"):
            await work("a\nb")
        with pytest.raises(ConfigError, match="empty"):
            await work("")

    async def test_generators_and_bad_options_are_refused_where_they_are_written(self, harness: Harness) -> None:
        client = harness.connect()

        def generate() -> Iterator[int]:
            yield 1

        for decorate in (client.guard("x"), client.lock("x")):
            with pytest.raises(ConfigError, match="generator"):
                decorate(generate)  # type: ignore[arg-type]
        with pytest.raises(ConfigError):
            client.guard("x", lease=-1)
        with pytest.raises(TypeError):
            client.guard("x", no_such_option=1)

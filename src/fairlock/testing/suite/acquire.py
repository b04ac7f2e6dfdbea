"""Acquiring: trying, waiting, timeouts; with `acquire`, with `hold` and with the object itself."""

from datetime import timedelta

import pytest

from ...errors import LockTimeout
from ..harness import Harness
from .parametrize import LOCK, SINGLE, Behaviours, Kind, enter_and_leave, every_kind, take


@every_kind
class TestAcquiring(Behaviours):
    async def test_what_is_free_is_had_at_once(self, harness: Harness, kind: Kind) -> None:
        lock = kind.mine(harness.connect(owner="me"), "x", lease=30)
        lease = await take(lock)
        assert (lease.name, lease.owner, lease.held, lease.lost, lease.reason) == ("x", "me", True, False, None)
        assert lease.fence > 0
        assert 0 < lease.remaining() <= 30
        assert bool(lease)
        assert lock.held

    async def test_what_is_taken_refuses_a_try_at_once(self, harness: Harness, kind: Kind) -> None:
        await take(kind.mine(harness.connect(), "x"))
        rival = kind.rival(harness.connect(), "x")
        begun = harness.time()
        assert await rival.acquire(False) is None
        assert await rival.acquire(blocking=False) is None
        assert await rival.acquire(timeout=0) is None
        assert not rival.held
        assert harness.time() - begun < 2.5  # a busy machine; three that waited would take three seconds and more
        assert (await harness.resource("x")).queue == ()

    async def test_what_is_taken_by_this_very_client_refuses_a_try(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect()
        await take(kind.mine(client, "x"))
        assert await kind.rival(client, "x").acquire(False) is None

    async def test_what_was_released_is_free(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        await lease.release()
        assert not lease.held
        assert not lease.lost
        assert await kind.rival(harness.connect(), "x").acquire(False)

    async def test_a_waiter_gets_the_lock_when_the_holder_releases(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        waiting = await harness.queue_up(take(kind.rival(harness.connect(), "x")))
        assert not waiting.done
        begun = harness.time()
        await lease.release()
        assert (await waiting.result()).held
        assert harness.time() - begun < 1, "woken, and not only by looking again"

    # -- hold and with

    async def test_hold_gives_a_lease_and_leaves_it_free(self, harness: Harness, kind: Kind) -> None:
        lock = kind.mine(harness.connect(), "x")
        async with lock.hold() as lease:
            assert lease.held
            assert await kind.rival(harness.connect(), "x").acquire(False) is None
        assert not lease.held
        assert not lock.held
        assert (await harness.resource("x")).holders == ()

    async def test_the_object_itself_can_be_entered_again_and_again(self, harness: Harness, kind: Kind) -> None:
        lock = kind.mine(harness.connect(), "x")
        fences = []
        for _ in range(3):
            async with lock as lease:
                assert lease.held
                fences.append(lease.fence)
        assert fences == sorted(set(fences))
        assert (await harness.resource("x")).holders == ()

    async def test_a_lease_can_be_left_by_with(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        async with lease as same:
            assert same.held
        assert (await harness.resource("x")).holders == ()

    async def test_a_hold_is_for_one_use(self, harness: Harness, kind: Kind) -> None:
        holding = kind.mine(harness.connect(), "x").hold()
        await enter_and_leave(holding)
        with pytest.raises(RuntimeError, match="one use"):
            await enter_and_leave(holding)
        assert (await harness.resource("x")).holders == ()

    async def test_what_the_body_raises_comes_out_and_it_is_free(self, harness: Harness, kind: Kind) -> None:
        lock = kind.mine(harness.connect(), "x")
        with pytest.raises(ZeroDivisionError):
            async with lock:
                raise ZeroDivisionError
        with pytest.raises(ZeroDivisionError):
            async with lock.hold():
                raise ZeroDivisionError
        assert (await harness.resource("x")).holders == ()

    async def test_a_hold_that_waits_too_long_names_the_holder(self, harness: Harness, kind: Kind) -> None:
        await take(kind.mine(harness.connect(owner="web-3:4117"), "orders:42", note="ship order"))
        rival = kind.rival(harness.connect(), "orders:42")
        waiting = harness.go(enter_and_leave(rival.hold(timeout=0.2)))
        with pytest.raises(LockTimeout) as caught:
            await waiting.result(within=0.201)
        error = caught.value
        assert isinstance(error, TimeoutError)
        assert (error.name, error.holders, error.place, error.waited) == ("orders:42", ("web-3:4117",), 1, 0.2)
        assert str(error).startswith("'orders:42' is held by web-3:4117 (ship order) for ")
        assert str(error).endswith("; you waited 0.2 s, position 1 in the queue.")

    async def test_a_hold_that_only_tries_names_the_holder(self, harness: Harness, kind: Kind) -> None:
        await take(kind.mine(harness.connect(owner="web-3:4117"), "x"))
        with pytest.raises(LockTimeout, match="'x' is held by web-3:4117 for"):
            await enter_and_leave(kind.rival(harness.connect(), "x").hold(timeout=0))

    async def test_a_note_given_to_hold_is_seen_by_others(self, harness: Harness, kind: Kind) -> None:
        async with kind.mine(harness.connect(), "x", note="in general").hold(note="just now"):
            assert (await harness.resource("x")).holders[0].note == "just now"

    # -- threading's own signature

    async def test_bad_timeouts_are_the_errors_of_threading(self, harness: Harness, kind: Kind) -> None:
        lock = kind.mine(harness.connect(), "x")
        for bad in [(False, 1), (False, 0), (True, -2), (True, -0.5), (True, float("nan"))]:
            with pytest.raises(ValueError, match="timeout"):
                await lock.acquire(*bad)
        with pytest.raises(OverflowError):
            await lock.acquire(True, 1e20)
        assert await lock.acquire(False, -1)
        for bad_type in ("5", True, object()):
            with pytest.raises(ValueError, match="timeout"):
                await lock.acquire(True, bad_type)  # type: ignore[call-overload]
        for bad_limit in (-2, float("nan"), "5"):
            with pytest.raises(ValueError, match="timeout"):
                kind.mine(harness.connect(), "x", timeout=bad_limit)


@pytest.mark.parametrize("kind", [LOCK, SINGLE], ids=str)
class TestTimeouts(Behaviours):
    """For waiters that share a place with others of their client, and for waiters with a place of their own."""

    async def test_a_wait_that_is_too_long_gives_none(self, harness: Harness, kind: Kind) -> None:
        await take(kind.mine(harness.connect(), "x"))
        begun = harness.time()
        waiting = harness.go(kind.rival(harness.connect(), "x").acquire(timeout=0.3))
        assert await waiting.result(within=0.301) is None
        assert 0.3 <= harness.time() - begun < 1
        assert (await harness.resource("x")).queue == ()

    @pytest.mark.parametrize("seconds", [0.001, 0.02])
    async def test_the_shortest_wait_waits_and_ends(self, harness: Harness, kind: Kind, seconds: float) -> None:
        await take(kind.mine(harness.connect(), "x"))
        begun = harness.time()
        waiting = harness.go(kind.rival(harness.connect(), "x").acquire(timeout=seconds))
        assert await waiting.result(within=seconds + 0.001) is None
        assert seconds <= harness.time() - begun < 0.5

    async def test_a_timeout_is_one_deadline_whatever_happens_meanwhile(self, harness: Harness, kind: Kind) -> None:
        """Others come and go before it: none of that starts its time again."""
        first = await take(kind.mine(harness.connect(), "x"))
        rival = await harness.queue_up(take(kind.rival(harness.connect(), "x")))
        begun = harness.time()
        poll_ttl = 0.4 if harness.manual_clock else 1.0  # or it gives up before it is seen
        late = harness.connect()
        waiting = await harness.queue_up(kind.mine(late, "x").acquire(timeout=poll_ttl), 2)
        await harness.pass_time(0.2)
        await first.release()
        await rival.result()
        assert await waiting.result(within=0.201) is None
        assert poll_ttl <= harness.time() - begun < poll_ttl + 0.6

    async def test_the_objects_own_timeout_applies_unless_another_is_given(self, harness: Harness, kind: Kind) -> None:
        await take(kind.mine(harness.connect(), "x"))
        rival = kind.rival(harness.connect(), "x", timeout=0.1)
        waiting = harness.go(rival.acquire())
        await harness.pass_time(0.101)
        assert await waiting.result() is None
        waiting = harness.go(rival.acquire(timeout=timedelta(milliseconds=300)))
        await harness.pass_time(0.15)
        assert not waiting.done
        assert await waiting.result(within=0.151) is None

    @pytest.mark.parametrize("for_ever", [None, -1])
    async def test_none_and_minus_one_wait_forever(self, harness: Harness, kind: Kind, for_ever: int | None) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        waiting = await harness.queue_up(take(kind.rival(harness.connect(), "x", timeout=0.05), timeout=for_ever))
        await harness.pass_time(0.2)
        assert not waiting.done
        await lease.release()
        assert (await waiting.result()).held

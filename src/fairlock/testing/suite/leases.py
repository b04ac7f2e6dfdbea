"""Leases: they are renewed, they end in time, and a client knows of a loss before another client can have the lock."""

import pytest

from ... import Event, aio
from ...errors import LeaseLost, StoreError
from ..faults import Faults
from ..harness import Harness
from .parametrize import Behaviours, Kind, enter_and_leave, every_kind, every_mutex, no_logging, take

SHORT = 0.5  # the shortest lease there is


@every_kind
class TestRenewing(Behaviours):
    async def test_a_lease_renews_itself(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(lease=harness.short_lease), "x"))
        await harness.pass_time(20 if harness.manual_clock else 2.2)
        assert lease.held
        assert [e.fence for e in (await harness.resource("x")).holders] == [lease.fence]
        assert await kind.rival(harness.connect(), "x").acquire(False) is None

    async def test_what_was_released_is_renewed_no_more(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        lock = kind.mine(harness.connect(lease=harness.short_lease, faults=faults), "x")
        async with lock:
            await harness.until(lambda: "Renew" in faults.sent, "it is renewed", within=0.3)
        faults.sent.clear()
        await harness.pass_time(20 if harness.manual_clock else 0.8)
        assert "Renew" not in faults.sent

    async def test_renewing_begins_again_after_a_rest(self, harness: Harness, kind: Kind) -> None:
        lock = kind.mine(harness.connect(lease=harness.short_lease), "x")
        await enter_and_leave(lock)
        await harness.pass_time(5 if harness.manual_clock else 1.2)
        lease = await take(lock)
        await harness.pass_time(20 if harness.manual_clock else 2.2)
        assert lease.held

    async def test_a_short_silence_of_the_store_is_survived_and_reported(self, harness: Harness, kind: Kind) -> None:
        kinds: list[str] = []
        faults = Faults()
        seconds = 1 if harness.manual_clock else 3
        client = harness.connect(lease=seconds, faults=faults, on_event=lambda event: kinds.append(event.kind))
        lease = await take(kind.mine(client, "x"))
        faults.cut = True
        await harness.until(lambda: "store_down" in kinds, "its silence is reported", within=0.5)
        faults.over()
        await harness.until(lambda: "store_up" in kinds, "its return is reported", within=1.0)
        assert lease.held
        assert [kind for kind in kinds if kind.startswith("store")] == ["store_down", "store_up"]

    async def test_the_keeper_continues_when_a_callback_raises(self, harness: Harness, kind: Kind) -> None:
        def stumble(_: object) -> None:
            raise ZeroDivisionError

        with no_logging():
            client = harness.connect(lease=harness.short_lease, on_event=stumble)
            lease = await take(kind.mine(client, "x"))
            await harness.pass_time(20 if harness.manual_clock else 2.2)
        assert lease.held


@every_kind
class TestLosing(Behaviours):
    async def test_a_loss_is_known_before_another_client_holds_the_lock(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        lease = await take(kind.mine(harness.connect(lease=SHORT, faults=faults), "x"))
        known: list[bool] = []

        async def rival() -> None:
            async with kind.rival(harness.connect(), "x"):
                known.append(lease.lost)

        waiting = await harness.queue_up(rival())
        faults.hang = True  # worse than an error: every request waits
        await waiting.result(within=1)
        faults.over()
        assert known == [True]

    async def test_a_loss_is_final(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        lease = await take(kind.mine(harness.connect(lease=SHORT, faults=faults), "x"))
        assert lease.remaining() > 0
        faults.cut = True
        await harness.pass_time(0.6)
        assert (lease.lost, lease.held, lease.reason, lease.remaining()) == (True, False, "unreachable", 0.0)
        faults.over()
        await harness.pass_time(0.6)
        assert (lease.lost, lease.held, lease.reason) == (True, False, "unreachable")
        with pytest.raises(LeaseLost, match="The lease on 'x' was lost: the store has not replied") as caught:
            lease.ensure_held()
        assert caught.value.reason == "unreachable"
        for asking in (lease.renew(), lease.downgrade(), lease.detach(60)):
            with pytest.raises(LeaseLost):
                await asking

    async def test_releasing_a_lost_lease_raises(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        lock = kind.mine(harness.connect(lease=SHORT, faults=faults), "x")
        await take(lock)
        faults.cut = True
        await harness.pass_time(0.6)
        with pytest.raises(LeaseLost, match="'x' was lost"):
            await lock.release()

    async def test_a_paused_holder_learns_of_its_loss_at_its_next_check(self, harness: Harness, kind: Kind) -> None:
        """Stopped past its lease, while another came and went: the keeper cannot have noticed, the clock shows it."""
        faults = Faults()
        lease = await take(kind.mine(harness.connect(lease=SHORT, faults=faults), "x"))
        faults.hang = True
        await harness.pass_time(0.6)
        async with kind.rival(harness.connect(), "x") as other:
            assert other.fence > lease.fence
        assert lease.lost
        faults.over()
        await harness.pass_time(0.3)
        assert lease.lost
        assert (await harness.resource("x")).holders == ()

    async def test_an_expired_lease_that_no_other_client_wanted_is_kept(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        lease = await take(kind.mine(harness.connect(lease=SHORT, faults=faults), "x"))
        faults.hang = True
        await harness.pass_time(0.6)
        faults.over()

        async def renewed() -> bool:
            return bool((await harness.resource("x")).holders)

        await harness.until(renewed, "the store has renewed it", within=0.2)
        await harness.pass_time(0.2)  # until its client knows: to ask the lease sooner would be to find it late
        assert lease.held
        assert await kind.rival(harness.connect(), "x").acquire(False) is None

    async def test_a_renewal_never_creates_a_lease_that_the_store_has_lost(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(lease=harness.short_lease), "x"))
        await harness.forget("x")
        await harness.until(lambda: lease.lost, "its loss is known", within=0.4)
        assert (await harness.resource("x")).holders == ()
        assert (lease.lost, lease.reason) == (True, "store_reset")
        later = await take(kind.rival(harness.connect(), "x"))
        assert later.fence > lease.fence

    # -- leaving

    async def test_a_clean_body_gets_the_loss_when_it_ends(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        lock = kind.mine(harness.connect(lease=SHORT, faults=faults), "x")
        with pytest.raises(LeaseLost, match="'x' was lost"):
            async with lock.hold():
                faults.cut = True
                await harness.pass_time(0.6)

    async def test_the_bodys_own_exception_is_not_masked(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        lock = kind.mine(harness.connect(lease=SHORT, faults=faults), "x")
        with pytest.raises(ZeroDivisionError) as caught:
            async with lock:
                faults.cut = True
                try:
                    await harness.pass_time(0.6)
                finally:
                    raise ZeroDivisionError
        faults.over()
        assert "The lease on 'x' was lost" in "".join(caught.value.__notes__)

    async def test_a_store_that_is_down_at_the_end_of_with_gets_the_release_later(
        self, harness: Harness, kind: Kind, caplog: pytest.LogCaptureFixture
    ) -> None:
        faults = Faults()
        lock = kind.mine(harness.connect(faults=faults), "x")
        async with lock as lease:
            faults.cut = True
        assert not lease.held
        assert "did not reach the store" in caplog.text
        faults.over()
        await harness.pass_time(0.3 if harness.manual_clock else 0)
        await harness.empty("x")

    @pytest.mark.parametrize("by", ["its caller", "the keeper"])
    async def test_a_release_that_fails_raises_and_may_be_repeated(
        self, harness: Harness, kind: Kind, by: str
    ) -> None:
        faults = Faults()
        lease = await take(kind.mine(harness.connect(faults=faults), "x"))
        faults.cut = True
        with pytest.raises(StoreError):
            await lease.release()
        assert not lease.held, "the message may have arrived"
        faults.over()
        if by == "the keeper":
            await harness.pass_time(1 if harness.manual_clock else 0)
            await harness.empty("x")
        await lease.release()
        assert not lease.lost
        assert (await harness.resource("x")).holders == ()

    # -- callbacks

    async def test_on_lost_is_called_once_with_the_lease(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        called: list[tuple[str, bool, str | None]] = []

        def on_lost(lease: aio.Lease) -> None:
            called.append((lease.name, lease.lost, lease.reason))

        lock = kind.mine(harness.connect(lease=SHORT, faults=faults), "x", on_lost=on_lost)
        await take(lock)
        faults.hang = True
        await harness.pass_time(0.6)
        faults.over()
        await harness.pass_time(0.2)
        assert called == [("x", True, "expired")]

    async def test_on_lost_is_not_called_for_what_was_released(self, harness: Harness, kind: Kind) -> None:
        called: list[object] = []
        async with kind.mine(harness.connect(lease=SHORT), "x", on_lost=called.append):
            await harness.pass_time(0.3)
        await harness.pass_time(0.6)
        assert called == []

    async def test_a_slow_or_failing_on_lost_does_not_hold_up_the_keeper(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect(lease=SHORT)
        called: list[str] = []

        def fail(lease: aio.Lease) -> None:
            called.append(lease.name)
            raise ZeroDivisionError

        with no_logging():
            await take(kind.mine(client, "x", on_lost=fail, max_hold=0.2))
            other = await take(kind.mine(client, "y"))
            await harness.pass_time(20 if harness.manual_clock else 0.8)
        assert called == ["x"]
        assert other.held


@every_mutex
class TestMaxHoldAndAtLeast(Behaviours):
    async def test_max_hold_ends_what_would_be_renewed_forever(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(lease=SHORT), "x", max_hold=0.7))
        waiting = harness.go(take(kind.rival(harness.connect(), "x")))
        await harness.pass_time(0.6)
        assert lease.held
        assert lease.remaining() <= 0.1
        assert (await waiting.result(within=0.3)).held
        assert (lease.lost, lease.reason) == (True, "max_hold")
        with pytest.raises(LeaseLost, match="longer than max_hold"):
            lease.ensure_held()

    async def test_max_hold_counts_for_each_holder_separately(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect(lease=SHORT)
        lock = kind.mine(client, "x", max_hold=0.5)
        first = await take(lock)
        waiting = harness.go(take(lock))
        await harness.pass_time(0.05)
        await first.release()
        second = await waiting.result()
        assert second.remaining() > 0.3
        await harness.pass_time(0.55)
        assert (second.lost, second.reason) == (True, "max_hold")

    async def test_at_least_keeps_it_closed_after_an_early_release(self, harness: Harness, kind: Kind) -> None:
        lock = kind.mine(harness.connect(), "x", at_least=0.4)
        begun = harness.time()
        async with lock as lease:
            pass
        assert not lease.held
        rival = kind.rival(harness.connect(), "x")
        assert await rival.acquire(False) is None
        waiting = harness.go(take(rival))
        assert (await waiting.result(within=0.41)).held
        assert 0.39 <= harness.time() - begun < 2

    async def test_at_least_outlives_its_client(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect()
        await enter_and_leave(kind.mine(client, "x", at_least=0.4))
        await client.close()
        assert await kind.rival(harness.connect(), "x").acquire(False) is None

    async def test_at_least_is_over_when_it_was_held_longer(self, harness: Harness, kind: Kind) -> None:
        async with kind.mine(harness.connect(), "x", at_least=0.1):
            await harness.pass_time(0.15)
        assert await kind.rival(harness.connect(), "x").acquire(False)


class TestEvents(Behaviours):
    async def test_events_come_in_their_order(self, harness: Harness) -> None:
        events: list[Event] = []
        holder = await take(harness.connect().lock("x"))
        waiting = await harness.queue_up(take(harness.connect(on_event=events.append, lease=SHORT).lock("x")))
        await holder.release()
        lease = await waiting.result()
        await harness.pass_time(0.2)
        await lease.renew()
        await lease.release()
        kinds = [event.kind for event in events]
        assert [kind for at, kind in enumerate(kinds) if kind not in kinds[:at]] == [
            "waiting", "acquired", "renewed", "released",
        ]  # fmt: skip
        assert {event.name for event in events} == {"x"}
        acquired = next(event for event in events if event.kind == "acquired")
        assert acquired.fence == lease.fence
        assert acquired.ticket not in ("", lease.ticket), "shortened: it cannot be used to release"

    async def test_a_loss_is_an_event_and_logged(self, harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
        events: list[Event] = []
        faults = Faults()
        client = harness.connect(on_event=events.append, lease=SHORT, faults=faults)
        lease = await take(client.lock("x"))
        faults.cut = True
        await harness.pass_time(0.6)
        assert lease.lost
        assert [event.kind for event in events if event.name] == ["acquired", "lost"]
        logged = [record for record in caplog.records if getattr(record, "event", None) is not None]
        assert "lost" in [record.event.kind for record in logged]  # type: ignore[attr-defined]

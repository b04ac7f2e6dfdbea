"""Asking holders to release, and the audit lines of what operators did."""

import pytest

from ... import Event, ReleaseRequest, aio
from ...errors import ConfigError
from ...rules.locks.audit_lines import NEWEST
from ..harness import Harness
from .parametrize import Behaviours, no_logging, take


async def _asked(harness: Harness, lease: aio.Lease, reason: str) -> None:
    """Wait until this lease is asked for this reason: some stores notify its client, others are read once a second."""

    def check() -> bool:
        return lease.asked_to_release is not None and lease.asked_to_release.reason == reason

    await harness.until(check, f"{lease!r} is asked because of {reason!r}", within=1.5)


class TestAsking(Behaviours):
    async def test_a_holder_learns_who_asks_and_holds_on(self, harness: Harness) -> None:
        """In the first second of a hold; a third of this lease would be half a minute."""
        events: list[Event] = []
        called: list[tuple[str, object]] = []
        client = harness.connect(lease=90, on_event=events.append)
        lock = client.lock("x", on_asked=lambda lease: called.append((lease.name, lease.asked_to_release)))
        lease = await take(lock)
        waiting = await harness.queue_up(take(harness.connect().lock("x")))
        assert lease.asked_to_release is None
        assert await harness.connect(owner="operator").ask("x", reason="the disk is full") == (lease.ticket,)
        request = ReleaseRequest("operator", "the disk is full")
        assert (await harness.resource("x")).holders[0].asked == request
        await _asked(harness, lease, "the disk is full")
        await harness.pass_time(1.2)
        assert lease.held and lease.asked_to_release == request
        assert called == [("x", request)]
        (asked,) = [event for event in events if event.kind == "asked"]
        assert (asked.name, asked.fence) == ("x", lease.fence)
        assert asked.detail == "operator asks to release it (the disk is full)"
        assert not waiting.done
        await lease.release()
        new = await waiting.result(within=2)
        assert new.asked_to_release is None
        assert (await harness.resource("x")).holders[0].asked is None

    async def test_later_in_a_hold_and_another_reason(self, harness: Harness) -> None:
        called: list[object] = []
        lease = await take(
            harness.connect(lease=90).lock("x", on_asked=lambda lease: called.append(lease.asked_to_release))
        )
        await harness.pass_time(1.7)
        operator = harness.connect(owner="operator")
        await operator.ask("x", reason="please")
        await _asked(harness, lease, "please")
        assert await operator.ask("x", reason="please") == (lease.ticket,)
        assert await operator.ask("x", reason="now, please") == (lease.ticket,)
        await _asked(harness, lease, "now, please")
        await harness.pass_time(0.3)
        assert called == [ReleaseRequest("operator", "please"), ReleaseRequest("operator", "now, please")]
        assert lease.held

    async def test_a_failing_on_asked_does_not_hold_up_the_keeper(self, harness: Harness) -> None:
        def fail(lease: aio.Lease) -> None:
            raise SystemExit("not even by this")

        lease = await take(harness.connect(lease=harness.short_lease).lock("x", on_asked=fail))
        with no_logging():
            await harness.connect().ask("x", reason="test")
            await _asked(harness, lease, "test")
            await harness.pass_time(2)
        assert lease.held

    async def test_all_holders_of_a_semaphore_or_one_by_its_ticket(self, harness: Harness) -> None:
        leases = [await take(harness.connect(lease=90).semaphore("x", 2)) for _ in range(2)]
        shown = (await harness.resource("x")).holders[1]
        assert await harness.connect().ask("x", reason="one", ticket=shown.ticket) == (leases[1].ticket,)
        await _asked(harness, leases[1], "one")
        assert leases[0].asked_to_release is None
        assert await harness.connect().ask("x", reason="all") == tuple(lease.ticket for lease in leases)
        for lease in leases:
            await _asked(harness, lease, "all")

    async def test_a_detached_lease_shows_it_and_an_attached_one_has_it(self, harness: Harness) -> None:
        ticket = await (await take(harness.connect().lock("x"))).detach(90)
        assert await harness.connect(owner="operator").ask("x", reason="cleaning up") == (ticket,)
        assert (await harness.resource("x")).holders[0].asked == ReleaseRequest("operator", "cleaning up")
        attached = await harness.connect().attach("x", ticket)
        assert attached.asked_to_release == ReleaseRequest("operator", "cleaning up")
        await attached.release()

    async def test_what_is_asked_for_is_not_passed_on_inside_the_process(self, harness: Harness) -> None:
        client = harness.connect(lease=90)
        lease = await take(client.lock("x"))
        here = harness.go(take(client.lock("x")), "here")
        other = harness.go(take(harness.connect().lock("x")), "there")
        await harness.in_queue("x", 1)
        await harness.connect().ask("x", reason="test")
        await _asked(harness, lease, "test")
        await harness.in_queue("x", 2)
        await lease.release()
        theirs = await other.result(within=2)
        assert not here.done, "it would have been passed on"
        await theirs.release()
        assert (await here.result(within=2)).asked_to_release is None

    async def test_an_eviction_follows_a_request(self, harness: Harness) -> None:
        lease = await take(harness.connect(lease=90).lock("x"))
        await harness.connect().ask("x", reason="please")
        await _asked(harness, lease, "please")
        await harness.connect().evict("x", reason="no reply", at_once=True)
        await harness.until(lambda: lease.lost, "its loss is known", within=1.5)
        assert lease.reason == "evicted"

    async def test_nobody_is_asked_without_a_reason_or_where_nobody_holds_it(self, harness: Harness) -> None:
        with pytest.raises(ConfigError, match="needs a reason"):
            await harness.connect().ask("x", reason="")
        assert await harness.connect().ask("x", reason="test") == ()
        lease = await take(harness.connect().lock("x"))
        assert await harness.connect().ask("x", reason="test", ticket="nobody's") == ()
        assert (await harness.resource("x")).holders[0].asked is None
        await lease.release()
        assert await harness.connect().audit("x") == ()


class TestAudit(Behaviours):
    async def test_the_newest_line_is_the_first(self, harness: Harness) -> None:
        holder, operator = harness.connect(owner="worker", lease=90), harness.connect(owner="operator")
        assert await operator.audit("x") == ()
        lease = await take(holder.semaphore("x", 1))
        before = (await operator.snapshot("x")).now
        await operator.ask("x", reason="please")
        await operator.resize("x", 3)
        await operator.evict("x", reason="no reply")
        lines = await harness.connect().audit("x")
        shown = (await operator.snapshot("x")).resources[0].holders[0].ticket
        assert [line[1:] for line in lines] == [
            ("evicted", "operator", "no reply", "worker", shown),
            ("resized", "operator", "to 3 slots", "", ""),
            ("asked", "operator", "please", "worker", shown),
        ]
        times = [line.at for line in reversed(lines)]
        assert times == sorted(times) and before - 1 <= times[0] <= (await operator.snapshot("x")).now + 1
        assert await operator.audit("y") == ()
        assert [r.name for r in (await operator.snapshot(idle=True)).resources] == ["x"], "audit lines are no locks"
        with pytest.raises(Exception, match="evicted"):
            while True:
                await harness.pass_time(0.25)
                lease.ensure_held()

    async def test_the_newest_hundred_are_kept(self, harness: Harness) -> None:
        operator = harness.connect(owner="öperator")
        for number in range(NEWEST + 3):
            await operator.resize("x", number + 1)
        lines = await operator.audit("x")
        assert len(lines) == NEWEST
        assert [lines[0].reason, lines[-1].reason] == [f"to {NEWEST + 3} slots", "to 4 slots"]
        assert {line.by for line in lines} == {"öperator"}

"""Evicting holders: one, by a ticket, by a pattern, at once."""

import pytest

from ... import Event
from ...errors import ConfigError, LeaseLost
from ..harness import Harness
from .parametrize import Behaviours, Kind, every_mutex, take


@every_mutex
class TestEvicting(Behaviours):
    async def test_an_evicted_holder_is_not_renewed_and_learns_the_reason(self, harness: Harness, kind: Kind) -> None:
        events: list[Event] = []
        client = harness.connect(lease=0.5, on_event=events.append)
        lease = await take(kind.mine(client, "x"))
        waiting = await harness.queue_up(take(kind.rival(harness.connect(), "x")))
        met = await harness.connect(owner="operator").evict("x", reason="it hangs")
        assert met == (lease.ticket,)
        assert (await waiting.result(within=0.6)).held
        assert (lease.lost, lease.reason) == (True, "evicted")
        with pytest.raises(LeaseLost, match=r"operator evicted its holder \(it hangs\)") as caught:
            lease.ensure_held()
        assert caught.value.reason == "evicted"
        assert "evicted" in [event.kind for event in events]

    async def test_the_holder_is_notified_within_seconds_whatever_its_lease(self, harness: Harness, kind: Kind) -> None:
        """In the first second of a hold, and later; a third of this lease would be half a minute."""
        first = await take(kind.mine(harness.connect(lease=90), "first"))
        await harness.connect(owner="operator").evict("first", reason="right away")
        later = await take(kind.mine(harness.connect(lease=90), "later"))
        await harness.pass_time(1.7)
        await harness.connect(owner="operator").evict("later", reason="now")
        await harness.until(lambda: first.lost and later.lost, "both holders know", within=4)
        assert (first.reason, later.reason) == ("evicted", "evicted")

    async def test_an_attached_holder_is_notified_within_seconds(self, harness: Harness, kind: Kind) -> None:
        taken = await take(kind.mine(harness.connect(), "x"))
        attached = await harness.connect().attach("x", await taken.detach(90))
        await harness.connect().evict("x", reason="right away")
        await harness.until(lambda: attached.lost, "its holder knows", within=4)
        assert attached.reason == "evicted"

    async def test_the_next_waiter_holds_it_when_the_evicted_holder_has_released(
        self, harness: Harness, kind: Kind
    ) -> None:
        lease = await take(kind.mine(harness.connect(lease=60), "x"))
        waiting = await harness.queue_up(take(kind.rival(harness.connect(), "x")))
        await harness.connect().evict("x", reason="it hangs")
        await harness.until(lambda: lease.lost, "its holder knows", within=4)
        assert not waiting.done, "the holder may be at work"
        with pytest.raises(LeaseLost, match="it hangs"):
            await lease.release()
        assert (await waiting.result(within=2)).held, "and not when the margin of its lease is over"

    async def test_at_once_means_now(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(lease=harness.short_lease), "x"))
        await harness.connect().evict("x", reason="gone for good", at_once=True)
        assert await kind.rival(harness.connect(), "x").acquire(False)
        await harness.until(lambda: lease.lost, "its holder knows", within=0.3)
        assert lease.reason == "evicted"

    async def test_a_waiter_can_be_evicted_by_its_ticket(self, harness: Harness, kind: Kind) -> None:
        await take(kind.mine(harness.connect(), "x"))
        waiting = await harness.queue_up(kind.rival(harness.connect(), "x").acquire(timeout=30))
        (waiter,) = (await harness.resource("x")).queue
        await harness.connect(owner="operator").evict("x", reason="not today", ticket=waiter.ticket)
        with pytest.raises(LeaseLost, match="operator: not today") as caught:
            await waiting.result(within=2)
        assert caught.value.reason == "evicted"
        assert (await harness.resource("x")).queue == ()

    async def test_others_are_not_met(self, harness: Harness, kind: Kind) -> None:
        slots = harness.connect(lease=2).semaphore("many", 3)
        one, other = await take(slots), await take(slots)
        shown = [e.ticket for e in (await harness.resource("many")).holders if e.fence == one.fence]
        await harness.connect().evict("many", reason="this one", ticket=shown[0], at_once=True)
        await harness.pass_time(1.2)
        assert (one.lost, other.lost) == (True, False)

    async def test_without_a_reason_no_holder_is_evicted(self, harness: Harness, kind: Kind) -> None:
        with pytest.raises(ConfigError, match="reason"):
            await harness.connect().evict("x", reason="")
        assert await harness.connect().evict("x", reason="there is no holder") == ()

    async def test_a_pattern_affects_all_names_that_match_and_no_other(self, harness: Harness, kind: Kind) -> None:
        client, other_namespace = harness.connect(lease=30), harness.connect(lease=30, namespace="other")
        met = [await take(kind.mine(client, name)) for name in ("web-1", "web-*", "web-")]
        spared = [await take(kind.mine(client, name)) for name in ("web", "Web-1", "a web-1", "db-1")]
        spared.append(await take(kind.mine(other_namespace, "web-1")))
        await (await take(kind.mine(client, "web-free"))).release()
        tickets = await harness.connect().evict("web-*", reason="all of them", at_once=True, pattern=True)
        assert sorted(tickets) == sorted(lease.ticket for lease in met)
        for name in ("web-1", "web-*", "web-"):
            assert await kind.rival(harness.connect(), name).acquire(False)
        for lease in spared:
            await lease.renew()
        assert await harness.connect().evict("nothing-*", reason="there is no holder", pattern=True) == ()

    async def test_without_pattern_a_star_is_a_character_like_others(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect(lease=30)
        spared, met = await take(kind.mine(client, "web-1")), await take(kind.mine(client, "web-*"))
        assert await harness.connect().evict("web-?", reason="no such name", at_once=True) == ()
        assert await harness.connect().evict("web-*", reason="this one", at_once=True) == (met.ticket,)
        assert await harness.connect().evict("web-*", reason="released meanwhile", at_once=True) == ()
        await spared.renew()

    async def test_a_pattern_and_a_ticket_are_refused_together(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        with pytest.raises(ConfigError, match="a ticket or pattern=True, not both"):
            await harness.connect().evict("*", reason="which?", ticket=lease.ticket, pattern=True)
        with pytest.raises(ConfigError, match="reason"):
            await harness.connect().evict("*", reason="", pattern=True)
        await lease.renew()

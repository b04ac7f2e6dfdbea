"""Inspecting and intervening: locked, snapshot, evict; and leases without a process: detach and attach."""

import pytest

from ... import Event
from ...errors import ConfigError, LeaseLost, LockTimeout, NotHeld
from ..faults import Faults
from ..harness import Harness
from .parametrize import Behaviours, Kind, every_kind, every_mutex, take


@every_kind
class TestInspecting(Behaviours):
    async def test_locked_returns_whether_a_try_would_be_refused(self, harness: Harness, kind: Kind) -> None:
        mine, rival = kind.mine(harness.connect(), "x"), kind.rival(harness.connect(), "x")
        assert await rival.locked() is False
        async with mine:
            assert await rival.locked() is True
        assert await rival.locked() is False

    async def test_asking_changes_nothing(self, harness: Harness, kind: Kind) -> None:
        await take(kind.mine(harness.connect(), "x"))
        waiting = harness.go(kind.rival(harness.connect(), "x").acquire(timeout=5))
        await harness.in_queue("x", 1)
        before = await harness.resource("x")
        for _ in range(3):
            assert await kind.rival(harness.connect(), "x").locked()
            await harness.observer.snapshot()
        after = await harness.resource("x")
        assert [e.ticket for e in after.queue] == [e.ticket for e in before.queue]
        assert (after.fence, len(after.holders)) == (before.fence, 1)
        del waiting

    async def test_locked_does_not_count_what_has_expired(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        await take(kind.mine(harness.connect(lease=0.5, faults=faults), "x"))
        faults.cut = True
        await harness.pass_time(0.6)
        assert await kind.rival(harness.connect(), "x").locked() is False
        faults.over()

    async def test_a_snapshot_shows_holders_and_waiters(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(owner="holder"), "x", note="working"))
        harness.go(kind.rival(harness.connect(owner="waiter"), "x", note="wanting").acquire(timeout=5))
        await harness.in_queue("x", 1)
        await harness.pass_time(0.1)
        snapshot = await harness.observer.snapshot("x")
        assert snapshot.store == harness.observer.store
        (resource,) = snapshot.resources
        assert (resource.name, resource.fence) == ("x", lease.fence if resource.kind == "semaphore" else resource.fence)
        (holders,) = resource.holders
        assert (holders.owner, holders.note, holders.fence) == ("holder", "working", lease.fence)
        assert 0.1 <= holders.held_for < 10
        assert 0 < holders.expires_in <= 30
        (waiting,) = resource.queue
        assert (waiting.owner, waiting.note) == ("waiter", "wanting")
        assert 0.1 <= waiting.waited < 10
        assert waiting.expires_in > 0
        assert lease.ticket not in repr(snapshot), "a ticket is the right to release: it is shown shortened"

    async def test_a_lease_that_has_run_out_is_not_shown_as_held(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        lease = await take(kind.mine(harness.connect(lease=0.5, owner="late", faults=faults), "x"))
        faults.cut = True
        await harness.pass_time(0.6)
        resource = await harness.resource("x")
        assert resource.holders == ()
        (late,) = resource.expired
        assert (late.owner, late.fence) == ("late", lease.fence)
        assert late.expires_in <= 0
        faults.over()

    async def test_a_lock_that_only_stays_closed_has_no_holder(self, harness: Harness, kind: Kind) -> None:
        async with kind.mine(harness.connect(owner="gone"), "x", at_least=300):
            assert [one.owner for one in (await harness.resource("x")).holders] == ["gone"]
        assert [one.owner for one in (await harness.resource("x")).holders] == [""]
        with pytest.raises(LockTimeout, match=r"^'x' is kept closed for another \d+ s\.$") as late:
            async with kind.rival(harness.connect(), "x").hold(timeout=0):
                pass
        assert late.value.holders == ()


class TestSnapshots(Behaviours):
    async def test_a_pattern_chooses_names(self, harness: Harness) -> None:
        client = harness.connect()
        for name in ("a:1", "a:2", "b:1", "a*"):
            await take(client.lock(name))
        patterns = ("a:*", "?:1", "b:1", "c", "*")
        names = [[r.name for r in (await harness.observer.snapshot(p)).resources] for p in patterns]
        assert names == [["a:1", "a:2"], ["a:1", "b:1"], ["b:1"], [], ["a*", "a:1", "a:2", "b:1"]]

    async def test_kinds_are_distinguished(self, harness: Harness) -> None:
        client = harness.connect()
        await take(client.lock("l"))
        await take(client.rwlock("r").read())
        await take(client.semaphore("s", 4))
        resources = (await harness.observer.snapshot()).resources
        assert [(r.name, r.kind) for r in resources] == [("l", "lock"), ("r", "rwlock"), ("s", "semaphore")]
        assert resources[2].capacity == 4

    async def test_ping_returns_how_long_the_store_takes(self, harness: Harness) -> None:
        assert 0 <= await harness.observer.ping() < 5

    async def test_namespaces_keep_names_apart(self, harness: Harness) -> None:
        one, two = harness.connect(namespace="one"), harness.connect(namespace="two")
        await take(one.lock("x"))
        async with two.lock("x"):
            assert [r.name for r in (await two.snapshot()).resources] == ["x"]
        assert await one.lock("x").acquire(False) is None
        assert await harness.connect(namespace="one").lock("x").acquire(False) is None
        assert await harness.connect().lock("x").acquire(False)
        assert [r.name for r in (await harness.connect().snapshot()).resources] == ["x"]


@every_mutex
class TestEvicting(Behaviours):
    async def test_an_evicted_holder_is_not_renewed_and_learns_the_reason(self, harness: Harness, kind: Kind) -> None:
        events: list[Event] = []
        client = harness.connect(lease=0.5, on_event=events.append)
        lease = await take(kind.mine(client, "x"))
        waiting = harness.go(take(kind.rival(harness.connect(), "x")))
        await harness.in_queue("x", 1)
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
        for _ in range(16):
            await harness.pass_time(0.25)
            if first.lost and later.lost:
                break
        assert (first.reason, later.reason) == ("evicted", "evicted")

    async def test_an_attached_holder_is_notified_within_seconds(self, harness: Harness, kind: Kind) -> None:
        taken = await take(kind.mine(harness.connect(), "x"))
        attached = await harness.connect().attach("x", await taken.detach(90))
        await harness.connect().evict("x", reason="right away")
        for _ in range(16):
            await harness.pass_time(0.25)
            if attached.lost:
                break
        assert attached.reason == "evicted"

    async def test_the_next_waiter_holds_it_when_the_evicted_holder_has_released(
        self, harness: Harness, kind: Kind
    ) -> None:
        lease = await take(kind.mine(harness.connect(lease=60), "x"))
        waiting = harness.go(take(kind.rival(harness.connect(), "x")))
        await harness.in_queue("x", 1)
        await harness.connect().evict("x", reason="it hangs")
        for _ in range(16):
            await harness.pass_time(0.25)
            if lease.lost:
                break
        assert not waiting.done, "the holder may be at work"
        with pytest.raises(LeaseLost, match="it hangs"):
            await lease.release()
        assert (await waiting.result(within=2)).held, "and not when the margin of its lease is over"

    async def test_at_once_means_now(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(lease=0.5), "x"))
        await harness.connect().evict("x", reason="gone for good", at_once=True)
        assert await kind.rival(harness.connect(), "x").acquire(False)
        await harness.pass_time(0.3)
        assert (lease.lost, lease.reason) == (True, "evicted")

    async def test_a_waiter_can_be_evicted_by_its_ticket(self, harness: Harness, kind: Kind) -> None:
        await take(kind.mine(harness.connect(), "x"))
        waiting = harness.go(kind.rival(harness.connect(), "x").acquire(timeout=30))
        await harness.in_queue("x", 1)
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
        assert await harness.connect().evict("x", reason="nobody is there") == ()

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
        assert await harness.connect().evict("nothing-*", reason="nobody is there", pattern=True) == ()

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


@every_kind
class TestDetaching(Behaviours):
    async def test_what_is_detached_lives_on_without_its_client(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect()
        lease = await take(kind.mine(client, "x"))
        ticket = await lease.detach(60)
        assert (ticket, lease.held, lease.lost) == (lease.ticket, False, False)
        await client.close()
        assert await kind.rival(harness.connect(), "x").acquire(False) is None

    async def test_it_ends_if_no_client_attaches_it(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        await lease.detach(0.5)
        assert (await harness.go(take(kind.rival(harness.connect(), "x"))).result(within=0.51)).held

    async def test_any_client_with_the_ticket_takes_it_over(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x"))
        ticket = await lease.detach(0.5)
        taken = await harness.connect().attach("x", ticket)
        assert (taken.held, taken.fence, taken.ticket, taken.name) == (True, lease.fence, ticket, "x")
        await harness.pass_time(20 if harness.manual_clock else 1)
        assert taken.held, "it is renewed again"
        assert await kind.rival(harness.connect(), "x").acquire(False) is None
        await taken.release()
        assert await kind.rival(harness.connect(), "x").acquire(False)

    async def test_a_ticket_without_a_grant_is_not_attached(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect()
        with pytest.raises(NotHeld):
            await client.attach("x", "0" * 32)
        lease = await take(kind.mine(client, "x"))
        ticket = await lease.detach(60)
        await harness.connect().evict("x", reason="cleaning up", at_once=True)
        with pytest.raises(LeaseLost, match="evicted"):
            await client.attach("x", ticket)

    async def test_other_waiters_of_the_same_client_keep_waiting(self, harness: Harness, kind: Kind) -> None:
        """Detaching ends the passing on: the lock is not theirs to pass any more."""
        client = harness.connect()
        lease = await take(kind.mine(client, "x"))
        waiting = harness.go(take(kind.rival(client, "x")))
        await harness.pass_time(0.05)
        ticket = await lease.detach(60)
        await harness.in_queue("x", 1)
        assert not waiting.done
        taken = await harness.connect().attach("x", ticket)
        await taken.release()
        assert (await waiting.result()).fence > lease.fence

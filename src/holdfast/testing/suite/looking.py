"""Looking and intervening: locked, snapshot, evict; and leases that live on without a process: detach and attach."""

import pytest

from ... import Event
from ...errors import ConfigError, LeaseLost, LockTimeout, NotHeld
from ..faults import Faults
from ..world import World
from .stage import Behaviours, Kind, every_kind, every_mutex, take


@every_kind
class TestLooking(Behaviours):
    async def test_locked_says_whether_a_try_would_be_refused(self, world: World, kind: Kind) -> None:
        mine, rival = kind.mine(world.connect(), "x"), kind.rival(world.connect(), "x")
        assert await rival.locked() is False
        async with mine:
            assert await rival.locked() is True
        assert await rival.locked() is False

    async def test_asking_changes_nothing(self, world: World, kind: Kind) -> None:
        await take(kind.mine(world.connect(), "x"))
        waiting = world.go(kind.rival(world.connect(), "x").acquire(timeout=5))
        await world.in_line("x", 1)
        before = await world.resource("x")
        for _ in range(3):
            assert await kind.rival(world.connect(), "x").locked()
            await world.eye.snapshot()
        after = await world.resource("x")
        assert [e.ticket for e in after.line] == [e.ticket for e in before.line]
        assert (after.fence, len(after.inside)) == (before.fence, 1)
        del waiting

    async def test_locked_does_not_count_what_has_expired(self, world: World, kind: Kind) -> None:
        faults = Faults()
        await take(kind.mine(world.connect(lease=0.5, faults=faults), "x"))
        faults.cut = True
        await world.pass_time(0.6)
        assert await kind.rival(world.connect(), "x").locked() is False
        faults.over()

    async def test_a_snapshot_shows_who_is_inside_and_who_waits(self, world: World, kind: Kind) -> None:
        lease = await take(kind.mine(world.connect(owner="holder"), "x", note="working"))
        world.go(kind.rival(world.connect(owner="waiter"), "x", note="wanting").acquire(timeout=5))
        await world.in_line("x", 1)
        await world.pass_time(0.1)
        snapshot = await world.eye.snapshot("x")
        assert snapshot.store == world.eye.store
        (resource,) = snapshot.resources
        assert (resource.name, resource.fence) == ("x", lease.fence if resource.kind == "semaphore" else resource.fence)
        (inside,) = resource.inside
        assert (inside.owner, inside.note, inside.fence) == ("holder", "working", lease.fence)
        assert 0.1 <= inside.held_for < 10
        assert 0 < inside.left <= 30
        (waiting,) = resource.line
        assert (waiting.owner, waiting.note) == ("waiter", "wanting")
        assert 0.1 <= waiting.waited < 10
        assert waiting.left > 0
        assert lease.ticket not in repr(snapshot), "a ticket is the right to release: it is shown shortened"


    async def test_a_lease_that_has_run_out_is_not_shown_as_held(self, world: World, kind: Kind) -> None:
        faults = Faults()
        lease = await take(kind.mine(world.connect(lease=0.5, owner="late", faults=faults), "x"))
        faults.cut = True
        await world.pass_time(0.6)
        resource = await world.resource("x")
        assert resource.inside == ()
        (late,) = resource.expired
        assert (late.owner, late.fence) == ("late", lease.fence)
        assert late.left <= 0
        faults.over()

    async def test_what_only_stays_closed_names_nobody_as_its_holder(self, world: World, kind: Kind) -> None:
        async with kind.mine(world.connect(owner="gone"), "x", at_least=300):
            assert [one.owner for one in (await world.resource("x")).inside] == ["gone"]
        assert [one.owner for one in (await world.resource("x")).inside] == [""]
        with pytest.raises(LockTimeout, match=r"^'x' is kept closed for another \d+ s\.$") as late:
            async with kind.rival(world.connect(), "x").hold(timeout=0):
                pass
        assert late.value.holders == ()


class TestSnapshots(Behaviours):
    async def test_a_pattern_chooses_names(self, world: World) -> None:
        client = world.connect()
        for name in ("a:1", "a:2", "b:1", "a*"):
            await take(client.lock(name))
        names = [[r.name for r in (await world.eye.snapshot(p)).resources] for p in ("a:*", "?:1", "b:1", "c", "*")]
        assert names == [["a:1", "a:2"], ["a:1", "b:1"], ["b:1"], [], ["a*", "a:1", "a:2", "b:1"]]

    async def test_kinds_are_told_apart(self, world: World) -> None:
        client = world.connect()
        await take(client.lock("l"))
        await take(client.rwlock("r").read())
        await take(client.semaphore("s", 4))
        resources = (await world.eye.snapshot()).resources
        assert [(r.name, r.kind) for r in resources] == [("l", "lock"), ("r", "rwlock"), ("s", "semaphore")]
        assert resources[2].capacity == 4

    async def test_ping_says_how_long_the_store_takes(self, world: World) -> None:
        assert 0 <= await world.eye.ping() < 5

    async def test_namespaces_keep_names_apart(self, world: World) -> None:
        one, two = world.connect(namespace="one"), world.connect(namespace="two")
        await take(one.lock("x"))
        async with two.lock("x"):
            assert [r.name for r in (await two.snapshot()).resources] == ["x"]
        assert await one.lock("x").acquire(False) is None
        assert await world.connect(namespace="one").lock("x").acquire(False) is None
        assert await world.connect().lock("x").acquire(False)
        assert [r.name for r in (await world.connect().snapshot()).resources] == ["x"]


@every_mutex
class TestEvicting(Behaviours):
    async def test_one_who_is_evicted_is_renewed_no_more_and_told_why(self, world: World, kind: Kind) -> None:
        told: list[Event] = []
        client = world.connect(lease=0.5, on_event=told.append)
        lease = await take(kind.mine(client, "x"))
        waiting = world.go(take(kind.rival(world.connect(), "x")))
        await world.in_line("x", 1)
        met = await world.connect(owner="operator").evict("x", reason="it hangs")
        assert met == (lease.ticket,)
        assert (await waiting.result(within=0.6)).held
        assert (lease.lost, lease.reason) == (True, "evicted")
        with pytest.raises(LeaseLost, match=r"operator evicted its holder \(it hangs\)") as caught:
            lease.ensure_held()
        assert caught.value.reason == "evicted"
        assert "evicted" in [event.kind for event in told]

    async def test_the_holder_is_told_within_seconds_whatever_its_lease(self, world: World, kind: Kind) -> None:
        """In the first second of a hold, and later; a third of this lease would be half a minute."""
        first = await take(kind.mine(world.connect(lease=90), "first"))
        await world.connect(owner="operator").evict("first", reason="right away")
        later = await take(kind.mine(world.connect(lease=90), "later"))
        await world.pass_time(1.7)
        await world.connect(owner="operator").evict("later", reason="now")
        for _ in range(16):
            await world.pass_time(0.25)
            if first.lost and later.lost:
                break
        assert (first.reason, later.reason) == ("evicted", "evicted")

    async def test_one_who_has_attached_is_told_within_seconds(self, world: World, kind: Kind) -> None:
        taken = await take(kind.mine(world.connect(), "x"))
        attached = await world.connect().attach("x", await taken.detach(90))
        await world.connect().evict("x", reason="right away")
        for _ in range(16):
            await world.pass_time(0.25)
            if attached.lost:
                break
        assert attached.reason == "evicted"

    async def test_the_next_one_is_inside_as_soon_as_the_evicted_holder_is_out(self, world: World, kind: Kind) -> None:
        lease = await take(kind.mine(world.connect(lease=60), "x"))
        waiting = world.go(take(kind.rival(world.connect(), "x")))
        await world.in_line("x", 1)
        await world.connect().evict("x", reason="it hangs")
        for _ in range(16):
            await world.pass_time(0.25)
            if lease.lost:
                break
        assert not waiting.done, "the holder may be at work"
        with pytest.raises(LeaseLost, match="it hangs"):
            await lease.release()
        assert (await waiting.result(within=2)).held, "and not when the margin of its lease is over"

    async def test_at_once_means_now(self, world: World, kind: Kind) -> None:
        lease = await take(kind.mine(world.connect(lease=0.5), "x"))
        await world.connect().evict("x", reason="gone for good", at_once=True)
        assert await kind.rival(world.connect(), "x").acquire(False)
        await world.pass_time(0.3)
        assert (lease.lost, lease.reason) == (True, "evicted")

    async def test_one_in_line_can_be_evicted_by_its_ticket(self, world: World, kind: Kind) -> None:
        await take(kind.mine(world.connect(), "x"))
        waiting = world.go(kind.rival(world.connect(), "x").acquire(timeout=30))
        await world.in_line("x", 1)
        (waiter,) = (await world.resource("x")).line
        await world.connect(owner="operator").evict("x", reason="not today", ticket=waiter.ticket)
        with pytest.raises(LeaseLost, match="operator: not today") as caught:
            await waiting.result(within=2)
        assert caught.value.reason == "evicted"
        assert (await world.resource("x")).line == ()

    async def test_others_are_not_met(self, world: World, kind: Kind) -> None:
        slots = world.connect(lease=2).semaphore("many", 3)
        one, other = await take(slots), await take(slots)
        shown = [e.ticket for e in (await world.resource("many")).inside if e.fence == one.fence]
        await world.connect().evict("many", reason="this one", ticket=shown[0], at_once=True)
        await world.pass_time(1.2)
        assert (one.lost, other.lost) == (True, False)

    async def test_without_a_reason_nobody_is_evicted(self, world: World, kind: Kind) -> None:
        with pytest.raises(ConfigError, match="reason"):
            await world.connect().evict("x", reason="")
        assert await world.connect().evict("x", reason="nobody is there") == ()

    async def test_a_pattern_meets_all_names_that_match_and_no_other(self, world: World, kind: Kind) -> None:
        client, other_namespace = world.connect(lease=30), world.connect(lease=30, namespace="other")
        met = [await take(kind.mine(client, name)) for name in ("web-1", "web-*", "web-")]
        spared = [await take(kind.mine(client, name)) for name in ("web", "Web-1", "a web-1", "db-1")]
        spared.append(await take(kind.mine(other_namespace, "web-1")))
        await (await take(kind.mine(client, "web-free"))).release()
        tickets = await world.connect().evict("web-*", reason="all of them", at_once=True, pattern=True)
        assert sorted(tickets) == sorted(lease.ticket for lease in met)
        for name in ("web-1", "web-*", "web-"):
            assert await kind.rival(world.connect(), name).acquire(False)
        for lease in spared:
            await lease.renew()
        assert await world.connect().evict("nothing-*", reason="nobody is there", pattern=True) == ()

    async def test_without_pattern_a_star_is_a_character_like_others(self, world: World, kind: Kind) -> None:
        client = world.connect(lease=30)
        spared, met = await take(kind.mine(client, "web-1")), await take(kind.mine(client, "web-*"))
        assert await world.connect().evict("web-?", reason="no such name", at_once=True) == ()
        assert await world.connect().evict("web-*", reason="this one", at_once=True) == (met.ticket,)
        assert await world.connect().evict("web-*", reason="released meanwhile", at_once=True) == ()
        await spared.renew()

    async def test_a_pattern_and_a_ticket_are_refused_together(self, world: World, kind: Kind) -> None:
        lease = await take(kind.mine(world.connect(), "x"))
        with pytest.raises(ConfigError, match="a ticket or pattern=True, not both"):
            await world.connect().evict("*", reason="which?", ticket=lease.ticket, pattern=True)
        with pytest.raises(ConfigError, match="reason"):
            await world.connect().evict("*", reason="", pattern=True)
        await lease.renew()


@every_kind
class TestDetaching(Behaviours):
    async def test_what_is_detached_lives_on_without_its_client(self, world: World, kind: Kind) -> None:
        client = world.connect()
        lease = await take(kind.mine(client, "x"))
        ticket = await lease.detach(60)
        assert (ticket, lease.held, lease.lost) == (lease.ticket, False, False)
        await client.close()
        assert await kind.rival(world.connect(), "x").acquire(False) is None

    async def test_it_ends_if_nobody_attaches_it(self, world: World, kind: Kind) -> None:
        lease = await take(kind.mine(world.connect(), "x"))
        await lease.detach(0.5)
        assert (await world.go(take(kind.rival(world.connect(), "x"))).result(within=0.51)).held

    async def test_whoever_has_the_ticket_takes_it_over(self, world: World, kind: Kind) -> None:
        lease = await take(kind.mine(world.connect(), "x"))
        ticket = await lease.detach(0.5)
        taken = await world.connect().attach("x", ticket)
        assert (taken.held, taken.fence, taken.ticket, taken.name) == (True, lease.fence, ticket, "x")
        await world.pass_time(20 if world.hand else 1)
        assert taken.held, "it is renewed again"
        assert await kind.rival(world.connect(), "x").acquire(False) is None
        await taken.release()
        assert await kind.rival(world.connect(), "x").acquire(False)

    async def test_a_ticket_that_nobody_has_is_not_attached(self, world: World, kind: Kind) -> None:
        client = world.connect()
        with pytest.raises(NotHeld):
            await client.attach("x", "0" * 32)
        lease = await take(kind.mine(client, "x"))
        ticket = await lease.detach(60)
        await world.connect().evict("x", reason="cleaning up", at_once=True)
        with pytest.raises(LeaseLost, match="evicted"):
            await client.attach("x", ticket)

    async def test_those_of_the_same_client_who_wait_go_on_waiting(self, world: World, kind: Kind) -> None:
        """Detaching ends the passing on: the lock is not theirs to pass any more."""
        client = world.connect()
        lease = await take(kind.mine(client, "x"))
        waiting = world.go(take(kind.rival(client, "x")))
        await world.pass_time(0.05)
        ticket = await lease.detach(60)
        await world.in_line("x", 1)
        assert not waiting.done
        taken = await world.connect().attach("x", ticket)
        await taken.release()
        assert (await waiting.result()).fence > lease.fence

"""`locked` and `snapshot`: what they show, and that they change nothing."""

import pytest

from ...errors import LockTimeout
from ..faults import Faults
from ..harness import Harness
from .parametrize import Behaviours, Kind, PoolBehaviours, enter_and_leave, every_kind, get, pool_with, take


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
        waiting = await harness.queue_up(kind.rival(harness.connect(), "x").acquire(timeout=5))
        before = await harness.resource("x")
        for _ in range(3):
            assert await kind.rival(harness.connect(), "x").locked()
            await harness.snapshot()
        after = await harness.resource("x")
        assert [e.ticket for e in after.queue] == [e.ticket for e in before.queue]
        assert (after.fence, len(after.holders)) == (before.fence, 1)
        del waiting

    async def test_a_snapshot_shows_holders_and_waiters(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(owner="holder"), "x", note="working"))
        await harness.queue_up(kind.rival(harness.connect(owner="waiter"), "x", note="wanting").acquire(timeout=5))
        await harness.pass_time(0.1)
        snapshot = await harness.snapshot("x")
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
        assert await kind.rival(harness.connect(), "x").locked() is False
        resource = await harness.resource("x")
        assert resource.holders == ()
        (late,) = resource.expired
        assert (late.owner, late.fence) == ("late", lease.fence)
        assert late.expires_in <= 0

    async def test_a_lock_that_only_stays_closed_has_no_holder(self, harness: Harness, kind: Kind) -> None:
        async with kind.mine(harness.connect(owner="gone"), "x", at_least=300):
            assert [one.owner for one in (await harness.resource("x")).holders] == ["gone"]
        assert [one.owner for one in (await harness.resource("x")).holders] == [""]
        with pytest.raises(LockTimeout, match=r"^'x' is kept closed for another \d+ s\.$") as late:
            await enter_and_leave(kind.rival(harness.connect(), "x").hold(timeout=0))
        assert late.value.holders == ()


    async def test_a_lock_that_was_only_kept_closed_is_idle_afterwards(self, harness: Harness, kind: Kind) -> None:
        """It is no stale lease: its holder has released it."""
        await enter_and_leave(kind.mine(harness.connect(owner="gone"), "x", at_least=0.2))
        other = harness.connect()
        await harness.pass_time(0.3)
        assert (await other.snapshot()).resources == ()
        (only,) = (await other.snapshot("x")).resources
        assert (only.holders, only.expired, only.busy) == ((), (), False)


class TestSnapshots(Behaviours):
    async def test_a_pattern_chooses_names(self, harness: Harness) -> None:
        client = harness.connect()
        for name in ("a:1", "a:2", "b:1", "a*"):
            await take(client.lock(name))
        patterns = ("a:*", "?:1", "b:1", "c", "*")
        names = [[r.name for r in (await harness.snapshot(p)).resources] for p in patterns]
        assert names == [["a:1", "a:2"], ["a:1", "b:1"], ["b:1"], [], ["a*", "a:1", "a:2", "b:1"]]

    async def test_only_what_is_busy_is_shown_unless_idle_names_are_asked_for(self, harness: Harness) -> None:
        client = harness.connect()
        for name in ("held", "used", "used too"):
            await enter_and_leave(client.lock(name))
        await client.resize("resized", 3)
        await take(client.lock("held"))
        assert [r.name for r in (await harness.snapshot()).resources] == ["held"]
        found = (await harness.snapshot(idle=True)).resources
        assert [(r.name, r.busy) for r in found] == [
            ("held", True), ("resized", False), ("used", False), ("used too", False)
        ]  # fmt: skip
        assert [r.name for r in (await harness.snapshot("used*", idle=True)).resources] == ["used", "used too"]

    async def test_one_name_is_shown_even_if_it_is_idle(self, harness: Harness) -> None:
        client = harness.connect()
        await enter_and_leave(client.lock("x"))
        (resource,) = (await harness.observer.snapshot("x")).resources
        assert (resource.name, resource.busy) == ("x", False)
        assert (await harness.observer.snapshot("never used")).resources == ()

    async def test_the_time_of_a_look_is_known_even_if_nothing_is_busy(self, harness: Harness) -> None:
        first = (await harness.snapshot()).now
        await harness.pass_time(0.01)
        assert 0 < first <= (await harness.snapshot()).now

    async def test_kinds_are_distinguished(self, harness: Harness) -> None:
        client = harness.connect()
        await take(client.lock("l"))
        await take(client.rwlock("r").read())
        await take(client.semaphore("s", 4))
        resources = (await harness.snapshot()).resources
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
        assert [r.name for r in (await harness.snapshot()).resources] == ["x"]
        every = (await harness.snapshot(namespaces=True)).resources
        assert [(r.namespace, r.name) for r in every] == [("", "x"), ("one", "x")]
        used = (await harness.snapshot("?", idle=True, namespaces=True)).resources
        assert [(r.namespace, r.name) for r in used] == [("", "x"), ("one", "x"), ("two", "x")]
        assert [r.namespace for r in (await one.snapshot("x")).resources] == ["one"]


class TestPoolsInSnapshots(PoolBehaviours):
    async def test_a_pool_shows_who_has_what_and_who_waits(self, harness: Harness) -> None:
        mine, theirs = harness.connect(owner="mine"), harness.connect(owner="theirs")
        jobs = await pool_with(mine, "a", "b", "c")
        await (await get(jobs)).done()
        item = await get(jobs)
        await get(jobs)
        await harness.queue_up_for_item(theirs.pool("jobs").acquire(timeout=5))
        await harness.pass_time(0.1)
        (resource,) = (await harness.snapshot()).resources
        assert (resource.name, resource.kind, resource.capacity) == ("jobs", "pool", 2)
        assert resource.items == (0, 0, 2, 0, 1)
        assert [(one.owner, one.item) for one in resource.holders] == [("mine", "b"), ("mine", "c")]
        assert resource.holders[0].fence == item.fence
        assert 0.1 <= resource.holders[0].held_for < 10
        assert 0 < resource.holders[0].expires_in <= 60
        assert [one.owner for one in resource.queue] == ["theirs"]
        assert 0.1 <= resource.queue[0].waited < 10

    async def test_an_idle_pool_is_shown_if_idle_names_are_asked_for(self, harness: Harness) -> None:
        await harness.connect().pool("jobs").add_many(["a", "b"])
        await harness.connect(namespace="other").pool("more").add("x")
        assert (await harness.snapshot()).resources == ()
        (resource,) = (await harness.snapshot("*", idle=True)).resources
        assert (resource.kind, resource.busy, resource.items) == ("pool", False, (2, 0, 0, 0, 0))
        assert (await harness.snapshot("other*", idle=True)).resources == ()
        found = (await harness.snapshot(idle=True, namespaces=True)).resources
        assert [(one.namespace, one.name) for one in found] == [("", "jobs"), ("other", "more")]
        assert [one.items for one in found] == [(2, 0, 0, 0, 0), (1, 0, 0, 0, 0)]

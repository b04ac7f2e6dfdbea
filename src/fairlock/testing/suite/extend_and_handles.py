"""Extending and releasing leases: by their holder, or by another process that knows their handle."""

import pytest

from ...errors import ConfigError, LeaseLost, NotHeld
from ..faults import Faults
from ..harness import Harness
from .parametrize import Behaviours, Kind, every_mutex, take

SECRET = "a secret of the caller's own choice, läng"


@every_mutex
class TestExtending(Behaviours):
    async def test_an_extended_lease_lasts_without_its_client(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        lease = await take(kind.mine(harness.connect(lease=0.5, faults=faults), "x"))
        await lease.extend(3)
        assert 2 < lease.remaining() <= 3
        faults.cut = True
        await harness.pass_time(1)
        assert lease.held
        assert await kind.rival(harness.connect(), "x").acquire(False) is None
        faults.over()
        await lease.release()

    async def test_it_is_renewed_at_its_new_length(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(lease=0.5), "x"))
        await lease.extend(2)
        await lease.renew()
        assert lease.remaining() > 1.3

    async def test_it_never_becomes_shorter(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(lease=30), "x"))
        await lease.renew()
        await lease.extend(1)
        assert lease.remaining() > 20
        assert (await harness.resource("x")).holders[0].expires_in > 20

    async def test_the_next_one_of_this_client_has_a_lease_of_its_own(self, harness: Harness, kind: Kind) -> None:
        lock = kind.mine(harness.connect(), "x")
        lease = await take(lock)
        waiting = harness.go(take(lock))
        await lease.extend(3600)
        await lease.release()
        following = await waiting.result()
        assert following.fence > lease.fence
        await following.renew()
        assert following.remaining() <= 30

    async def test_max_hold_ends_no_sooner(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x", max_hold=0.3))
        await lease.extend(3)
        await harness.pass_time(0.5)
        assert lease.held
        await lease.release()

    async def test_what_is_not_held_is_not_extended(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        lease = await take(kind.mine(harness.connect(lease=0.5, faults=faults), "x"))
        for bad in (0, -1, 0.1, "3"):
            with pytest.raises(ConfigError):
                await lease.extend(bad)  # type: ignore[arg-type]
        faults.cut = True
        await harness.pass_time(0.6)
        faults.over()
        with pytest.raises(LeaseLost):
            await lease.extend(3)
        released = await take(kind.mine(harness.connect(), "y"))
        await released.release()
        with pytest.raises(NotHeld):
            await released.extend(3)


@every_mutex
class TestHandles(Behaviours):
    async def test_another_process_releases_by_the_handle_and_the_holder_learns_of_it(
        self, harness: Harness, kind: Kind
    ) -> None:
        lease = await take(kind.mine(harness.connect(), "x", handle=SECRET))
        other = harness.connect(owner="other")
        assert await other.release("x", handle="a wrong one") is False
        assert await other.release("y", handle=SECRET) is False
        assert await kind.rival(other, "x").acquire(False) is None
        assert await other.audit("x") == ()
        assert await other.release("x", handle=SECRET) is True
        (line,) = await other.audit("x")
        assert line[1:5] == ("released", "other", "released by its handle", lease.owner)
        assert await kind.rival(other, "x").acquire(False)
        with pytest.raises(LeaseLost, match=r"other evicted its holder \(released by its handle\)"):
            await lease.renew()

    async def test_another_process_extends_by_the_handle(self, harness: Harness, kind: Kind) -> None:
        faults = Faults()
        await take(kind.mine(harness.connect(lease=0.5, faults=faults), "x", handle=SECRET))
        other = harness.connect()
        with pytest.raises(NotHeld, match="'x' with this handle"):
            await other.extend("x", 5, handle="a wrong one")
        await other.extend("x", 5, handle=SECRET)
        faults.cut = True
        await harness.pass_time(1)
        assert await kind.rival(other, "x").acquire(False) is None
        assert await other.release("x", handle=SECRET)

    async def test_a_holder_does_not_cut_short_what_another_has_extended(self, harness: Harness, kind: Kind) -> None:
        client, other = harness.connect(lease=0.6), harness.connect()
        lease = await take(kind.mine(client, "x", handle=SECRET, max_hold=0.9))
        last = await take(kind.mine(client, "last", handle=SECRET, max_hold=0.1))  # over before it is renewed
        patient = await take(kind.mine(client, "long", handle=SECRET, lease=4, max_hold=0.3))
        await other.extend("last", 5, handle=SECRET)
        await other.extend("long", 3, handle=SECRET)  # shorter than its lease, and longer than its max_hold
        await harness.pass_time(0.5)
        await other.extend("x", 5, handle=SECRET)
        await harness.pass_time(0.8)
        assert lease.held
        for name in ("x", "last", "long"):
            assert await kind.rival(other, name).acquire(False) is None
        await lease.release()
        assert await kind.rival(other, "x").acquire(False)
        for name in ("last", "long"):
            assert await other.release(name, handle=SECRET)
        del last, patient

    async def test_an_extension_that_overtakes_the_end_of_a_max_hold_counts(self, harness: Harness, kind: Kind) -> None:
        """The holder gives up at the same moment: its Release is on its way, and arrives after the extension."""
        faults = Faults()
        other = harness.connect()
        client = harness.connect(lease=harness.short_lease, faults=faults)
        lease = await take(kind.mine(client, "x", handle=SECRET, max_hold=0.1))
        faults.hang = True
        for _ in range(100):
            await harness.pass_time(0.02)
            if lease.lost and "Release" in faults.sent:
                break
        await other.extend("x", 5, handle=SECRET)
        faults.over()
        await harness.pass_time(harness.short_lease + 0.1)
        assert await kind.rival(other, "x").acquire(False) is None
        assert await other.release("x", handle=SECRET)

    async def test_no_client_acquires_with_a_handle(self, harness: Harness, kind: Kind) -> None:
        await take(kind.mine(harness.connect(), "x", handle=SECRET))
        assert await kind.rival(harness.connect(), "x", handle=SECRET).acquire(False) is None

    async def test_a_handle_is_shown_nowhere(self, harness: Harness, kind: Kind) -> None:
        lease = await take(kind.mine(harness.connect(), "x", handle=SECRET))
        assert SECRET not in repr(await harness.snapshot()) + lease.ticket + repr(lease)
        await lease.release()
        with pytest.raises(NotHeld):
            await harness.connect().extend("x", 5, handle=SECRET)

    async def test_a_handle_is_a_text(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect()
        for bad in ("", 5, b"x", "x" * 1001):
            with pytest.raises(ConfigError, match="A handle is a text"):
                kind.mine(client, "x", handle=bad)
            with pytest.raises(ConfigError, match="A handle is a text"):
                await client.release("x", handle=bad)  # type: ignore[arg-type]

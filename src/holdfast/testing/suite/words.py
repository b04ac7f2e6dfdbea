"""What may be said: names, spans, labels; and how errors read, travel and keep secrets."""

import math
import pickle
from datetime import timedelta

import pytest

from ...errors import AlreadyHeld, BackendError, ConfigError, LeaseLost, LockError, LockTimeout, NotHeld
from ..world import World
from .stage import Behaviours, Kind, every_kind, take

BAD_NAMES = ["", "x" * 201, "é" * 101, "x" * 10_000_000, "a\0b", "a\nb", "tab\t", "\x7f", "\x85", "\ud800", b"x", None]
GOOD_NAMES = ["x", "x" * 200, "é" * 100, "a b", "a/b:c{d}*?%_'\";--", "Ünïcødé", "名前", "X", "x ", "🔒", "."]
BAD_SPANS = [0, -1, math.nan, math.inf, -math.inf, "5", None, True, timedelta(0), timedelta(days=-1), 1e12]


class TestNames(Behaviours):
    @pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: repr(name)[:12])
    async def test_a_bad_name_is_refused_before_anything_is_sent(self, world: World, name: str) -> None:
        client = world.connect()
        for make in (client.lock, client.rwlock, lambda name: client.semaphore(name, 2), client.guard):
            with pytest.raises(ConfigError, match="A name") as caught:
                make(name)
            assert len(str(caught.value)) < 300
        for asking in (client.attach(name, "x"), client.evict(name, reason="x"), client.resize(name, 2)):
            with pytest.raises(ConfigError, match="A name"):
                await asking

    async def test_every_good_name_is_a_name_of_its_own(self, world: World) -> None:
        client, other = world.connect(), world.connect()
        for name in GOOD_NAMES:
            assert await client.lock(name).acquire(False), name
        for name in GOOD_NAMES:
            assert await other.lock(name).acquire(False) is None, name
        assert {r.name for r in (await world.eye.snapshot()).resources} == set(GOOD_NAMES)

    async def test_labels_are_checked_too(self, world: World) -> None:
        client = world.connect()
        for bad in ("a\nb", "x" * 201, 7, "\ud800"):
            with pytest.raises(ConfigError):
                client.lock("x", note=bad)  # type: ignore[arg-type]
            with pytest.raises(ConfigError):
                client.lock("x").hold(note=bad)  # type: ignore[arg-type]
            with pytest.raises(ConfigError):
                await client.evict("x", reason=bad)  # type: ignore[arg-type]


@every_kind
class TestSpans(Behaviours):
    async def test_bad_spans_are_refused(self, world: World, kind: Kind) -> None:
        client = world.connect()
        for number, bad in enumerate(BAD_SPANS):
            if bad is not None:
                with pytest.raises(ConfigError):
                    kind.mine(client, "x", lease=bad)
                for option in ("max_hold", "at_least"):
                    with pytest.raises(ConfigError, match=option):
                        kind.mine(client, "x", **{option: bad})
            lease = await take(kind.mine(client, f"x{number}"))
            with pytest.raises(ConfigError):
                await lease.detach(bad)  # type: ignore[arg-type]

    async def test_a_lease_that_any_pause_would_lose_is_refused(self, world: World, kind: Kind) -> None:
        for bad in (0.49, timedelta(milliseconds=499)):
            with pytest.raises(ConfigError, match=r"at least 0\.5 s"):
                kind.mine(world.connect(), "x", lease=bad)
        kind.mine(world.connect(), "x", lease=timedelta(milliseconds=500))


class TestErrors(Behaviours):
    async def test_they_travel_between_processes(self, world: World) -> None:
        await take(world.connect(owner="holder").lock("x"))
        with pytest.raises(LockTimeout) as caught:
            async with world.connect().lock("x").hold(timeout=0):
                pass
        there = pickle.loads(pickle.dumps(caught.value))
        assert type(there) is LockTimeout
        assert str(there) == str(caught.value)
        assert (there.name, there.holders) == ("x", ("holder",))

    def test_all_of_them_take_one_sentence(self) -> None:
        for error in (LockError, LockTimeout, LeaseLost, NotHeld, AlreadyHeld, BackendError, ConfigError):
            there = pickle.loads(pickle.dumps(error("It is so.")))
            assert (type(there), str(there)) == (error, "It is so.")
            assert issubclass(error, LockError)

    async def test_a_repr_says_what_it_is_and_keeps_the_ticket(self, world: World) -> None:
        client = world.connect()
        lock = client.lock("x")
        assert "unlocked" in repr(lock)
        lease = await take(lock)
        assert "<locked" in repr(lock)
        assert "'x'" in repr(lease)
        assert lease.ticket not in repr(lease) + repr(lock) + repr(client)
        await lease.release()
        assert "released" in repr(lease)
        assert client.store in repr(client)

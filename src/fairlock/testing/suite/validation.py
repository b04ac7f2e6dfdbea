"""Valid names, durations and labels; and what errors contain, hide and keep when pickled."""

import math
import pickle
import time
from datetime import timedelta
from typing import Any

import pytest

from ...errors import AlreadyHeld, ConfigError, LeaseLost, LockError, LockTimeout, NotHeld, StoreError
from ..harness import Harness
from .parametrize import Behaviours, Kind, enter_and_leave, every_kind, get, take

BAD_NAMES = ["", "x" * 201, "é" * 101, "x" * 10_000_000, "a\0b", "a\nb", "tab\t", "\x7f", "\x85", "\ud800", b"x", None]
GOOD_NAMES = ["x", "x" * 200, "é" * 100, "a b", "a/b:c{d}*?%_'\";--", "Ünïcødé", "名前", "X", "x ", "🔒", "."]
BAD_DURATIONS = [0, -1, math.nan, math.inf, -math.inf, "5", None, True, timedelta(0), timedelta(days=-1), 1e12, 10**400]


class TestNames(Behaviours):
    @pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: repr(name)[:12])
    async def test_a_bad_name_is_refused_before_anything_is_sent(self, harness: Harness, name: str) -> None:
        client = harness.connect()
        for make in (client.lock, client.rwlock, lambda name: client.semaphore(name, 2), client.guard):
            with pytest.raises(ConfigError, match="A name") as caught:
                make(name)
            assert len(str(caught.value)) < 300
        for asking in (client.attach(name, "x"), client.evict(name, reason="x"), client.resize(name, 2)):
            with pytest.raises(ConfigError, match="A name"):
                await asking

    async def test_every_good_name_is_a_name_of_its_own(self, harness: Harness) -> None:
        client, other = harness.connect(), harness.connect()
        for name in GOOD_NAMES:
            assert await client.lock(name).acquire(False), name
        for name in GOOD_NAMES:
            assert await other.lock(name).acquire(False) is None, name
        assert {r.name for r in (await harness.snapshot()).resources} == set(GOOD_NAMES)

    async def test_labels_are_checked_too(self, harness: Harness) -> None:
        client = harness.connect()
        for bad in ("a\nb", "x" * 201, 7, "\ud800"):
            with pytest.raises(ConfigError):
                client.lock("x", note=bad)  # type: ignore[arg-type]
            with pytest.raises(ConfigError):
                client.lock("x").hold(note=bad)  # type: ignore[arg-type]
            with pytest.raises(ConfigError):
                await client.evict("x", reason=bad)  # type: ignore[arg-type]


@every_kind
class TestDurations(Behaviours):
    async def test_bad_durations_are_refused(self, harness: Harness, kind: Kind) -> None:
        client = harness.connect()
        for number, bad in enumerate(BAD_DURATIONS):
            if bad is not None:
                with pytest.raises(ConfigError):
                    kind.mine(client, "x", lease=bad)
                for option in ("max_hold", "at_least"):
                    with pytest.raises(ConfigError, match=option):
                        kind.mine(client, "x", **{option: bad})
            lease = await take(kind.mine(client, f"x{number}"))
            with pytest.raises(ConfigError):
                await lease.detach(bad)  # type: ignore[arg-type]

    async def test_a_lease_that_any_pause_would_lose_is_refused(self, harness: Harness, kind: Kind) -> None:
        for bad in (0.49, timedelta(milliseconds=499)):
            with pytest.raises(ConfigError, match=r"at least 0\.5 s"):
                kind.mine(harness.connect(), "x", lease=bad)
        kind.mine(harness.connect(), "x", lease=timedelta(milliseconds=500))


class TestInvalidArguments(Behaviours):
    """Invalid arguments are refused with a sentence of a few lines, before anything is sent."""

    async def test_what_is_no_function_is_not_called_later(self, harness: Harness) -> None:
        client = harness.connect()
        with pytest.raises(ConfigError, match="on_lost is a function, or None; not 5"):
            client.lock("x", on_lost=5)  # type: ignore[call-overload]
        with pytest.raises(ConfigError, match="on_lost is a function"):
            client.semaphore("x", 2, on_lost="print")  # type: ignore[call-overload]
        with pytest.raises(ConfigError, match="on_event is a function"):
            harness.connect(on_event=5)

    async def test_lock_all_takes_names_and_locks(self, harness: Harness) -> None:
        client = harness.connect()
        for bad in (5, None, b"x", ["x"], object()):
            with pytest.raises(ConfigError, match="takes names, and locks"):
                async with client.lock_all("a", bad):  # type: ignore[arg-type]
                    pass
        assert (await harness.snapshot()).resources == ()

    async def test_a_ticket_that_is_none_is_not_stored(self, harness: Harness) -> None:
        client = harness.connect()
        for bad in ("", "x" * 10_000_000, "a b", "a\nb", 5, b"x"):
            for asking in (client.evict("x", reason="test", ticket=bad), client.attach("x", bad)):  # type: ignore[arg-type]
                with pytest.raises(ConfigError, match="A ticket") as caught:
                    await asking
                assert len(str(caught.value)) < 300
        assert (await harness.snapshot()).resources == ()

    async def test_a_number_of_many_digits_is_refused_in_a_short_sentence(self, harness: Harness) -> None:
        client = harness.connect()
        for number in (10**400, 10**5000, -(10**5000)):
            calls: list[tuple[Any, str]] = [(client.lock, "lease"), (client.lock, "timeout"), (client.pool, "lease")]
            for call, word in calls:
                with pytest.raises((ConfigError, OverflowError)) as caught:
                    call("x", **{word: number})
                assert len(str(caught.value)) < 300
            with pytest.raises(ConfigError):
                client.semaphore("x", number)
            with pytest.raises(ConfigError):
                await client.resize("x", number)
            with pytest.raises(ConfigError):
                await client.semaphore("x", 2).acquire(weight=number)

    async def test_a_body_that_is_nested_too_deeply_is_refused(self, harness: Harness) -> None:
        jobs = harness.connect().pool("jobs")
        deep: list[object] = []
        for _ in range(99):
            deep = [deep]
        assert await jobs.add("deep", deep)
        assert (await get(jobs, blocking=False)).body == deep
        for _ in range(800):
            deep = [deep]
        with pytest.raises(ConfigError, match="nested at most 100 deep"):
            await jobs.add("deeper", deep)
        assert await jobs.add("wide", [[n] for n in range(1000)])

    async def test_a_pattern_that_is_none_is_refused(self, harness: Harness) -> None:
        for bad in (5, None, "x" * 1001):
            with pytest.raises(ConfigError, match="A pattern"):
                await harness.observer.snapshot(bad)  # type: ignore[arg-type]

    async def test_no_pattern_takes_long(self, harness: Harness) -> None:
        """Each star would try every place of every other: hours, if they were allowed to."""
        client = harness.connect()
        name = "a" * 200
        await take(client.lock(name))
        begun = time.process_time()
        for pattern in ("*a" * 7 + "!", "*a" * 190 + "!", "*?" * 190 + "!", "*a?" * 60 + "*!", "a*" * 300):
            assert (await client.snapshot(pattern)).resources == ()
        assert [r.name for r in (await client.snapshot("*a" * 100 + "*")).resources] == [name]
        assert time.process_time() - begun < 5


class TestErrors(Behaviours):
    async def test_they_travel_between_processes(self, harness: Harness) -> None:
        await take(harness.connect(owner="holder").lock("x"))
        with pytest.raises(LockTimeout) as caught:
            await enter_and_leave(harness.connect().lock("x").hold(timeout=0))
        there = pickle.loads(pickle.dumps(caught.value))
        assert type(there) is LockTimeout
        assert str(there) == str(caught.value)
        assert (there.name, there.holders) == ("x", ("holder",))

    def test_all_of_them_take_one_sentence(self) -> None:
        for error in (LockError, LockTimeout, LeaseLost, NotHeld, AlreadyHeld, StoreError, ConfigError):
            there = pickle.loads(pickle.dumps(error("It is so.")))
            assert (type(there), str(there)) == (error, "It is so.")
            assert issubclass(error, LockError)

    async def test_a_repr_names_the_object_and_hides_the_ticket(self, harness: Harness) -> None:
        client = harness.connect()
        lock = client.lock("x")
        assert "unlocked" in repr(lock)
        lease = await take(lock)
        assert "<locked" in repr(lock)
        assert "'x'" in repr(lease)
        assert lease.ticket not in repr(lease) + repr(lock) + repr(client)
        await lease.release()
        assert "released" in repr(lease)
        assert client.store in repr(client)

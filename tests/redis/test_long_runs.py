"""Every key goes by itself when nothing needs it any more, and not before; fences rise all the same."""

from itertools import pairwise
from random import Random

import pytest
from redis import Redis

from fairlock.rules.locks import EXCLUSIVE, Acquire, Evict, Granted, Mismatch, Queued, Release, Resize
from fairlock.stores.redis import encoding
from fairlock.stores.redis.lua_scripts import FAST_RELEASE, fold, put_fast_paths, script
from tests.redis.differential import SOURCES, hooked, replaced
from tests.redis.lua_store import LuaLock
from tests.redis.random_histories import KINDS, SECOND, listener_of, some_command
from tests.servers.server import Server, until

HOUR = 3600 * SECOND
LEASE = 30 * SECOND


@pytest.fixture
def lock(redis_alone: Server) -> LuaLock:
    return LuaLock(Redis(port=redis_alone.port))


def enter(ticket: str, **more: int) -> Acquire:
    capacity, weight = more.get("capacity", EXCLUSIVE), more.get("weight", EXCLUSIVE)
    return Acquire(ticket, capacity, weight, more.get("lease", LEASE), listener=f"e{ticket}")


def ends(lock: LuaLock) -> set[int]:
    """When the keys that there are will go, in microseconds."""
    found = {int(lock.server.execute_command("PEXPIRETIME", key)) for key in lock.keys}
    return {end * 1000 for end in found if end != -2}


def busy(lock: LuaLock) -> None:
    """Put all keys in use: two holders, one of them not confirmed yet, one waiter, one tombstone."""
    for ticket in "abcd":
        lock.say(enter(ticket, capacity=2, weight=1))
    lock.say(Release("a", leave_tombstone=True))
    assert lock.server.exists(*lock.keys) == 5


def is_let_in(lock: LuaLock, ticket: str, **more: int) -> int:
    reply = lock.short(enter(ticket, **more)) or lock.say(enter(ticket, **more))
    assert isinstance(reply, Granted), reply
    return reply.fence


def test_a_lock_that_was_used_once_is_gone_minutes_later(lock: LuaLock) -> None:
    is_let_in(lock, "a")
    assert lock.short(Release("a"))
    (end,) = ends(lock)
    assert encoding.IDLE <= end - lock.now <= LEASE + encoding.IDLE


def test_all_keys_of_a_busy_one_go_at_the_same_moment_after_everything_in_them(lock: LuaLock) -> None:
    busy(lock)
    (end,) = ends(lock)
    record = lock.look()
    last = max([e.expires for e in (*record.holders, *record.queue)] + [g.until for g in record.tombstones])
    assert end >= last + encoding.IDLE // 2


def test_a_renewed_one_lasts_on(lock: LuaLock) -> None:
    for _ in range(100):
        lock.now += LEASE // 3
        is_let_in(lock, "a")
        (end,) = ends(lock)
        assert end >= lock.now + LEASE + encoding.IDLE // 2 - 1000


def test_a_size_that_was_set_is_remembered_for_a_year(lock: LuaLock) -> None:
    lock.say(Resize(3))
    is_let_in(lock, "a", capacity=3, weight=1)
    lock.short(Release("a"))
    (end,) = ends(lock)
    assert end - lock.now >= 180 * 24 * HOUR
    lock.now += 180 * 24 * HOUR
    assert lock.say(enter("b", capacity=2, weight=4)) == Mismatch(3)
    is_let_in(lock, "a", capacity=3, weight=1)
    (end,) = ends(lock)
    assert end - lock.now >= 180 * 24 * HOUR


@pytest.mark.parametrize("back", [0, 10 * SECOND, HOUR], ids=["a steady clock", "ten seconds back", "an hour back"])
def test_fences_rise_over_a_record_that_has_gone(lock: LuaLock, back: int) -> None:
    fences = []
    for ticket in "abc":
        fences.append(is_let_in(lock, ticket))
        lock.say(Release(ticket))
        lock.now -= back
    (end,) = ends(lock)
    lock.server.unlink(*lock.keys)
    lock.now = end  # no server forgets it before
    fences.append(is_let_in(lock, "d"))
    assert all(one < next_one for one, next_one in pairwise(fences))


def test_an_idle_record_really_goes_and_the_next_fence_is_higher(redis_alone: Server) -> None:
    """In real time, with records that are kept for a fifth of a second instead of ten minutes."""
    change = str(encoding.IDLE), str(SECOND // 5)
    texts = [replaced(SOURCES[name], *change) for name in ("step", "fast_acquire")] + [SOURCES["fast_release"]]
    quick = hooked()._replace(
        fast_acquire=script(fold(texts[1])), fast_release=FAST_RELEASE, step=script(fold(put_fast_paths(*texts)))
    )
    lock = LuaLock(Redis(port=redis_alone.port), scripts=quick)
    fence = is_let_in(lock, "a", lease=SECOND // 10)
    lock.say(enter("b", lease=SECOND // 10))
    assert lock.server.exists(*lock.keys) == 2
    until(lambda: not lock.server.exists(*lock.keys), "the record is gone")
    assert is_let_in(lock, "c") > fence


# A server that evicts keys may remove any of them at any time. Locks are lost by that, but none becomes unusable.


@pytest.mark.parametrize("gone", range(5), ids=["door", *encoding.PARTS])
def test_a_key_that_was_evicted_breaks_no_lock(lock: LuaLock, gone: int) -> None:
    tickets = [*"abcdef"]
    busy(lock)
    fence = lock.look().fence
    lock.server.unlink(lock.keys[gone])
    for ticket in tickets:
        lock.say(enter(ticket, capacity=2, weight=1))
        lock.say(Release(ticket))
    lock.now += 100 * SECOND
    assert is_let_in(lock, "g", capacity=5, weight=5) > fence
    assert isinstance(lock.say(enter("h", capacity=5, weight=5)), Queued)


@pytest.mark.parametrize("seed", range(20))
def test_keys_that_are_evicted_again_and_again_break_no_lock(lock: LuaLock, seed: int) -> None:
    rng = Random(seed)
    kind = KINDS["semaphore"]
    tickets = [f"t{i}" for i in range(7)]
    for _ in range(60):
        lock.now += rng.choice(kind.ticks)
        if rng.random() < 0.2:
            lock.server.unlink(*rng.sample(lock.keys, rng.randint(1, 4)))
        record = lock.look()
        command = some_command(rng, kind, tickets, record)
        lock.say(command, [listener_of(t) for t in tickets if rng.random() < 0.2])
    lock.now += 300 * SECOND
    lock.say(Resize(4))
    is_let_in(lock, "u1", capacity=4, weight=4)


def test_what_an_evicted_state_left_behind_is_no_holder(lock: LuaLock) -> None:
    """The line of a door that is gone must not stand before newcomers."""
    busy(lock)
    lock.server.unlink(lock.keys[0])
    is_let_in(lock, "p", capacity=1, weight=1)
    reply = lock.say(enter("q", capacity=1, weight=1))
    assert isinstance(reply, Queued)
    assert reply.ahead == 0
    assert [e.ticket for e in lock.look().queue] == ["q"]


def test_an_eviction_by_an_operator_is_kept_as_long_as_its_tombstone(lock: LuaLock) -> None:
    is_let_in(lock, "a", lease=HOUR)
    lock.say(Evict("a", "ops", "stuck"))
    (end,) = ends(lock)
    assert end >= lock.look().tombstones[0].until >= lock.now + HOUR

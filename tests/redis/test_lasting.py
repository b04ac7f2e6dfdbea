"""Every key goes by itself when nothing needs it any more, and not before; fences rise all the same."""

from itertools import pairwise
from random import Random

import pytest
from redis import Redis

from holdfast.backends.redis import layout
from holdfast.backends.redis.scripts import ENTER, LEAVE, STEP, script
from holdfast.doorman import ALL, Admitted, Enter, Evict, Leave, Mismatch, Resize, Waiting
from tests.redis.both import hooked, replaced
from tests.redis.lives import KINDS, SECOND, ear_of, some_command
from tests.redis.luadoor import LuaDoor
from tests.servers.server import Server, until

HOUR = 3600 * SECOND
LEASE = 30 * SECOND


@pytest.fixture
def door(redis_alone: Server) -> LuaDoor:
    return LuaDoor(Redis(port=redis_alone.port))


def enter(ticket: str, **more: int) -> Enter:
    return Enter(ticket, more.get("capacity", ALL), more.get("weight", ALL), more.get("lease", LEASE), ear=f"e{ticket}")


def ends(door: LuaDoor) -> set[int]:
    """When the keys that there are will go, in microseconds."""
    found = {int(door.server.execute_command("PEXPIRETIME", key)) for key in door.keys}
    return {end * 1000 for end in found if end != -2}


def busy(door: LuaDoor) -> None:
    """All keys in use: two inside, one of them not heard yet, one in line, one buried."""
    for ticket in "abcd":
        door.say(enter(ticket, capacity=2, weight=1))
    door.say(Leave("a", bury=True))
    assert door.server.exists(*door.keys) == 6


def is_let_in(door: LuaDoor, ticket: str, **more: int) -> int:
    reply = door.short(enter(ticket, **more)) or door.say(enter(ticket, **more))
    assert isinstance(reply, Admitted), reply
    return reply.fence


def test_a_lock_that_was_used_once_is_gone_minutes_later(door: LuaDoor) -> None:
    is_let_in(door, "a")
    assert door.short(Leave("a"))
    (end,) = ends(door)
    assert layout.IDLE <= end - door.now <= LEASE + layout.IDLE


def test_all_keys_of_a_busy_one_go_at_the_same_moment_after_everything_in_them(door: LuaDoor) -> None:
    busy(door)
    (end,) = ends(door)
    record = door.look()
    last = max([e.expires for e in (*record.inside, *record.line)] + [g.until for g in record.graves])
    assert end >= last + layout.IDLE // 2


def test_a_renewed_one_lasts_on(door: LuaDoor) -> None:
    for _ in range(100):
        door.now += LEASE // 3
        is_let_in(door, "a")
        (end,) = ends(door)
        assert end >= door.now + LEASE + layout.IDLE // 2 - 1000


def test_a_size_that_was_set_is_remembered_for_a_year(door: LuaDoor) -> None:
    door.say(Resize(3))
    is_let_in(door, "a", capacity=3, weight=1)
    door.short(Leave("a"))
    (end,) = ends(door)
    assert end - door.now >= 180 * 24 * HOUR
    door.now += 180 * 24 * HOUR
    assert door.say(enter("b", capacity=2, weight=4)) == Mismatch(3)
    is_let_in(door, "a", capacity=3, weight=1)
    (end,) = ends(door)
    assert end - door.now >= 180 * 24 * HOUR


@pytest.mark.parametrize("back", [0, 10 * SECOND, HOUR], ids=["a steady clock", "ten seconds back", "an hour back"])
def test_fences_rise_over_a_record_that_has_gone(door: LuaDoor, back: int) -> None:
    fences = []
    for ticket in "abc":
        fences.append(is_let_in(door, ticket))
        door.say(Leave(ticket))
        door.now -= back
    (end,) = ends(door)
    door.server.unlink(*door.keys)
    door.now = end  # no server forgets it before
    fences.append(is_let_in(door, "d"))
    assert all(one < next_one for one, next_one in pairwise(fences))


def test_an_idle_record_really_goes_and_the_next_fence_is_higher(redis_alone: Server) -> None:
    """In real time, with records that are kept for a fifth of a second instead of ten minutes."""
    change = str(layout.IDLE), str(SECOND // 5)
    quick = hooked()._replace(
        enter=script(replaced(ENTER.text, *change)), leave=LEAVE, step=script(replaced(STEP.text, *change))
    )
    door = LuaDoor(Redis(port=redis_alone.port), scripts=quick)
    fence = is_let_in(door, "a", lease=SECOND // 10)
    door.say(enter("b", lease=SECOND // 10))
    assert door.server.exists(*door.keys) == 3
    until(lambda: not door.server.exists(*door.keys), "the record is gone")
    assert is_let_in(door, "c") > fence


# A server that is told to evict keys may take any of them at any time. Locks are lost by that, but no door is broken.


@pytest.mark.parametrize("gone", range(6), ids=["door", *layout.PARTS])
def test_a_key_that_was_evicted_breaks_no_door(door: LuaDoor, gone: int) -> None:
    tickets = [*"abcdef"]
    busy(door)
    fence = door.look().fence
    door.server.unlink(door.keys[gone])
    for ticket in tickets:
        door.say(enter(ticket, capacity=2, weight=1))
        door.say(Leave(ticket))
    door.now += 100 * SECOND
    assert is_let_in(door, "g", capacity=5, weight=5) > fence
    assert isinstance(door.say(enter("h", capacity=5, weight=5)), Waiting)


@pytest.mark.parametrize("seed", range(20))
def test_keys_that_are_evicted_again_and_again_break_no_door(door: LuaDoor, seed: int) -> None:
    chance = Random(seed)
    kind = KINDS["semaphore"]
    tickets = [f"t{i}" for i in range(7)]
    for _ in range(60):
        door.now += chance.choice(kind.ticks)
        if chance.random() < 0.2:
            door.server.unlink(*chance.sample(door.keys, chance.randint(1, 5)))
        record = door.look()
        door.say(some_command(chance, kind, tickets, record), [ear_of(t) for t in tickets if chance.random() < 0.2])
    door.now += 300 * SECOND
    door.say(Resize(4))
    is_let_in(door, "u1", capacity=4, weight=4)


def test_what_an_evicted_door_left_behind_is_nobody(door: LuaDoor) -> None:
    """The line of a door that is gone must not stand before newcomers."""
    busy(door)
    door.server.unlink(door.keys[0])
    is_let_in(door, "p", capacity=1, weight=1)
    reply = door.say(enter("q", capacity=1, weight=1))
    assert isinstance(reply, Waiting)
    assert reply.ahead == 0
    assert [e.ticket for e in door.look().line] == ["q"]


def test_an_eviction_by_an_operator_is_kept_as_long_as_its_grave(door: LuaDoor) -> None:
    is_let_in(door, "a", lease=HOUR)
    door.say(Evict("a", "ops", "stuck"))
    (end,) = ends(door)
    assert end >= door.look().graves[0].until >= door.now + HOUR

"""On a server whose memory is full, all who are known there can leave, renew, poll and be evicted; nobody can come.

Redis refuses a script when its first write could need memory; what comes after a first write that takes something away
is let through. So these run the Lua against a real server with a real limit, and the first write of each is looked at.
"""

from collections.abc import Callable

import pytest
from redis import Redis
from redis.exceptions import OutOfMemoryError

from holdfast.doorman import ALL, Admitted, Command, Done, Enter, Evict, Keep, Leave, Left, Renew, Resize, Waiting
from tests.redis.lives import SECOND
from tests.redis.luadoor import LuaDoor
from tests.servers.server import Server

LEASE = 30 * SECOND
TAKES_AWAY = {"hdel", "zrem", "zpopmin", "del"}


def enter(ticket: str, weight: int = ALL, capacity: int = ALL) -> Enter:
    return Enter(ticket, capacity, weight, LEASE, ear=f"e{ticket}")


@pytest.fixture
def server(start_redis: Callable[..., Server]) -> Redis:
    return Redis(port=start_redis().port)


def fill(server: Redis) -> None:
    server.config_set("maxmemory", 1)


def test_the_only_one_inside_leaves_by_the_short_way(server: Redis) -> None:
    door = LuaDoor(server)
    door.short(enter("a"))
    fill(server)
    assert door.short(Leave("a")) == Left(True)
    assert not door.look().inside


@pytest.mark.parametrize("bury", [False, True])
@pytest.mark.parametrize("back", [0, 5 * SECOND], ids=["a steady clock", "a clock that went back"])
@pytest.mark.parametrize("capacity", [1, 2])
def test_a_leave_hands_the_room_to_the_next_in_line(server: Redis, bury: bool, back: int, capacity: int) -> None:
    door = LuaDoor(server)
    for ticket in "abc":
        door.say(enter(ticket, 1, capacity))
    fill(server)
    door.now -= back
    assert door.say(Leave("a", bury)) == Left(True)
    assert {e.ticket for e in door.look().inside} == ({"b"} if capacity == 1 else {"b", "c"})
    assert [g.ticket for g in door.look().graves] == ["a"] * bury


KNOWN: list[tuple[Command, type]] = [
    (Enter("a", ALL, ALL, LEASE), Admitted),
    (Enter("b", ALL, ALL, LEASE), Waiting),
    (Renew("a"), Admitted),
    (Renew("a", None, 1), Admitted),
    (Keep("a", None, LEASE), Admitted),
    (Leave("b"), Left),
    (Leave("unknown"), Left),
    (Evict("a", "ops", "why"), Done),
    (Evict(None, "ops", "why", True), Done),
    (Evict("b", "ops", "why"), Done),
    (Resize(2), Done),
]


@pytest.mark.parametrize("command, kind", KNOWN, ids=[str(command)[:60] for command, _ in KNOWN])
@pytest.mark.parametrize("back", [0, 5 * SECOND], ids=["a steady clock", "a clock that went back"])
def test_whoever_is_known_is_served(server: Redis, command: Command, kind: type, back: int) -> None:
    door = LuaDoor(server)
    door.say(enter("a"))
    door.say(enter("b"))
    fill(server)
    door.now -= back
    assert isinstance(door.say(command), kind)


def test_a_newcomer_is_refused_and_nothing_is_half_done(server: Redis) -> None:
    door = LuaDoor(server)
    fill(server)
    for way in (door.short, door.say):
        with pytest.raises(OutOfMemoryError):
            way(enter("a"))
    assert server.dbsize() == 0
    server.config_set("maxmemory", 0)
    door.say(enter("a"))
    fill(server)
    before = door.look()
    for ticket in "bc":
        with pytest.raises(OutOfMemoryError):
            door.say(enter(ticket))
    assert door.look() == before


def first_write(server: Redis, do: Callable[[], object]) -> str:
    """The first command with which a script changes anything, as MONITOR shows it."""
    changing = {"hset", "hdel", "zadd", "zrem", "zpopmin", "del", "unlink", "pexpireat", "set"}
    with server.monitor() as monitor:
        do()
        server.echo("that was all")
        for line in monitor.listen():
            word = str(line["command"]).split(" ", 1)[0].strip('"').lower()
            if line["client_type"] == "lua" and word in changing:
                return word
            assert word != "echo", "nothing was written"
    raise AssertionError("nothing was heard")


@pytest.mark.parametrize("ticket", ["a", "b", "unknown"])
@pytest.mark.parametrize("bury", [False, True])
def test_the_first_write_of_every_leave_takes_something_away(server: Redis, ticket: str, bury: bool) -> None:
    door = LuaDoor(server)
    for each in "abc":
        door.say(enter(each, 1, 1))
    door.now += SECOND
    assert first_write(server, lambda: door.say(Leave(ticket, bury))) in TAKES_AWAY


def test_the_first_write_of_the_short_way_out_takes_something_away(server: Redis) -> None:
    door = LuaDoor(server)
    door.short(enter("a"))
    assert first_write(server, lambda: door.short(Leave("a"))) in TAKES_AWAY

"""On a server whose memory is full, all who are known there can leave, renew, poll and be evicted; nobody can come.

Redis refuses a script when its first write could need memory; what comes after a first write that takes something away
is let through. So these run the Lua against a real server with a real limit, and the first write of each is looked at.
"""

from collections.abc import Callable

import pytest
from redis import Redis
from redis.exceptions import OutOfMemoryError

from fairlock.rules.locks import (
    EXCLUSIVE,
    Acquire,
    Ask,
    Command,
    Detach,
    Done,
    Evict,
    Granted,
    Queued,
    Release,
    Released,
    Renew,
    Resize,
)
from tests.redis.lua_store import LuaLock
from tests.redis.random_histories import SECOND
from tests.servers.server import Server

LEASE = 30 * SECOND
TAKES_AWAY = {"hdel", "zrem", "zpopmin", "del"}


def enter(ticket: str, weight: int = EXCLUSIVE, capacity: int = EXCLUSIVE) -> Acquire:
    return Acquire(ticket, capacity, weight, LEASE, listener=f"e{ticket}")


@pytest.fixture
def server(start_redis: Callable[..., Server]) -> Redis:
    return Redis(port=start_redis().port)


def fill(server: Redis) -> None:
    server.config_set("maxmemory", 1)


def test_the_only_holder_releases_by_the_fast_script(server: Redis) -> None:
    lock = LuaLock(server)
    lock.short(enter("a"))
    fill(server)
    assert lock.short(Release("a")) == Released(True)
    assert not lock.look().holders


@pytest.mark.parametrize("leave_tombstone", [False, True])
@pytest.mark.parametrize("back", [0, 5 * SECOND], ids=["a steady clock", "a clock that went back"])
@pytest.mark.parametrize("capacity", [1, 2])
def test_a_release_grants_to_the_next_waiter(server: Redis, leave_tombstone: bool, back: int, capacity: int) -> None:
    lock = LuaLock(server)
    for ticket in "abc":
        lock.say(enter(ticket, 1, capacity))
    fill(server)
    lock.now -= back
    assert lock.say(Release("a", leave_tombstone)) == Released(True)
    assert {e.ticket for e in lock.look().holders} == ({"b"} if capacity == 1 else {"b", "c"})
    assert [g.ticket for g in lock.look().tombstones] == ["a"] * leave_tombstone


KNOWN: list[tuple[Command, type]] = [
    (Acquire("a", EXCLUSIVE, EXCLUSIVE, LEASE), Granted),
    (Acquire("b", EXCLUSIVE, EXCLUSIVE, LEASE), Queued),
    (Renew("a"), Granted),
    (Renew("a", None, 1), Granted),
    (Detach("a", None, LEASE), Granted),
    (Release("b"), Released),
    (Release("unknown"), Released),
    (Ask("a", "ops", "why"), Done),
    (Evict("a", "ops", "why"), Done),
    (Evict(None, "ops", "why", True), Done),
    (Evict("b", "ops", "why"), Done),
    (Resize(2), Done),
]


@pytest.mark.parametrize("command, kind", KNOWN, ids=[str(command)[:60] for command, _ in KNOWN])
@pytest.mark.parametrize("back", [0, 5 * SECOND], ids=["a steady clock", "a clock that went back"])
def test_a_known_ticket_is_served(server: Redis, command: Command, kind: type, back: int) -> None:
    lock = LuaLock(server)
    lock.say(enter("a"))
    lock.say(enter("b"))
    fill(server)
    lock.now -= back
    assert isinstance(lock.say(command), kind)


def test_a_newcomer_is_refused_and_nothing_is_half_done(server: Redis) -> None:
    lock = LuaLock(server)
    fill(server)
    for way in (lock.short, lock.say):
        with pytest.raises(OutOfMemoryError):
            way(enter("a"))
    assert server.dbsize() == 0
    server.config_set("maxmemory", 0)
    lock.say(enter("a"))
    fill(server)
    before = lock.look()
    for ticket in "bc":
        with pytest.raises(OutOfMemoryError):
            lock.say(enter(ticket))
    assert lock.look() == before


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
    raise AssertionError("the monitor showed nothing")


@pytest.mark.parametrize("ticket", ["a", "b", "unknown"])
@pytest.mark.parametrize("leave_tombstone", [False, True])
def test_the_first_write_of_every_release_removes_something(server: Redis, ticket: str, leave_tombstone: bool) -> None:
    lock = LuaLock(server)
    for each in "abc":
        lock.say(enter(each, 1, 1))
    lock.now += SECOND
    assert first_write(server, lambda: lock.say(Release(ticket, leave_tombstone))) in TAKES_AWAY


def test_the_first_write_of_the_short_way_out_takes_something_away(server: Redis) -> None:
    lock = LuaLock(server)
    lock.short(enter("a"))
    assert first_write(server, lambda: lock.short(Release("a"))) in TAKES_AWAY

"""A step costs the same however many stand in the queue or are inside: counted in calls that the scripts make.

The time that they take is bench/redis_server.py's; here it would be a matter of luck.
"""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from redis import Redis

from fairlock.rules.locks import EXCLUSIVE, Acquire, Command, Release, Renew
from tests.redis.lua_store import LuaLock
from tests.redis.random_histories import SECOND
from tests.servers.server import Server

MANY = 10_000


@pytest.fixture
def server(redis_alone: Server) -> Redis:
    return Redis(port=redis_alone.port)


def calls(server: Redis, do: Callable[[], object]) -> int:
    """Return the number of commands that the scripts have run, without those for the time and for the listeners: these
    are arguments here."""
    server.config_resetstat()
    do()
    stats = server.info("commandstats")
    ours = {"cmdstat_evalsha", "cmdstat_info", "cmdstat_config|resetstat"}
    return sum(stat["calls"] for name, stat in stats.items() if name not in ours)


def wait(number: int) -> Acquire:
    return Acquire(f"t{number}", EXCLUSIVE, EXCLUSIVE, 1000 * SECOND, listener="e")


def hold(number: int) -> Acquire:
    return Acquire(f"t{number}", 2 * MANY, 1, 1000 * SECOND, listener="e")


def crowd(server: Redis, name: str, size: int, come: Callable[[int], Acquire]) -> LuaLock:
    lock = LuaLock(server, name)
    with server.pipeline(transaction=False) as pipe:
        alone, lock.server = lock.server, pipe
        for number in range(size):
            lock.send(come(number))
        lock.server = alone
        pipe.execute()
    return lock


def one_of_each(size: int, come: Callable[[int], Acquire]) -> Iterator[Command]:
    """Somebody comes, polls, a holder renews, leaves, and one in the middle does."""
    yield come(size)
    yield come(size)
    yield come(size // 2)
    yield Renew("t0")
    yield Release("t0")
    yield Release(f"t{size // 2}")
    yield Release(f"t{size}")


@pytest.mark.parametrize("come", [wait, hold])
def test_ten_thousand_cost_what_ten_cost(server: Redis, come: Callable[[int], Acquire]) -> None:
    found = []
    for size in (10, MANY):
        lock = crowd(server, f"of {size}", size, come)
        found.append([calls(server, partial(lock.say, command)) for command in one_of_each(size, come)])
    few, many = found
    assert many == few


def test_a_hand_off_and_the_next_waiter_are_eleven_calls(server: Redis) -> None:
    """With one of them for the time in each script, and one for the listeners of the next holder."""
    lock = crowd(server, "x", 10, wait)
    lock.now += SECOND
    assert calls(server, lambda: lock.say(wait(10))) + 1 == 4
    assert calls(server, lambda: lock.say(Release("t0"))) + 2 == 7


def test_the_short_ways_are_two_calls_and_the_time(server: Redis) -> None:
    lock = LuaLock(server)
    lock.short(wait(0))
    lock.short(Release("t0"))
    assert calls(server, lambda: lock.short(wait(1))) == 2
    assert calls(server, lambda: lock.short(Release("t1"))) == 2

"""A step costs the same however many stand in line or are inside: counted in calls that the scripts make.

The time that they take is bench/redis_server.py's; here it would be a matter of luck.
"""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from redis import Redis

from holdfast.doorman import ALL, Command, Enter, Leave, Renew
from tests.redis.lives import SECOND
from tests.redis.luadoor import LuaDoor
from tests.servers.server import Server

MANY = 10_000


@pytest.fixture
def server(redis_alone: Server) -> Redis:
    return Redis(port=redis_alone.port)


def calls(server: Redis, do: Callable[[], object]) -> int:
    """How many commands the scripts have given, not counting those for the time and for who listens."""
    server.config_resetstat()
    do()
    stats = server.info("commandstats")
    ours = {"cmdstat_evalsha", "cmdstat_info", "cmdstat_config|resetstat"}
    return sum(stat["calls"] for name, stat in stats.items() if name not in ours)


def wait(number: int) -> Enter:
    return Enter(f"t{number}", ALL, ALL, 1000 * SECOND, ear="e")


def hold(number: int) -> Enter:
    return Enter(f"t{number}", 2 * MANY, 1, 1000 * SECOND, ear="e")


def crowd(server: Redis, name: str, size: int, come: Callable[[int], Enter]) -> LuaDoor:
    door = LuaDoor(server, name)
    with server.pipeline(transaction=False) as pipe:
        alone, door.server = door.server, pipe
        for number in range(size):
            door.send(come(number))
        door.server = alone
        pipe.execute()
    return door


def one_of_each(size: int, come: Callable[[int], Enter]) -> Iterator[Command]:
    """Somebody comes, polls, a holder renews, leaves, and one in the middle does."""
    yield come(size)
    yield come(size)
    yield come(size // 2)
    yield Renew("t0")
    yield Leave("t0")
    yield Leave(f"t{size // 2}")
    yield Leave(f"t{size}")


@pytest.mark.parametrize("come", [wait, hold])
def test_ten_thousand_cost_what_ten_cost(server: Redis, come: Callable[[int], Enter]) -> None:
    found = []
    for size in (10, MANY):
        door = crowd(server, f"of {size}", size, come)
        found.append([calls(server, partial(door.say, command)) for command in one_of_each(size, come)])
    few, many = found
    assert many == few


def test_a_step_of_a_contended_lock_is_ten_calls(server: Redis) -> None:
    door = crowd(server, "x", 10, wait)
    door.now += SECOND
    assert calls(server, lambda: door.say(wait(10))) <= 8
    assert calls(server, lambda: door.say(Leave("t0"))) <= 10


def test_the_short_ways_are_two_calls_and_the_time(server: Redis) -> None:
    door = LuaDoor(server)
    door.short(wait(0))
    door.short(Leave("t0"))
    assert calls(server, lambda: door.short(wait(1))) == 2
    assert calls(server, lambda: door.short(Leave("t1"))) == 2

"""What a step of a lock costs a Redis server, with few and with many in the queue or inside.

    ./dev bench redis_server [--rounds N]

The server's own figures (INFO commandstats), so neither client nor network is in them. Within a round, few and many
take turns of a few dozen steps each; a ratio is taken within a round, and the median of those is printed.
"""

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.append(sys.path.pop(0))  # or bench/redis.py would be found as the driver of the same name
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from redis import Redis

from fairlock.rules.locks import EXCLUSIVE, Acquire, Command, Release
from fairlock.stores.redis import encoding
from fairlock.stores.redis.lua_scripts import FAST_ACQUIRE, FAST_RELEASE, STEP
from tests.servers.fixtures import redis_program
from tests.servers.server import Server

MANY = 10_000
TURN, TURNS = 40, 60  # so short that most turns are not interrupted by whatever else runs on this machine
LEASE = 600_000_000
LISTENER = "0123456789abcdef"
OWNER = "web-3:4117"


class Crowd(NamedTuple):
    """A lock with many holders or waiters. `steps` goes on forever: one releases, another one acquires."""

    server: Redis
    keys: list[str]
    steps: Iterator[Command]

    def send(self, commands: list[Command]) -> None:
        with self.server.pipeline(transaction=False) as pipe:
            for command in commands:
                pipe.evalsha(STEP.sha, len(self.keys), *self.keys, *encoding.message_args(command))
            pipe.execute()

    def turn(self) -> None:
        self.send([next(self.steps) for _ in range(TURN)])


def waiter(number: int) -> Acquire:
    return Acquire(f"{LISTENER}-{number:08}", EXCLUSIVE, EXCLUSIVE, LEASE, block=32, listener=LISTENER, owner=OWNER)


def holder(number: int) -> Acquire:
    return Acquire(f"{LISTENER}-{number:08}", 2 * MANY, 1, LEASE, listener=LISTENER, owner=OWNER)


def crowd(server: Redis, name: str, size: int, come: Callable[[int], Acquire]) -> Crowd:
    def steps() -> Iterator[Command]:
        number = 0
        while True:
            yield Release(come(number).ticket)
            yield come(number + size)
            number += 1

    found = Crowd(server, encoding.keys("", name), steps())
    found.send([come(number) for number in range(size)])
    return found


class Short(NamedTuple):
    """One lock that nobody else wants, by the short ways in and out."""

    server: Redis
    state: str

    def turn(self) -> None:
        with self.server.pipeline(transaction=False) as pipe:
            for number in range(TURN // 2):
                acquire = waiter(number)
                pipe.evalsha(FAST_ACQUIRE.sha, 1, self.state, *encoding.fast_args(acquire))
                pipe.evalsha(FAST_RELEASE.sha, 1, self.state, *encoding.fast_args(Release(acquire.ticket)))
            pipe.execute()


def cost(server: Redis, turn: Callable[[], None]) -> tuple[float, float]:
    """Microseconds of the server for one step, and the calls that it makes inside, during this turn."""
    server.config_resetstat()
    turn()
    stats = server.info("commandstats")
    steps = stats.pop("cmdstat_evalsha")
    ours = {"cmdstat_info", "cmdstat_config|resetstat"}
    inner = sum(stat["calls"] for name, stat in stats.items() if name not in ours)
    return float(steps["usec_per_call"]), inner / steps["calls"]


def measure(server: Redis) -> dict[str, tuple[float, float]]:
    """One round. A place in the queue lasts 30 s without a poll, so each round has its own crowds."""
    server.flushall()
    crowds: dict[str, Crowd | Short] = {
        "alone, the short way": Short(server, encoding.keys("", "short")[0]),
        "alone, the full step": crowd(server, "slots, 0", 1, holder),
        "1 in the queue": crowd(server, "line of 1", 2, waiter),
        f"{MANY:,} in the queue": crowd(server, "line of many", MANY + 1, waiter),
        "1 other holder": crowd(server, "slots, 1", 2, holder),
        f"{MANY:,} other holders": crowd(server, "slots, many", MANY + 1, holder),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in crowds}
    for _ in range(TURNS):
        for name, each in crowds.items():
            found[name].append(cost(server, each.turn))
    return {
        name: (statistics.median(time for time, _ in costs), statistics.median(calls for _, calls in costs))
        for name, costs in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What a step of a lock costs a Redis server.")
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    process = Server(redis_program())
    try:
        server = Redis(port=process.port)
        for each in (FAST_ACQUIRE, FAST_RELEASE, STEP):
            server.script_load(each.text)
        listeners = server.pubsub()
        listeners.subscribe(encoding.LISTENERS + LISTENER)  # somebody listens: nobody is passed over
        listeners.get_message(timeout=5)
        found = [measure(server) for _ in range(rounds)]
    finally:
        process.end()
    for name in found[0]:
        time, calls = (statistics.median(each[name][n] for each in found) for n in range(2))
        print(f"{name:24}{time:8.1f} µs a step, {2 * calls:.0f} calls inside for two (one releases, one acquires)")
    for few, many in (("1 in the queue", f"{MANY:,} in the queue"), ("1 other holder", f"{MANY:,} other holders")):
        ratio = statistics.median(each[many][0] / each[few][0] for each in found)
        print(f"{many} : {few}{'':{40 - len(many) - len(few)}}{ratio:8.2f}")


if __name__ == "__main__":
    main()

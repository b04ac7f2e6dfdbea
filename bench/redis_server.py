"""What a step of a lock costs a Redis server, with few and with many in line or inside.

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

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from redis import Redis

from holdfast.backends.redis import layout
from holdfast.backends.redis.scripts import ENTER, LEAVE, STEP
from holdfast.doorman import ALL, Command, Enter, Leave
from tests.servers.fixtures import redis_program
from tests.servers.server import Server

MANY = 10_000
TURN, TURNS = 40, 60  # so short that most turns are not interrupted by whatever else runs on this machine
LEASE = 600_000_000
EAR = "0123456789abcdef"
OWNER = "web-3:4117"


class Crowd(NamedTuple):
    """A door with so many at it. `steps` goes on for ever: one leaves, another one comes."""

    server: Redis
    keys: list[str]
    steps: Iterator[Command]

    def say(self, commands: list[Command]) -> None:
        with self.server.pipeline(transaction=False) as pipe:
            for command in commands:
                pipe.evalsha(STEP.sha, len(self.keys), *self.keys, layout.EARS, *layout.words(command))
            pipe.execute()

    def turn(self) -> None:
        self.say([next(self.steps) for _ in range(TURN)])


def waiter(number: int) -> Enter:
    return Enter(f"{EAR}-{number:08}", ALL, ALL, LEASE, block=32, ear=EAR, owner=OWNER)


def holder(number: int) -> Enter:
    return Enter(f"{EAR}-{number:08}", 2 * MANY, 1, LEASE, ear=EAR, owner=OWNER)


def crowd(server: Redis, name: str, size: int, come: Callable[[int], Enter]) -> Crowd:
    def steps() -> Iterator[Command]:
        number = 0
        while True:
            yield Leave(come(number).ticket)
            yield come(number + size)
            number += 1

    found = Crowd(server, layout.keys("", name), steps())
    found.say([come(number) for number in range(size)])
    return found


class Short(NamedTuple):
    """One lock that nobody else wants, by the short ways in and out."""

    server: Redis
    door: str

    def turn(self) -> None:
        with self.server.pipeline(transaction=False) as pipe:
            for number in range(TURN // 2):
                ticket = f"{EAR}-{number:08}"
                pipe.evalsha(ENTER.sha, 1, self.door, ticket, ALL, ALL, LEASE, 32, EAR, OWNER, "")
                pipe.evalsha(LEAVE.sha, 1, self.door, ticket, "")
            pipe.execute()


def cost(server: Redis, turn: Callable[[], None]) -> float:
    """Microseconds of the server for one step, during this turn."""
    server.config_resetstat()
    turn()
    return float(server.info("commandstats")["cmdstat_evalsha"]["usec_per_call"])


def measure(server: Redis) -> dict[str, float]:
    """One round. A place in line lasts 30 s without a poll, so each has its own crowds."""
    server.flushall()
    crowds: dict[str, Crowd | Short] = {
        "alone, the short way": Short(server, layout.keys("", "short")[0]),
        "alone, the full step": crowd(server, "slots, 0", 1, holder),
        "1 in line": crowd(server, "line of 1", 2, waiter),
        f"{MANY:,} in line": crowd(server, "line of many", MANY + 1, waiter),
        "1 other holder": crowd(server, "slots, 1", 2, holder),
        f"{MANY:,} other holders": crowd(server, "slots, many", MANY + 1, holder),
    }
    found: dict[str, list[float]] = {name: [] for name in crowds}
    for _ in range(TURNS):
        for name, each in crowds.items():
            found[name].append(cost(server, each.turn))
    return {name: statistics.median(costs) for name, costs in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="What a step of a lock costs a Redis server.")
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    process = Server(redis_program())
    try:
        server = Redis(port=process.port)
        for each in (ENTER, LEAVE, STEP):
            server.script_load(each.text)
        ears = server.pubsub()
        ears.subscribe(layout.EARS + EAR)  # somebody listens: nobody is passed over
        ears.get_message(timeout=5)
        found = [measure(server) for _ in range(rounds)]
    finally:
        process.end()
    for name in found[0]:
        print(f"{name:24}{statistics.median(each[name] for each in found):8.1f} µs a step")
    for few, many in (("1 in line", f"{MANY:,} in line"), ("1 other holder", f"{MANY:,} other holders")):
        ratio = statistics.median(each[many] / each[few] for each in found)
        print(f"{many} : {few}{'':{40 - len(many) - len(few)}}{ratio:8.2f}")


if __name__ == "__main__":
    main()

"""A client that renews many leases by one message, and whose messages can be given another outcome."""

from collections.abc import Callable
from typing import Any

from tests.simulation.actors import Stage
from tests.simulation.client import Client
from tests.simulation.engine_under_test import EngineUnderTest
from tests.simulation.invariants import Stay

SIZE = 4  # leases in one message


class Messages:
    """Makes a client renew by messages, and can give single renewals another outcome."""

    def __init__(self, stage: Stage, client: Client) -> None:
        self.stage = stage
        self.client = client
        self.sent: list[tuple[float, list[str]]] = []
        self.outcomes: dict[str, Callable[[], Exception]] = {}
        self.takes = 0.0  # seconds for each message
        self.hangs = 0.0  # seconds for which a message hangs that has such an outcome
        client.backend.batch_size = SIZE
        client.backend.call_many = self.call_many

    async def call_many(self, calls: list[tuple[str, Any]]) -> list[Any]:
        self.sent.append((self.client.process.clock(), [name for name, _ in calls]))
        if self.takes:
            await self.client.runtime.sleep(self.takes)
        if self.hangs and self.outcomes.keys() & {name for name, _ in calls}:
            await self.client.runtime.sleep(self.hangs)
        found = []
        for name, command in calls:
            if name in self.outcomes:
                found.append(self.outcomes[name]())
            else:
                found.append(await self.client.backend.call(name, command))
        return found


def holding(
    engine: EngineUnderTest, count: int, lease: float = 2.0, apart: float = 0.0
) -> tuple[Stage, Messages, list[Stay]]:
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    messages = Messages(stage, a)
    tasks = []
    for number in range(count):
        tasks.append(stage.go(a, a.get(a.request(f"x{number}", lease=lease))))
        if apart:
            stage.until(apart * (number + 1))
    stage.until(0.1 + apart * count)
    return stage, messages, [stage.result(task) for task in tasks]


def held(stays: list[Stay]) -> list[bool]:
    return [stay.hold.held for stay in stays]

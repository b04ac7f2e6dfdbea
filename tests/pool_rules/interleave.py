"""Every order in which the steps of a few orders can mingle, over the engine of all stores that compare and swap.

Each operation of the store waits for its turn. A schedule says whose turn it is; all schedules are tried, one after the
other, from the beginning. One of them may also die: from then on it has no turns.
"""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from fairlock.rules.pools import Order, WorkerQueue
from fairlock.stores.base import Pushed
from fairlock.stores.cas import CasBackend
from fairlock.sync.runtime import ThreadRuntime
from fairlock.testing import DictServer, DictStore
from tests.pool_rules.walkthrough import START

TURNS = ("read", "write", "delete", "between", "scan")


class Turn:
    """Awaiting it lets the scheduler decide who goes on."""

    def __await__(self) -> Iterator[None]:
        yield


class Waiter(DictStore):
    """A store whose every operation waits for its turn, and whose hints are written down."""

    def __init__(self, stage: "Stage", name: str) -> None:
        super().__init__(stage.server, ThreadRuntime())
        self.stage = stage
        self.name = name

    async def wake(self, woken: Any) -> None:
        await Turn()
        self.stage.hints += [wake.ticket for wake in woken]

    async def wait_for_wakeup(self, *_: Any) -> Pushed | None:
        raise NotImplementedError


def _in_turn(name: str) -> Any:
    async def operation(self: Waiter, *args: Any) -> Any:
        await Turn()
        return await getattr(DictStore, name)(self, *args)

    return operation


for _name in TURNS:
    if _name != "between":  # that one scans, and has its turn there
        setattr(Waiter, _name, _in_turn(_name))


class Stage:
    """One server and its clock, some clients, and what they were answered."""

    def __init__(self) -> None:
        self.now = START
        self.server = DictServer(lambda: self.now)
        self.hints: list[str] = []
        self.replies: dict[str, Any] = {}
        self.clients: dict[str, Any] = {}

    def pools(self, name: str) -> Any:
        if name not in self.clients:
            store = Waiter(self, name)
            self.clients[name] = CasBackend(store, ThreadRuntime()).pools
        return self.clients[name]

    def listener(self, name: str) -> str:
        return str(self.pools(name).store.listener)

    async def _say(self, name: str, order: Order) -> None:
        self.replies[name] = (await self.pools(name).call("jobs", order)).reply

    def say(self, name: str, order: Order) -> Any:
        """Alone, and to its end."""
        finish(self._say(name, order))
        return self.replies[name]

    def begin(self, name: str, order: Order) -> Coroutine[Any, Any, None]:
        return self._say(name, order)

    def items(self) -> dict[str, Any]:
        found, _ = finish(self.pools("eye").all("jobs"))
        return {item.key: item for item in found}

    def queue(self) -> list[str]:
        queue: WorkerQueue = finish(self.pools("eye").queue("jobs"))
        return [w.ticket for w in queue.workers]


def finish(work: Coroutine[Any, Any, Any]) -> Any:
    while True:
        try:
            work.send(None)
        except StopIteration as done:
            return done.value


def every_order(
    scene: Callable[[], tuple[Stage, list[Coroutine[Any, Any, None]]]],
    check: Callable[[Stage], None],
    mortal: int | None = None,
    limit: int = 20_000,
    switches: int = 4,
) -> int:
    """Play the scene in every order of turns with at most `switches` turns taken from one that could go on (nearly
    every mistake of this kind needs two); with a mortal, also with its death before each turn. Return how many."""
    played = 0
    schedules: list[list[int]] = [[]]  # beginnings; what comes after them is always the first that can go on
    while schedules:
        beginning = schedules.pop()
        stage, works = scene()
        alive = dict(enumerate(works))
        path: list[int] = []
        passed = 0
        while alive:
            last = path[-1] if path and path[-1] in alive else min(alive)
            choices = [last, *(each for each in sorted(alive) if each != last and passed < switches)]
            if mortal in alive:
                choices.append(-1)  # it dies
            at = len(path)
            choice = beginning[at] if at < len(beginning) else choices[0]
            if at >= len(beginning):
                schedules += [[*path, other] for other in choices[1:]]
            passed += choice not in (last, -1)
            path.append(choice)
            if choice == -1:
                assert mortal is not None
                alive.pop(mortal).close()
                continue
            try:
                alive[choice].send(None)
            except StopIteration:
                del alive[choice]
        try:
            check(stage)
        except AssertionError as wrong:
            wrong.add_note(f"turns: {path}; hints {stage.hints}; replies {stage.replies}; queue {stage.queue()}")
            wrong.add_note(f"items {stage.items()}")
            raise
        played += 1
        assert played < limit, "too many"
    return played

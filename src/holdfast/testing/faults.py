"""What can go wrong between a client and its store, made to happen: by script, by seeded chance, or by hand.

    before   lost on the way: nothing was done, nobody knows             (Unknown)
    after    done, and the reply is lost                                  (Unknown)
    late     nobody knows, and it is done after the next thing that is    (Unknown)
    twice    done, and done once more: the wire doubled it
    slow     done after a pause
    down     refused at once, nothing was done                            (BackendError)

`FaultyBackend` stands between the flows and any backend, where what is said is a command (Enter, Renew, Leave, …);
`FaultyStore` between `CasBackend` and any store, where it is read, write, wake and so on.

    faults = Faults("before", "after", on="Enter")       # the first two Enters, then nothing any more
    faults = Faults.by_chance(7, before=0.1, after=0.1)  # one in five, the same ones for the same seed
    faults.cut = True                                    # from now on nothing gets through
    faults.hang = True                                   # from now on nobody answers, until it is False again
    faults.deaf = True                                   # hints get lost
    install(faults, locks)                               # into a client
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..backends.contract import Answer, Backend, Colour, Pushed, Row, Seen, Store, Unknown, Written
from ..backends.pool_contract import PoolAnswer
from ..doorman import Command, Wake
from ..errors import BackendError
from ..pool import On, Order

if TYPE_CHECKING:
    from ..flow.desk import Desk

KINDS = ("before", "after", "late", "twice", "slow", "down")
PAUSE = 0.05  # of a slow one, in seconds of the client's clock
GLANCE = 0.01  # how often one who hangs looks whether it is over


class Faults:
    def __init__(self, *script: str | None, on: str | Collection[str] = ()) -> None:
        """These faults, one after the other (None: this one goes well), for what is named in `on`, or for anything."""
        _check(script)
        self._script = deque(script)
        self._on = {on} if isinstance(on, str) else set(on)
        self._chance: random.Random | None = None
        self._chances: dict[str, float] = {}
        self.cut = False
        self.hang = False
        self.deaf = False
        self.said: list[str] = []
        """Everything that was said, in its order: the names of commands, or of the store's methods."""
        self.made: list[tuple[str, str]] = []
        """The faults that happened: what was said, and what went wrong with it."""

    @classmethod
    def by_chance(cls, seed: int, *, on: str | Collection[str] = (), **chances: float) -> Faults:
        """Each with its probability: by_chance(7, before=0.1, slow=0.05)."""
        _check(chances)
        faults = cls(on=on)
        faults._chance = random.Random(seed)
        faults._chances = chances
        return faults

    def then(self, *script: str | None) -> None:
        """Go on with these."""
        _check(script)
        self._script.extend(script)

    def over(self) -> None:
        """From now on all goes well."""
        self._script.clear()
        self._chance = None
        self.cut = self.hang = self.deaf = False

    def next(self, what: str) -> str:
        """What happens to this one: '' or the name of a fault."""
        self.said.append(what)
        if self.cut:
            fault = "down"
        elif self._on and what not in self._on:
            fault = ""
        elif self._chance is not None:
            fault = self._draw(self._chance)
        else:
            fault = (self._script.popleft() or "") if self._script else ""
        if fault:
            self.made.append((what, fault))
        return fault

    def _draw(self, chance: random.Random) -> str:
        number = chance.random()
        for fault, share in self._chances.items():
            number -= share
            if number < 0:
                return fault
        return ""


def _check(script: Collection[str | None]) -> None:
    for fault in script:
        if fault is not None and fault not in KINDS:
            raise ValueError(f"There is no fault {fault!r}; there are {', '.join(KINDS)}.")


class _Faulty:
    """What both wrappers share: everything that is not changed goes straight through."""

    def __init__(self, inner: Any, faults: Faults, colour: Colour) -> None:
        self.inner = inner
        self.faults = faults
        self._colour = colour
        self._late: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def _do(self, what: str, method: str, *args: Any) -> Any:
        fault = self.faults.next(what)
        while self.faults.hang:
            await self._colour.sleep(GLANCE)
            fault = "down" if self.faults.cut else fault
        if fault == "down":
            raise BackendError("the store is down, because a test wants it so")
        if fault in ("before", "late"):
            if fault == "late":
                self._late.append((method, args))
            raise Unknown("lost on the way, because a test wants it so")
        if fault == "slow":
            await self._colour.sleep(PAUSE)
        result = await getattr(self.inner, method)(*args)
        if fault == "twice":
            await getattr(self.inner, method)(*args)
        late, self._late = self._late, []
        for one, its_args in late:
            await getattr(self.inner, one)(*its_args)
        if fault == "after":
            raise Unknown("the reply was lost, because a test wants it so")
        return result


class FaultyBackend(_Faulty):
    """Any backend, with faults in `ask`, and hints that may get lost."""

    if TYPE_CHECKING:
        inner: Backend

    async def ask(self, name: str, command: Command) -> Answer:
        answer: Answer = await self._do(type(command).__name__, "ask", name, command)
        return answer

    def at_once(self, name: str, command: Command) -> Answer | None:
        return None  # or it would go past the faults

    soon = None  # and so would this

    @property
    def pools(self) -> FaultyPools | None:
        pools = getattr(self.inner, "pools", None)
        return FaultyPools(pools, self.faults, self._colour) if pools is not None else None

    async def changed(self, name: str, ticket: str, timeout: float) -> Pushed | None:
        pushed = await self.inner.changed(name, ticket, timeout)
        if pushed is None or not self.faults.deaf:
            return pushed
        await self._colour.sleep(timeout)  # as if nothing had come
        return None


class FaultyPools(_Faulty):
    """The pools of any backend, with faults in `ask`: Put, Seek, Quit, and Touch, Give, Finish, Remove for an item."""

    async def ask(self, pool: str, order: Order) -> PoolAnswer:
        said = order.command if isinstance(order, On) else order
        answer: PoolAnswer = await self._do(type(said).__name__, "ask", pool, order)
        return answer

    def at_once(self, pool: str, order: Order) -> PoolAnswer | None:
        return None  # or it would go past the faults

    async def changed(self, pool: str, ticket: str, timeout: float) -> None:
        await (self._colour.sleep(timeout) if self.faults.deaf else self.inner.changed(pool, ticket, timeout))


class FaultyStore(_Faulty):
    """Any store, with faults in what talks to it."""

    if TYPE_CHECKING:
        inner: Store

    async def read(self, key: str, settle: bool = False) -> Seen:
        seen: Seen = await self._do("read", "read", key, settle)
        return seen

    async def write(self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wake]) -> Written | Seen:
        heard = () if self.faults.deaf else woken
        result: Written | Seen = await self._do("write", "write", row, expected, now, heard)
        return result

    def put(self, *row: Any) -> None:
        return None  # or it would go past the faults

    soon = None  # and so would this

    async def scan(self, prefix: str) -> list[Seen]:
        found: list[Seen] = await self._do("scan", "scan", prefix)
        return found

    async def delete(self, key: str, expected: int | str) -> bool:
        done: bool = await self._do("delete", "delete", key, expected)
        return done

    async def wake(self, woken: Sequence[Wake]) -> None:
        if not self.faults.deaf:
            await self.inner.wake(woken)


class _Client(Protocol):
    _desk: Desk


def install(faults: Faults, *clients: _Client, store: bool = False) -> Faults:
    """Put these faults between a client and its backend, or (store=True) between its CasBackend and its store."""
    for client in clients:
        desk = client._desk
        if store:
            backend: Any = desk.backend
            backend.store = FaultyStore(backend.store, faults, desk.colour)
        else:
            desk.backend = FaultyBackend(desk.backend, faults, desk.colour)
    return faults


def everywhere(kinds: Sequence[str] = ("before", "after"), places: int = 6) -> Iterator[tuple[str | None, ...]]:
    """Every script with one fault in it: at the first place, at the second, and so on."""
    for kind in kinds:
        for place in range(places):
            yield (*[None] * place, kind)

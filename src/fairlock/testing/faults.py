"""Makes faults between a client and its store: by a script, at random with a seed, or on demand.

    before   the request is lost: nothing was done                        (OutcomeUnknown)
    after    done, and the reply is lost                                  (OutcomeUnknown)
    late     not done yet, but after the next request that is done        (OutcomeUnknown)
    twice    done, and done once more: the network duplicated it
    slow     done after a pause
    down     refused at once, nothing was done                            (StoreError)

`FaultyBackend` stands between the engine and any backend, where a request is a command (Acquire, Renew, Release, …);
`FaultyStore` between `CasBackend` and any store, where it is read, write, wake and so on.

    faults = Faults("before", "after", on="Acquire")     # the first two Acquires, then none
    faults = Faults.by_chance(7, before=0.1, after=0.1)  # one in five, the same ones for the same seed
    faults.cut = True                                    # from now on nothing gets through
    faults.hang = True                                   # from now on no reply comes, until it is False again
    faults.unreachable = True                            # wake-ups get lost
    install(faults, locks)                               # into a client
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..errors import StoreError
from ..rules.locks import Command, Wakeup
from ..rules.pools import On, Order
from ..stores.base import (
    Answer,
    Backend,
    ItemStore,
    OutcomeUnknown,
    PoolAnswer,
    Pools,
    Pushed,
    Row,
    RowSnapshot,
    Runtime,
    ScoredStore,
    Store,
    Written,
)

if TYPE_CHECKING:
    from ..engine.session import Session

T = TypeVar("T")

KINDS = ("before", "after", "late", "twice", "slow", "down")
PAUSE = 0.05  # of a slow one, in seconds of the client's clock
HANG_POLL = 0.01  # seconds between two checks of a request that hangs


class Faults:
    def __init__(self, *script: str | None, on: str | Collection[str] = ()) -> None:
        """Make these faults in order (None: no fault), for the requests named in `on`, or for all."""
        _check(script)
        self._script = deque(script)
        self._on = {on} if isinstance(on, str) else set(on)
        self._chance: random.Random | None = None
        self._chances: dict[str, float] = {}
        self.cut = False
        self.hang = False
        self.unreachable = False
        self.sent: list[str] = []
        """All requests, in order: the names of commands, or of the store's methods."""
        self.made: list[tuple[str, str]] = []
        """The faults that happened: the request, and what went wrong with it."""

    @classmethod
    def by_chance(cls, seed: int, *, on: str | Collection[str] = (), **chances: float) -> Faults:
        """Return faults with these probabilities: by_chance(7, before=0.1, slow=0.05)."""
        _check(chances)
        faults = cls(on=on)
        faults._chance = random.Random(seed)
        faults._chances = {**chances, "": 1 - sum(chances.values())}
        return faults

    def then(self, *script: str | None) -> None:
        """Make these faults after the others."""
        _check(script)
        self._script.extend(script)

    def over(self) -> None:
        """Make no more faults."""
        self._script.clear()
        self._chance = None
        self.cut = self.hang = self.unreachable = False

    def next(self, what: str) -> str:
        """Return what happens to this request: '' or the name of a fault."""
        self.sent.append(what)
        if self.cut:
            fault = "down"
        elif self._on and what not in self._on:
            fault = ""
        elif self._chance is not None:
            (fault,) = self._chance.choices(list(self._chances), list(self._chances.values()))
        else:
            fault = (self._script.popleft() or "") if self._script else ""
        if fault:
            self.made.append((what, fault))
        return fault


def _check(script: Collection[str | None]) -> None:
    for fault in script:
        if fault is not None and fault not in KINDS:
            raise ValueError(f"There is no fault {fault!r}; there are {', '.join(KINDS)}.")


class _Faulty:
    """The base of the wrappers: every member of the contract that a wrapper does not define goes straight through.
    (Checkers cannot see that: each wrapper names for them those that are abstract.)"""

    def __init_subclass__(cls) -> None:
        contract = next(base for base in cls.__mro__ if base.__module__ == Store.__module__)
        for name in dir(contract):
            if not name.startswith("_") and name not in cls.__dict__:
                setattr(cls, name, property(attrgetter(f"inner.{name}")))

    def __init__(self, inner: Any, faults: Faults, runtime: Runtime) -> None:
        self.inner = inner
        self.faults = faults
        self._runtime = runtime
        self._late: list[Callable[[], Awaitable[object]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def _do(self, what: str, method: Callable[[], Awaitable[T]]) -> T:
        fault = self.faults.next(what)
        while self.faults.hang:
            await self._runtime.sleep(HANG_POLL)
            fault = "down" if self.faults.cut else fault
        if fault == "down":
            raise StoreError("the store is down, because a test wants it so")
        if fault in ("before", "late"):
            if fault == "late":
                self._late.append(method)
            raise OutcomeUnknown("lost on the way, because a test wants it so")
        if fault == "slow":
            await self._runtime.sleep(PAUSE)
        result = await method()
        if fault == "twice":
            await method()
        late, self._late = self._late, []
        for one in late:
            await one()
        if fault == "after":
            raise OutcomeUnknown("the reply was lost, because a test wants it so")
        return result


class FaultyBackend(_Faulty, Backend):
    """Any backend, with faults in `call`, and wake-ups that may get lost."""

    if TYPE_CHECKING:
        inner: Backend
        wake_here, ping, repair, look, looks = (
            Backend.wake_here, Backend.ping, Backend.repair, Backend.look, Backend.looks
        )  # fmt: skip

    async def call(self, name: str, command: Command) -> Answer:
        return await self._do(type(command).__name__, partial(self.inner.call, name, command))

    def call_nowait(self, name: str, command: Command) -> Answer | None:
        return None  # or it would go past the faults

    def acquire_soon(self, *_: Any) -> None:
        return None  # and so would this

    def release_soon(self, *_: Any) -> None:
        return None

    batch_size = 1
    call_many = Backend.call_many  # each step by itself, with its own fault

    @property
    def pools(self) -> FaultyPools | None:
        pools = self.inner.pools
        return FaultyPools(pools, self.faults, self._runtime) if pools is not None else None

    async def wait_for_wakeup(self, name: str, ticket: str, timeout: float) -> Pushed | None:
        pushed = await self.inner.wait_for_wakeup(name, ticket, timeout)
        if pushed is None or not self.faults.unreachable:
            return pushed
        await self._runtime.sleep(timeout)  # as if nothing had come
        return None


class FaultyPools(_Faulty, Pools):
    """The pools of any backend, with faults in `call`: Put, Seek, Quit, and Touch, Give, Finish, Remove for an item."""

    if TYPE_CHECKING:
        inner: Pools
        all, count, queue = Pools.all, Pools.count, Pools.queue

    async def call(self, pool: str, order: Order) -> PoolAnswer:
        command = order.command if isinstance(order, On) else order
        return await self._do(type(command).__name__, partial(self.inner.call, pool, order))

    batch_size = 1
    call_many = Pools.call_many  # each step by itself, with its own fault

    def call_nowait(self, pool: str, order: Order) -> PoolAnswer | None:
        return None  # or it would go past the faults

    async def wait_for_wakeup(self, pool: str, ticket: str, timeout: float) -> None:
        await (
            self._runtime.sleep(timeout)
            if self.faults.unreachable
            else self.inner.wait_for_wakeup(pool, ticket, timeout)
        )


class FaultyStore(_Faulty, ScoredStore):
    """Any store, with faults in its requests."""

    if TYPE_CHECKING:
        inner: Store
        between, wait_for_wakeup = ScoredStore.between, Store.wait_for_wakeup

    async def read(self, key: str, settle: bool = False) -> RowSnapshot:
        return await self._do("read", partial(self.inner.read, key, settle))

    async def write(
        self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wakeup]
    ) -> Written | RowSnapshot:
        delivered = () if self.faults.unreachable else woken
        return await self._do("write", partial(self.inner.write, row, expected, now, delivered))

    has_nowait = False  # or writes would go past the faults
    read_many = Store.read_many  # each row by itself, with its own fault
    write_many = Store.write_many

    @property
    def items(self) -> ItemStore | None:  # type: ignore[override]
        """Items that are rows are read and written through this store; others go past the faults."""
        return super().items if isinstance(self.inner, ScoredStore) else self.inner.items

    async def scan(self, prefix: str) -> list[RowSnapshot]:
        return await self._do("scan", partial(self.inner.scan, prefix))

    async def scan_busy(self, prefix: str) -> list[RowSnapshot]:
        return await self._do("scan", partial(self.inner.scan_busy, prefix))

    async def delete(self, key: str, expected: int | str) -> bool:
        return await self._do("delete", partial(self.inner.delete, key, expected))

    async def wake(self, woken: Sequence[Wakeup]) -> None:
        if not self.faults.unreachable:
            await self.inner.wake(woken)


class _Client(Protocol):
    _session: Session


def install(faults: Faults, *clients: _Client, store: bool = False) -> Faults:
    """Put these faults between a client and its backend, or (store=True) between its CasBackend and its store."""
    for client in clients:
        session = client._session
        if store:
            backend: Any = session.backend
            backend.store = FaultyStore(backend.store, faults, session.runtime)
        else:
            session.backend = FaultyBackend(session.backend, faults, session.runtime)
    return faults


def everywhere(kinds: Sequence[str] = ("before", "after"), places: int = 6) -> Iterator[tuple[str | None, ...]]:
    """Return every script with one fault in it: at the first place, at the second, and so on."""
    for kind in kinds:
        for place in range(places):
            yield (*[None] * place, kind)

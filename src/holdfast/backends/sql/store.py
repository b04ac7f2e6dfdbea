"""SQL databases as a store: a row per doorman, one statement per step, the server's clock.

`dialects` and `items` say what is said to which database; `hands`, `quick` and `tasks` bring it there; `rows` keeps the
locks, `shelf` the items of pools; `ears` hear PostgreSQL's hints.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ..contract import NEVER, Colour, Pushed, Seen
from ..polling import Shared
from .address import Address
from .rows import SqlRows, ThreadRows
from .tables import ddl
from .waiting import listen, poll

if TYPE_CHECKING:
    from .ears import Ear
    from .shelf import SqlShelf

NOBODY: frozenset[str] = frozenset()
GOODBYE = 1.0  # seconds for which closing waits for the listener to end: the server may hang
TABLES = ("holdfast_locks", "holdfast_items")


class SqlStore(SqlRows):
    span = "machines"
    tells_holders = True
    gathers = True
    gives_way = True  # of 64 who come at once, each needs 25 statements and not a hundred

    def __init__(self, address: Address, colour: Colour) -> None:
        super().__init__(address, colour)
        self.skew = address.skew
        # A row that shows us inside was read after the write that let us in. But such a grant has to be confirmed
        # within a second or two, and an event loop may be blocked for longer.
        self.pushes_grants = colour.blocking
        self._ear: Ear | None = None
        self._told: dict[str, Seen] = {}
        self.shared: Shared[Seen] = Shared(colour.clock)

    @property
    def items(self) -> "SqlShelf":
        """Where the items of pools are."""
        from .items import items_of
        from .shelf import SqlShelf

        return SqlShelf(self, items_of(self.dialect))  # not kept: whoever forgets the store is to forget all of it

    # -- waiting

    @property
    def ear(self) -> str:
        found = self._hearing()
        return found.name if found is not None else ""

    def _hearing(self) -> "Ear | None":
        address = self.address
        direct = address.listen
        if direct is None or (self.hands.pooled and direct is address.engine.url) or self._closed:
            return None
        if self._ear is None:
            try:
                from .ears import ear_at
            except ImportError:  # an Engine with another driver than psycopg: its waiters poll
                self.address = address._replace(listen=None)
                return None
            self._ear = ear_at(direct, address.timeout, self)
        return self._ear

    async def changed(self, key: str, ticket: str, timeout: float, ears: Collection[str]) -> Pushed | None:
        ear = self._hearing()
        if ear is None:
            return await poll(self, key, ticket, timeout)
        return await listen(self, self._colour, ear, key, ticket, timeout)

    def wake_here(self, tickets: Collection[str]) -> None:
        self.naps.wake(tickets)
        if self._ear is not None:
            for ticket in tickets:
                self._ear.hear(ticket)

    def tell(self, key: str, seen: Seen) -> None:
        """A waiter that was woken has read the row, or the listener for a holder: the next step starts from that."""
        if len(self._told) > 1000:
            self._told.clear()
        told = self._told.get(key)
        if told is None or told.at <= seen.at:
            self._told[key] = seen

    def shown(self, key: str) -> Seen | None:
        return self._told.pop(key, None) if self._told else None

    async def attend(self) -> float:
        ear = self._hearing()
        lasted = ear.attend() if ear is not None else -1.0
        return self._clock() - lasted if lasted >= 0 else NEVER

    def hinted(self, tickets: Iterable[str]) -> Collection[str]:
        return self._ear.hinted(tickets) if self._ear is not None else ()

    def silent(self, ears: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        return NOBODY, NOBODY

    # -- the rest

    async def tidy(self) -> None:
        pass

    async def ping(self) -> None:
        at = self._clock()
        told = await self.ask(self.dialect.time, {})
        self.sampled(told.rows[0][0], at)

    async def close(self) -> None:
        self._closed = True
        ear, self._ear = self._ear, None
        if ear is not None:
            from .ears import part

            thread = part(ear, self)
            if thread is not None:
                await self._colour.call(thread.join, GOODBYE)
        await self.hands.close()

    def forked(self) -> None:
        self._sample = None
        self._ear = None
        self._lost.clear()
        self._told.clear()
        self.shared.clear()
        self.hands.forked()

    def beacon(self) -> int | None:
        return None

    async def doctor(self) -> list[tuple[str, str]]:
        from .doctor import examine

        return await examine(self)

    def schema(self) -> str:
        dialect = self.dialect
        lines = [f"-- {self.where}: made by the first use if the user may, else by an administrator"]
        lines += [text + ";" for text in ddl(dialect.sa, dialect.makes_if_absent)]
        lines += ["-- what the user of the program needs:"]
        user = self.address.engine.url.username or "the_user"
        lines += [dialect.grants.format(table=table, user=user) for table in TABLES]
        lines += [line.format(table=table, user=user) for line in dialect.owned for table in TABLES]
        lines += [line.format(user=user) for line in dialect.quota]
        return "\n".join(lines)


class ThreadSqlStore(ThreadRows, SqlStore):
    """The same for threads, whose commonest steps are plain calls."""

"""The contract: what the engine needs from a backend, `CasBackend` from a store, and both from the runtime.

A *runtime* is how waiting is done: by blocking a thread or by suspending a task. Everything between the client's face
and the driver is written once, as coroutines that know nothing but this protocol. Under the thread runtime they never
suspend, so that `send(None)` runs them through; under the task runtime they are ordinary coroutines.

A *store* keeps rows (key, score, owner, body) under a version that never recurs. For a lock: score = last fence,
owner = the holders (empty only if nothing is held and nothing waits), body = the record as JSON; so one plain SELECT
shows an operator who holds what, and a scan can leave out what is idle. `CasBackend` makes
a backend of any store. A *backend* is what the engine calls; Redis and memory are backends themselves.

`Store`, `Backend`, `ItemStore` and `Pools` are base classes. A member without a default is abstract; every other one is
optional, and its default is always correct, only slower or poorer.

Two clocks: the store's (whole microseconds, `now`) decides what has expired; the client's (seconds, boot time where
there is one, `at`) decides when a client must consider its own lease as lost. They are never compared; only durations
cross from one to the other, counted from the client's clock *before* the request that sampled the store's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Coroutine, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ..errors import ConfigError, LockError, RecordDamaged, StoreError

if TYPE_CHECKING:  # most programs use no pool, and start-up time counts
    from ..rules.locks import Command, LockState, Renew, Reply, Wakeup
    from ..rules.locks.audit_lines import AuditLine
    from ..rules.pools import Answered, ItemState, On, Order, Take, WorkerQueue
    from .row_cache import RowCache
    from .user_transaction import UserTransaction

T = TypeVar("T")
A = TypeVar("A")
C = TypeVar("C")

NEVER = float("inf")
NOBODY: frozenset[str] = frozenset()
CONFLICTS = 400  # more in a row than any real crowd causes: something else is wrong


class OutcomeUnknown(Exception):
    """A request was sent, and no reply came: it may or may not have been carried out. The cure is to repeat it."""


class RowLocked(StoreError):
    """A transaction has sealed the row (`lease.seal`): the step was not made, and is possible when that has ended."""

    refused = True


def unanswered(where: str, doubt: OutcomeUnknown) -> StoreError:
    """Return the error for the caller once a request has been repeated often enough. A cause that is a sentence is
    enough."""
    if isinstance(doubt.__cause__, StoreError):
        return StoreError(str(doubt.__cause__))
    return StoreError(f"{where} does not reply: {doubt}. Is it running, and can it be reached?")


async def replied(where: str, reading: Awaitable[T]) -> T:
    """Return the result of a read. Its outcome cannot be in doubt: without a reply it raises StoreError."""
    try:
        return await reading
    except OutcomeUnknown as doubt:
        raise unanswered(where, doubt) from None


def crowded(what: str, names: str) -> StoreError:
    """Return the error for a step whose writes were refused again and again."""
    return StoreError(
        f"{what} changed {CONFLICTS} times while one step was tried. "
        f"Spread the work over more {names}, or use a store with a server."
    )


async def one_by_one(
    call: Callable[[str, C], Awaitable[A]], calls: Sequence[tuple[str, C]]
) -> list[A | OutcomeUnknown | LockError]:
    """Make these steps one after the other. When the store does not reply to one of them, the rest is not sent."""
    outcomes: list[A | OutcomeUnknown | LockError] = []
    for name, command in calls:
        try:
            outcomes.append(await call(name, command))
        except (OutcomeUnknown, LockError) as error:
            outcomes.append(error)
            if isinstance(error, OutcomeUnknown) or (isinstance(error, StoreError) and not error.refused):
                outcomes += [error] * (len(calls) - len(outcomes))
                break
    return outcomes


async def fill_gaps(
    call: Callable[[str, C], Awaitable[A]],
    calls: Sequence[tuple[str, C]],
    outcomes: list[A | OutcomeUnknown | LockError | None],
) -> list[A | OutcomeUnknown | LockError]:
    """Make the steps that have no outcome yet by `call`."""
    missing = [number for number, outcome in enumerate(outcomes) if outcome is None]
    rest = iter(await one_by_one(call, [calls[number] for number in missing]))
    return [next(rest) if outcome is None else outcome for outcome in outcomes]


def no_transactions(where: str) -> ConfigError:
    return ConfigError(
        f"{where} has no transactions that could be sealed. seal() works on PostgreSQL, MariaDB, MySQL and SQLite; "
        "elsewhere hand lease.fence to what you protect."
    )


class Event(Protocol):
    def set(self) -> None:
        """Wake the waiter. From any thread."""

    def clear(self) -> None: ...

    async def wait(self, timeout: float | None) -> bool:
        """Wait until set, at most `timeout` seconds; return whether it is set."""


class Runtime(Protocol):
    blocking: bool
    quiet_end: type[BaseException]
    """An exception that ends a thread or a task without a report."""

    def clock(self) -> float:
        """Return the seconds of a clock that never steps and also counts while the machine sleeps."""

    def mutex(self) -> AbstractContextManager[Any]:
        """Make a guard for plain data between threads. It is never held across an await."""

    def event(self) -> Event: ...

    async def sleep(self, seconds: float) -> None: ...

    async def call(self, fn: Callable[..., T], *args: Any) -> T:
        """Run something that blocks for long: in this thread, or in a worker thread."""

    async def readable(self, fds: Sequence[int], timeout: float | None) -> list[int]:
        """Wait until one of these file descriptors can be read; return those that can, [] after the timeout."""

    async def shield(self, work: Coroutine[Any, Any, T]) -> T:
        """Finish this even if the caller is cancelled meanwhile."""

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run this beside everything else: a daemon thread or a task."""

    def current(self) -> Hashable:
        """Return the calling thread or task."""

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this to its end from outside, because the interpreter ends."""


class Row(NamedTuple):
    key: str
    score: int
    owner: str
    body: str


class RowSnapshot(NamedTuple):
    """A row as the store showed it (None: there is no row), its version, and when."""

    row: Row | None
    version: int | str | None
    now: int  # the store's clock
    at: float  # the client's clock, before the request


class RowWrite(NamedTuple):
    """A row that replaces the one of this version, if `now` is not ahead of the store's clock."""

    row: Row
    expected: int | str
    now: int


class Written(NamedTuple):
    version: int | str
    now: int
    at: float


class Pushed(NamedTuple):
    """A wake-up that arrived. `fence` > 0 only if it proves a grant: the store sent it inside the step that made the
    grant, or the row was read afterwards. `until` is then when, by the client's clock, the grant ends unless confirmed.
    """

    ticket: str
    place: int = 0
    fence: int = 0
    until: float = 0.0


class Sample(NamedTuple):
    """A time that is not ahead of the store's clock, and the client's clock before it was sampled."""

    now: int
    at: float


class StoreClient(ABC):
    """What Store and Backend share: what a client may know of its store, its wake-ups, maintenance, forks, its end."""

    where: str
    """Names the store to people, without credentials."""
    scope: str
    """How far its locks reach: 'process', 'machine' or 'machines'."""
    skew: float = 0.0
    """By how many seconds the clocks behind this store may differ; added to the client's margin."""
    pushes_grants: bool = False
    """Its wake-ups are sent in or after the write that made a grant: a row that is read then shows it, and one with a
    fence proves it."""
    poll_interval: float = 1.0
    """Seconds between two reads of what is held, while `attend` returns NEVER."""
    skips_locked: bool = False
    """Renewals of many (`write_many`, `call_many`) do not wait for a row that a transaction of a user has locked
    (`lock_row`): they do not write it, and return RowLocked."""
    keeper_key: Hashable | None = None
    """Clients with the same key may have their leases renewed by the same threads: if one hangs, so do the others."""
    batch_size: int = 1
    """How many rows `read_many` and `write_many` handle together, and how many renewals the keeper gives to one
    `call_many`; 1: that would gain nothing."""

    # -- wake-ups

    listener: str = ""
    """Where this client is notified, as far as that is known without a call of `open_listener`; '' before it, and if
    the client cannot be notified. Reading it does no I/O."""

    def open_listener(self) -> str:
        """Start to listen if this client does not yet; return where it is notified, '' if it cannot be. May do I/O."""
        return self.listener

    def wake_here(self, tickets: Collection[str]) -> None:
        """End `wait_for_wakeup` of these tickets in this client, of locks and of pools, now or when it begins. From any
        thread: a client that closes ends its waiters by it."""
        return None

    def take_wakeups(self, tickets: Iterable[str]) -> Collection[str]:
        """Return those of these tickets with a wake-up that nothing waited for: their holders were evicted. Does not
        wait."""
        return ()

    def notify_reset(self, call: Callable[[], None]) -> None:
        """Call this, from any thread but never from `take_wakeups`, when the store may have lost its data."""
        return None

    def liveness_fd(self) -> int | None:
        """Return a file descriptor that shows others that this client is alive while any process holds a
        copy."""
        return None

    # -- maintenance

    @abstractmethod
    async def ping(self) -> None:
        """Raise if the store does not reply."""

    async def tidy(self) -> None:
        """Do maintenance. Called by the keeper about once a second while leases are held, and at close."""
        return None

    async def close(self) -> None:
        """Release everything that this client has opened."""
        return None

    def abandon(self) -> bool:
        """Close for a process that ends now, without waiting for the disk. False: not possible, call `close`."""
        return False

    def before_fork(self) -> bool:
        """Have no statement under way from here on; True: `after_fork` must be called."""
        return False

    def after_fork(self) -> None:
        """Continue after `before_fork`."""
        return None

    def forked(self) -> None:
        """Drop everything that belongs to the parent. Called in the child right after a fork."""
        return None

    async def doctor(self) -> list[tuple[str, str]]:
        """Return ('ok' | 'note' | 'warning' | 'error', sentence) about this store as a place for locks."""
        return []

    def schema(self) -> str:
        """Return the DDL, rights and settings that it needs, as text. Runs nothing."""
        return f"-- {self.where} needs nothing.\n"


class Store(StoreClient):
    """A place for rows with compare-and-swap: what a new store implements. See docs/adding-a-store.md.

    Keys are complete (namespace included), and nothing is truncated. A store raises `OutcomeUnknown` if a request was
    sent and no reply came, StoreError (a sentence with the cure) if it is down or refuses, ConfigError if the URL or
    the data make no sense.
    """

    cache_ttl: float = 0.0
    """For how many seconds a cached row may be the start of an optimistic write."""
    reads_queues: bool = False
    """True: a cached row that has waiters is not the start of a write. For stores where a read takes less than a
    refused write: others change such a row all the time."""
    has_nowait: bool = False
    """`read_nowait` and `write_nowait` are implemented."""
    checks_time: bool = True
    """`write` refuses a `now` ahead of its clock. If False, no entry is dropped by a time from `now`."""
    backs_off: bool = False
    """A refused write is expensive: newcomers that found others there pause for a random time before they try again."""
    shows_conflicts: bool = True
    """A refused write returns the current row by the same request. If not, a row with a long queue is read first."""
    shares_steps: bool = False
    """A step takes more than microseconds: threads or tasks of one client that want the same row share a write."""
    wakes_holder: bool = False
    """The first waiter also notifies the only holder, by a wake-up without a ticket: that one reads the row."""
    count_statements: Callable[[], int] | None = None
    """Returns how many statements were sent by all clients that share the connections; None: they are not counted."""

    # -- rows

    @abstractmethod
    async def read(self, key: str, settle: bool = False) -> RowSnapshot:
        """Read a row. settle: after an unknown outcome, so that nothing of the lost write can still appear later."""

    @abstractmethod
    async def write(
        self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wakeup]
    ) -> Written | RowSnapshot:
        """Write if the version is still the expected one (None: there is no row) and `now` is not ahead of the clock.

        Otherwise return the current row. The store sends the wake-ups inside the write if it can, else right after it.
        """

    @abstractmethod
    async def scan(self, prefix: str) -> list[RowSnapshot]:
        """Read all rows whose key begins with this."""

    async def scan_busy(self, prefix: str) -> list[RowSnapshot]:
        """Read the rows whose key begins with this and whose owner is not empty: what is held or waited for."""
        return [seen for seen in await self.scan(prefix) if seen.row is not None and seen.row.owner]

    @abstractmethod
    async def delete(self, key: str, expected: int | str) -> bool:
        """Delete a row if the version is still the expected one; return whether it was."""

    def now(self) -> tuple[int, float] | None:
        """Return a Sample of the store's time without a request, if it is not ahead of the store's clock; None: read
        first."""
        return None

    def read_nowait(self, key: str) -> RowSnapshot | None:
        """Read like `read` without waiting (one round trip of a blocking client counts as none); None: not done."""
        return None

    def write_nowait(
        self, row: Row, expected: int | str, now: int, woken: Sequence[Wakeup], at: float
    ) -> int | str | RowSnapshot | None:
        """Write like `write`, but without waiting: return the new version, the current row, or None: not done.

        `at` is the client's clock. Raises OutcomeUnknown if no reply came.
        """
        return None

    async def ping(self) -> None:
        """Read a row."""
        await self.read("")

    async def replace(
        self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wakeup]
    ) -> Written | RowSnapshot:
        """Write over a row that cannot be decoded. Differs from `write` only if its version may be damaged, too."""
        return await self.write(row, expected, now, woken)

    @cached_property
    def row_cache(self) -> RowCache:
        """The last seen rows of this client. A store that reads one because of a wake-up or a poll puts it in here."""
        from .row_cache import RowCache

        return RowCache()

    async def read_many(self, keys: Sequence[str]) -> list[RowSnapshot | OutcomeUnknown | LockError]:
        """Read these rows, all of them different: for each the row, or what `read` would raise.

        An error that is about all of them may be raised.
        """
        return [await self.read(key) for key in keys]

    async def write_many(self, writes: Sequence[RowWrite]) -> list[int | str | OutcomeUnknown | LockError | None]:
        """Write these rows, each as `write` does, but without wake-ups: for each its new version, or what `write` would
        raise; None: not written.

        A row that is being written by another client need not be waited for. What is raised is about all of them. Of
        several rows one that was written may count as not written if another client has changed it since.
        """
        done = [await self.write(one.row, one.expected, one.now, ()) for one in writes]
        return [each.version if isinstance(each, Written) else None for each in done]

    async def lock_row(self, key: str, transaction: UserTransaction, lease: float) -> RowSnapshot:
        """Lock a row in a transaction of the user, so that no other client writes it before that ends, and return it.

        ConfigError if this store has no transactions, or if this one is not in the store's database. `lease` is how
        many seconds the lease lasts that is sealed.
        """
        raise no_transactions(self.where)

    async def lock_item(self, pool: str, key: str, transaction: UserTransaction, lease: float) -> ItemSnapshot:
        """Lock the row of an item of a pool in the same way, and return it. The name of the pool is complete."""
        raise no_transactions(self.where)

    # -- wake-ups

    @abstractmethod
    async def wait_for_wakeup(self, key: str, ticket: str, timeout: float, listeners: Collection[str]) -> Pushed | None:
        """Wait for a wake-up for this ticket, or a sign that the row has changed or one of these listeners has died.

        Return None after `timeout` seconds. A wake-up between the last step and this call must not be lost.
        """

    async def wake(self, woken: Sequence[Wakeup]) -> None:
        """Send these wake-ups, of locks or of pools. A store without notifications does nothing: its waiters poll."""
        return None

    async def attend(self) -> float:
        """Start to receive wake-ups for holders; return the client's clock since when none is missed.

        NEVER: none comes, and the keeper reads the rows that are held every `poll_interval` seconds.
        """
        return NEVER

    def liveness(self, listeners: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Return, of these listeners, the unreachable ones (nothing listens there) and the dead ones (the process is
        gone).

        Called in the middle of a step, so it must be quick. Never guess "dead".
        """
        return NOBODY, NOBODY

    # -- pools

    @property
    def items(self) -> ItemStore | None:
        """Return the store of its pools' items; None: this store keeps no pools. See also `ScoredStore`."""
        return None


class ScoredStore(Store):
    """A store that can find rows by their score: it keeps pools, each item in a row of its own."""

    @abstractmethod
    async def between(self, prefix: str, low: int, high: int, limit: int) -> list[RowSnapshot]:
        """Read the rows whose key begins with this and with low <= score <= high, lowest score first."""

    @property
    def items(self) -> ItemStore:
        from .pool_items_as_rows import ScoredRows

        return ScoredRows(self)


class SeenLock(NamedTuple):
    """One lock of a snapshot of many."""

    namespace: str
    name: str
    state: LockState | RecordDamaged


Soon = Awaitable["bool | None"]
"""Of a request for a task: see `acquire_soon`."""
Accept = Callable[[Iterable[tuple[Any, Any, int]], int, float, float], None]
"""Called with the future, the hold and the fence of each, their microseconds, the client's clock before the request,
and now. Completes the futures: with False if the reply came too late, else with True."""


class Answer(NamedTuple):
    reply: Reply
    at: float  # the client's clock before the request that sampled the time this reply rests on
    again: bool = False  # an earlier try may have been carried out: Released(False) then proves nothing


class Backend(StoreClient):
    """What the engine calls."""

    namespace: str = ""
    """The namespace of its names."""
    open_blocking: Callable[[Runtime], Backend] | None = None
    """Of a backend for tasks: opens the same one for threads. Then a wake-up may prove a grant to a task, too: if the
    loop is blocked, a thread confirms it (aio/confirm_by_thread.py). None: a task confirms before it goes on."""
    may_duplicate: bool = False
    """A request may arrive a second time after its reply (proxies, HTTP), so every Release leaves a tombstone."""
    has_index: bool = False
    """Busy names are found by an index that the steps do not write: the keeper does, by `list_names`."""

    def name_connections(self, owner: str) -> None:
        """The client has this owner: servers that show names of connections show it there."""
        return None

    # -- steps

    @abstractmethod
    async def call(self, name: str, command: Command) -> Answer:
        """Make one step. Raises OutcomeUnknown or StoreError; the same command may be sent again after either."""

    def call_nowait(self, name: str, command: Command) -> Answer | None:
        """Make the same step if it needs no waiting; None: it was not made, use `call`.

        Most steps of a lock without contention are of this kind, and need no coroutine. One round trip of a blocking
        client counts as no waiting; OutcomeUnknown if its reply did not come.
        """
        return None

    async def call_many(self, calls: Sequence[tuple[str, Command]]) -> list[Answer | OutcomeUnknown | LockError]:
        """Make these steps of different locks, each by itself: return for each its answer, or what `call` would raise.

        The keeper renews by this. An error of one step must not affect the others.
        """
        return await one_by_one(self.call, calls)

    def acquire_soon(self, name: str, ticket: str, fields: tuple[Any, ...], hold: Any, accept: Accept) -> Soon | None:
        """Send an Acquire with this ticket and these fields behind it, for a task: return a future that the reader of
        the reply completes, so no coroutine is needed. All of one turn of the loop go out in one write.

        The reader calls `accept` with all that were granted by one message. None, now or as the result of the future:
        it was not made, use `call`. OutcomeUnknown, when it is awaited: no reply came.
        """
        return None

    def release_soon(self, name: str, ticket: str, fence: int, hold: Any, accept: Accept) -> Soon | None:
        """Do the same for a Release without a tombstone. The reader calls `accept` with all that were held until then,
        and the result of these futures is True."""
        return None

    async def seal(self, name: str, command: Renew, transaction: object, lease: float) -> Answer:
        """Lock the state of this lock in a transaction of the user, so that no step changes it before that ends.

        Return what the reply to this renewal would be; it is not made. ConfigError if this store cannot do that.
        """
        raise no_transactions(self.where)

    async def seal_item(self, pool: str, order: On, transaction: object, lease: float) -> PoolAnswer:
        """Lock an item of a pool in the same way. Return what the reply to this renewal would be."""
        raise no_transactions(self.where)

    @property
    def pools(self) -> Pools | None:
        """The pools of this backend; None: it keeps no pools."""
        return None

    # -- wake-ups

    @abstractmethod
    async def wait_for_wakeup(self, name: str, ticket: str, timeout: float) -> Pushed | None:
        """Wait for a wake-up for this ticket; None after `timeout` seconds."""

    wait_briefly: Callable[[str, float], Pushed | None] | None = None
    """Wait for a wake-up for this ticket, for at most this long, which must be a moment: `wait_for_wakeup` for threads
    as a plain call. None: there is only the coroutine."""

    async def attend(self, locks: Collection[str], pools: Collection[str]) -> float:
        """Start to receive wake-ups for the holders of these locks (and of items of these pools).

        Return the client's clock since when none is missed; NEVER if none comes: then the keeper reads the locks.
        """
        return NEVER

    # -- administration

    @abstractmethod
    async def look(self, name: str) -> tuple[LockState, int]:
        """Read the state of a lock, without entries known to be dead, and the store's time. Changes nothing."""

    @abstractmethod
    async def looks(
        self, pattern: str, idle: bool = False, namespaces: bool = False
    ) -> tuple[list[SeenLock], int]:
        """Read the locks whose name matches this pattern of * and ?, by namespace and name, and the store's time.

        Without `idle`, locks without holders and waiters may be left out: as many of them as there are should cost
        nothing. namespaces: those of all namespaces, not only of this client's.
        """

    async def list_names(self, locks: Mapping[str, float], pools: Mapping[str, float]) -> None:
        """Write into the index of busy names, if there is one, that this client holds these, each for as many seconds
        at most without a renewal; and remove what it does not hold any more. A mapping is not changed afterwards, and
        the same one again has the same names. Raises nothing."""
        return None

    async def audit(self, name: str) -> list[AuditLine]:
        """Read the audit lines of this name, the newest first: at most the newest hundred."""
        return []

    async def add_audit(self, name: str, line: AuditLine) -> None:
        """Add an audit line, with the store's time instead of its own. Not repeated: the caller has done its work."""
        return None

    @abstractmethod
    async def repair(self, name: str) -> list[str]:
        """Reset what is damaged under this name; fences go on rising. A sentence for each thing done."""

    async def prune(self, pattern: str, age: int, delete: bool) -> tuple[int, int] | None:
        """Find the names that match and were not used for this many microseconds, and delete them if asked to.

        Return how many were found and deleted; None: this store deletes idle names by itself.
        """
        return None

    async def prune_audit(self, pattern: str, age: int, delete: bool) -> tuple[int, int] | None:
        """Prune the audit lines of the names that match: those whose newest line is older than this many
        microseconds and than 30 days."""
        return None


# -- pools


class PoolAnswer(NamedTuple):
    reply: Answered
    at: float  # the client's clock before the request that sampled the time this reply rests on
    again: bool = False  # an earlier try may have been carried out


class PoolReader(ABC):
    """What Pools and ItemStore share: reading a pool changes nothing."""

    batch_size: int = 1
    """How many renewals of items the keeper gives to one `call_many`, and how many items `get_many` and `put_many`
    handle together; 1: that would gain nothing."""

    @abstractmethod
    async def all(self, pool: str) -> tuple[list[ItemState], int]:
        """Read every item, by key, and the store's time."""

    async def count(self, pool: str) -> dict[str, int]:
        """Count the items of each state, without the damaged ones."""
        from ..rules.pools import count_states

        return count_states(*await self.all(pool))

    async def taken(self, pool: str) -> tuple[list[ItemState], int]:
        """Read the items that are taken now, of very many only some, and the store's time."""
        items, now = await self.all(pool)
        return [item for item in items if item.state(now) == "taken"], now


class Pools(PoolReader):
    """The pools of a backend. Each order is one step, and one round trip where the store can make it one."""

    @abstractmethod
    async def call(self, pool: str, order: Order) -> PoolAnswer:
        """Make one step. Raises OutcomeUnknown or StoreError; the same order may be sent again after either."""

    def call_nowait(self, pool: str, order: Order) -> PoolAnswer | None:
        """Make the same step if it needs no waiting; None: it was not made, use `call`. Only for threads.

        Raises OutcomeUnknown if it was sent and no reply came.
        """
        return None

    async def call_many(self, calls: Sequence[tuple[str, On]]) -> list[PoolAnswer | OutcomeUnknown | LockError]:
        """Make these steps of different items, each by itself: return for each its answer, or what `call` would raise.

        The keeper renews by this. An error of one step must not affect the others.
        """
        return await one_by_one(self.call, calls)

    @abstractmethod
    async def wait_for_wakeup(self, pool: str, ticket: str, timeout: float) -> None:
        """Wait at most `timeout` seconds until a wake-up for this ticket suggests another Seek.

        A wake-up between the last step and this call must not be lost.
        """

    @abstractmethod
    async def queue(self, pool: str) -> WorkerQueue:
        """Read the queue of workers. Changes nothing."""

    async def names(self, pattern: str, idle: bool = False) -> list[tuple[str, str]]:
        """Return namespace and name of the pools, of all namespaces, whose name matches this pattern. Without `idle`,
        those of which no item is taken and for which no worker waits may be left out."""
        return []

    def in_namespace(self, namespace: str) -> Pools:
        """Return the pools of another namespace, to look at them."""
        return self


class ItemSnapshot(NamedTuple):
    """An item as the store showed it (None: there is no such item), a version to compare with, and when."""

    item: ItemState | None
    version: object
    now: int  # the store's clock
    at: float  # the client's clock, before the request


class ItemWrite(NamedTuple):
    """An item that replaces the one that was seen."""

    pool: str
    item: ItemState
    seen: ItemSnapshot


class ItemStore(PoolReader):
    """Where a store keeps the items of its pools. `pool` is complete (namespace included). Raises as `Store` does."""

    by_content: bool = False
    """`put` compares the item, not a version: an item that was taken is written again without a read."""

    @abstractmethod
    async def get(self, pool: str, key: str, settle: bool = False) -> ItemSnapshot:
        """Read an item. settle: as in Store.read."""

    @abstractmethod
    async def put(self, pool: str, key: str, item: ItemState | None, seen: ItemSnapshot) -> bool:
        """Write it (None: delete it) if it is still as seen, and seen.now is not ahead of the clock."""

    async def get_many(self, keys: Sequence[tuple[str, str]]) -> Sequence[ItemSnapshot | OutcomeUnknown | LockError]:
        """Read these items, each named by pool and key, all of them different: for each the item, or its error."""
        found: list[ItemSnapshot | OutcomeUnknown | LockError] = []
        for pool, key in keys:
            try:
                found.append(await self.get(pool, key))
            except RecordDamaged as damage:
                found.append(damage)
        return found

    async def put_many(self, writes: Sequence[ItemWrite]) -> Sequence[bool | OutcomeUnknown | LockError]:
        """Write these items, each as `put` does: for each whether it was written, or its error.

        An item that is being written by another client need not be waited for, and is not if the store `skips_locked`:
        then its error is RowLocked. What is raised is about all of them. Of several items one that was written may
        count as not written if another client has changed it since.
        """
        return [await self.put(one.pool, one.item.key, one.item, one.seen) for one in writes]

    async def put_and_read_queue(
        self, pool: str, key: str, item: ItemState, seen: ItemSnapshot, queue: str
    ) -> tuple[bool, str | None] | None:
        """Write as `put` and return the body of the queue's row with the outcome, in one step; None: not possible.

        A worker that joins the queue at the same moment may be missing in it.
        """
        return None

    @abstractmethod
    async def add(self, pool: str, rows: Sequence[tuple[str, str]], first: int = 0) -> int:
        """Add (key, body), in this order (`first` as in Put), unless the key exists; return how many are new."""

    @abstractmethod
    async def take(self, pool: str, take: Take, queue: str) -> ItemSnapshot | None:
        """Take the item that has been due for longest, as the rules do; None if none is due. With the key of a queue's
        row: only if that queue is empty (its score is 0, or there is no row). In one step where the store can.

        The version is of no use after this.
        """

    @abstractmethod
    async def of(self, pool: str, ticket: str, span: int) -> ItemSnapshot | None:
        """Find the item that has this ticket and is due within this many microseconds from now, but not yet."""

    @abstractmethod
    async def coming(self, pool: str, span: int) -> int | None:
        """Return in how many microseconds the next item is due, if that is within `span`."""

    async def pools(self) -> list[str]:
        """Return the complete names of all pools that have items. []: they are not listed."""
        return []

    async def repair(self, pool: str) -> list[str]:
        """Set aside, as done, the items of this pool that cannot be decoded; return their keys."""
        return []

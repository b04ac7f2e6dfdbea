"""What the flows ask of a backend, what `CasBackend` asks of a store, and what both get from the colour of the client.

A *colour* is how waiting is done: by blocking a thread or by suspending a task. Everything between the client's face
and the driver is written once, as coroutines that know nothing but this protocol. Under the thread colour they never
suspend, so that `send(None)` runs them through; under the task colour they are ordinary coroutines.

A *store* keeps rows (key, score, owner, body) under a version that never recurs. For a doorman: score = last fence,
owner = who is inside, body = the record as JSON; so one plain SELECT tells an operator who holds what.

Two clocks: the store's (whole microseconds, `now`) decides what has expired; the client's (seconds, boot time where
there is one, `at`) decides when a client must consider its own lease as lost. They are never compared; only durations
cross from one to the other, counted from the client's clock *before* the request that sampled the store's.
"""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from ..doorman import Command, Record, Reply, Wake
from ..errors import BackendError, RecordDamaged

T = TypeVar("T")

NEVER = float("inf")


class Unknown(Exception):
    """It was sent, and nobody knows whether it was done. The cure is to say the same thing again."""


def unanswered(where: str, doubt: Unknown) -> BackendError:
    """The error for the caller once a request has been repeated often enough. A cause that is a sentence is enough."""
    if isinstance(doubt.__cause__, BackendError):
        return BackendError(str(doubt.__cause__))
    return BackendError(f"{where} does not answer: {doubt}. Is it running, and can it be reached?")


class Event(Protocol):
    def set(self) -> None:
        """Wake the waiter. From any thread."""

    def clear(self) -> None: ...

    async def wait(self, timeout: float | None) -> bool:
        """Wait until set, at most so many seconds; True if it is set."""


class Colour(Protocol):
    blocking: bool
    quiet_end: type[BaseException]
    """What ends a thread or a task that raises it without a report."""

    def clock(self) -> float:
        """Seconds of a clock that also counts while the machine sleeps and never steps."""

    def mutex(self) -> AbstractContextManager[Any]:
        """Guards plain data between threads. Never held across an await."""

    def event(self) -> Event: ...

    async def sleep(self, seconds: float) -> None: ...

    async def call(self, fn: Callable[..., T], *args: Any) -> T:
        """Run something that blocks for long: right here, or in a worker thread."""

    async def readable(self, fds: Sequence[int], timeout: float | None) -> list[int]:
        """Wait until one of these file descriptors can be read; those that can, or [] when the time is over."""

    async def shield(self, work: Coroutine[Any, Any, T]) -> T:
        """Finish this even if the caller is cancelled meanwhile."""

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run this beside everything else: a daemon thread or a task."""

    def current(self) -> Hashable:
        """Who is asking: this thread or this task."""

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this from outside until it is done: the interpreter ends."""


class Row(NamedTuple):
    key: str
    score: int
    owner: str
    body: str


class Seen(NamedTuple):
    """What a store showed: the row (None: there is none), its version, and when that was."""

    row: Row | None
    version: int | str | None
    now: int  # the store's clock
    at: float  # the client's clock, before the request


class Written(NamedTuple):
    version: int | str
    now: int
    at: float


class Pushed(NamedTuple):
    """A wake-up that arrived. fence > 0 only from a store whose pushes are sent inside the step and name the grant, or
    that was read there afterwards; then `until` is when, by the client's clock, that grant ends unless it is confirmed.
    """

    ticket: str
    place: int = 0
    fence: int = 0
    until: float = 0.0


class Sample(NamedTuple):
    """A time that is certainly not ahead of the store's clock, and the client's clock before it was sampled."""

    now: int
    at: float


class Store(Protocol):
    """What a new store writes: about a hundred lines. Keys are complete (namespace included), nothing is truncated.

    Raises `Unknown` where an outcome is unknown, BackendError (a sentence with the cure) where the store is down or
    says no, ConfigError where the URL or the data make no sense.
    """

    where: str
    """Names the store to people, without credentials: 'sqlite:////var/lib/app/locks.db'."""
    span: str
    """How far its locks reach: 'process', 'machine' or 'machines'."""
    @property
    def ear(self) -> str:
        """Where this client listens; goes into each Enter. '' if it cannot be woken."""

    trust: float
    """For how many seconds a cached row is good enough for an optimistic write."""
    skew: float
    """By how many seconds the clocks behind this store may differ; added to the client's margin."""

    def now(self) -> tuple[int, float] | None:
        """A Sample of the store's time without asking it, if that is provably not ahead of it; None: read first."""

    async def read(self, key: str, settle: bool = False) -> Seen:
        """The row. settle: after an unknown outcome, so that nothing of it can still appear later."""

    async def write(
        self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wake]
    ) -> Written | Seen:
        """Write if the version is still the expected one (None: there is no row) and now is not ahead of the clock.

        Seen: what is there instead. Wakes are sent by the store, inside the write where it can, else right after it.
        """

    # A store whose statements need no waiting may also have
    # def get(self, key) -> Seen | None
    # def put(self, key, score, owner, body, expected, woken, at, now) -> int | str | Seen | None
    # which do what `read` and `write` do, at once or not at all: what is there or the new version (or, of a write that
    # was refused, what is there instead), or None. `at` is the client's clock. One round trip of a blocking client is
    # no waiting; Unknown, if its answer did not come.

    async def scan(self, prefix: str) -> list[Seen]:
        """All rows whose key begins so."""

    async def delete(self, key: str, expected: int | str) -> bool: ...

    async def wake(self, woken: Sequence[Wake]) -> None:
        """Send these hints (again)."""

    async def changed(self, key: str, ticket: str, timeout: float, ears: Collection[str]) -> Pushed | None:
        """Wait for a hint for this ticket, or for a sign that the row has changed or that one of those ears has died.

        At most timeout seconds, and None then. A hint that came between the last step and this call must not be lost.
        """

    # A store whose hints name place and fence of the grant, and are sent only after the write that made it, may say so:
    # pushes_grants = True

    # A store whose `write` cannot compare `now` with its clock says so, and may then give by now() a time that is only
    # likely not to be ahead: nobody is dropped by it, for that the row is read, and with it the time.
    # checks_time = False

    # A store where a refused write is dear says so: then newcomers keep out of each other's way for a while.
    # gives_way = True

    # A store where a step takes more than microseconds says so: then those of one client at one row share a write.
    # gathers = True

    # A store that hears hints may also have
    # def hinted(self, tickets) -> Collection[str]
    # which says for whom of these a hint has come that nobody waited for, without waiting: holders have been evicted.
    # If it does not receive hints from its first moment on, it also has
    # async def attend(self) -> float
    # which begins to receive them, for holders. Since when, by the client's clock, none is missed; NEVER: none comes.
    # Where none come the keeper looks at the rows that are held, once a second, or every so many seconds:
    # glance = 2.0

    # A store that reads rows on hints may also have
    # def shown(self, key) -> Seen | None
    # which gives what was read last and not asked for: good enough to write from, for the version tells. And
    # tells_holders = True
    # if such a hint is to be sent to who is inside, too, when the first one waits for it: a wake without a ticket.

    # A store that can find rows by their score may keep pools. It has, for that, one of
    # async def between(self, prefix, low, high, limit) -> list[Seen]
    # which gives the rows whose key begins so and with low <= score <= high, lowest score first: then items are rows
    # like all others; or
    # items: pool_contract.Shelf
    # where it keeps items in a way of its own. And `wake` takes hints of pools, too, which have an ear and a ticket.

    def wake_here(self, tickets: Collection[str]) -> None:
        """End the `changed` of these tickets in this client, now or when it begins. From any thread."""

    def silent(self, ears: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Of these ears: at which nobody listens (deaf), and whose process is gone (dead). Quick, or empty."""

    async def tidy(self) -> None:
        """Housekeeping, called by the keeper every second or so while leases are held, and at close."""

    async def ping(self) -> None: ...

    async def close(self) -> None: ...

    def forked(self) -> None:
        """Called in the child right after a fork: drop everything that belongs to the parent."""

    def beacon(self) -> int | None:
        """A file descriptor that keeps this client alive in the eyes of the others while anybody holds a copy."""

    async def doctor(self) -> list[tuple[str, str]]:
        """('ok' | 'note' | 'warning' | 'error', sentence) about this store as a place for locks."""

    def schema(self) -> str:
        """The DDL, rights and settings it needs, as text. Runs nothing."""


class Answer(NamedTuple):
    reply: Reply
    at: float  # the client's clock before the request that sampled the time this reply rests on
    again: bool = False  # an earlier try may have been carried out: Left(False) then proves nothing


class Soon(Protocol):
    """The commonest steps of one wish, for tasks. What they give is awaited, and is None if it takes more: ask.

    None in place of something to await: nothing was said. Unknown, when it is awaited: no answer came.
    """

    of: object
    """The backend that made it."""

    def enter(self, ticket: str, at: float) -> Awaitable[int | bytes | None] | None:
        """Enter by this ticket, at this time of the client's clock: the fence, for the whole lease."""

    def leave(self, ticket: str, fence: int) -> Awaitable[int | None] | None:
        """Leave, and nothing is to be buried: 1 if it was held until then."""


class Backend(Protocol):
    """What the flows use."""

    @property
    def where(self) -> str: ...

    @property
    def span(self) -> str: ...

    @property
    def ear(self) -> str: ...

    @property
    def skew(self) -> float: ...

    pushes_grants: bool
    """Pushes with a fence are sent in or after the step that made the grant, never before: they may be taken as it."""
    doubles: bool
    """Answered requests may arrive a second time (proxies, HTTP), so every Leave is buried."""

    async def ask(self, name: str, command: Command) -> Answer:
        """One step. Raises Unknown or BackendError; the same command may be sent again after either."""

    def at_once(self, name: str, command: Command) -> Answer | None:
        """The same step, if it takes no waiting of any kind. None: it was not made, for whatever reason; ask.

        Most steps of a lock that nobody else wants are of this kind, and no coroutine is needed for them. One round
        trip of a blocking client counts as none; Unknown if its answer did not come.
        """

    # A backend for tasks may also have
    # def soon(self, name, enter) -> Soon | None
    # which gives what makes the same steps for any ticket of one wish, with all that is said in the same turn of the
    # loop in one message, and none of the layers in between. None: ask.

    # A backend (and a store) that can notice by itself that what it kept may be gone has notify_reset(call), and calls
    # that, from any thread, never from `hinted`: the client then asks for all its leases.

    async def changed(self, name: str, ticket: str, timeout: float) -> Pushed | None: ...

    def wake_here(self, tickets: Collection[str]) -> None:
        """End the `changed` of these tickets in this client, of locks and of pools, now or when it begins. From any
        thread: a client that closes ends its waiters by it."""

    def hinted(self, tickets: Iterable[str]) -> Collection[str]:
        """For whom of these a hint has come that nobody waited for: somebody has told those inside to go."""

    async def attend(self, locks: Collection[str], pools: Collection[str]) -> float:
        """Receive hints for the holders of these locks (and of items of these pools), if the store sends any.

        Since when, by the client's clock, none is missed; NEVER if none comes, and then the keeper looks for itself.
        """

    async def look(self, name: str) -> tuple[Record, int]:
        """The record as it is, less those known to be dead, and the store's time. Changes nothing."""

    async def looks(self, pattern: str) -> tuple[list[tuple[str, Record | RecordDamaged]], int]:
        """All records whose name matches this pattern of * and ?, by name, and the store's time."""

    async def repair(self, name: str) -> list[str]:
        """Reset what is damaged under this name; fences go on rising. A sentence for each thing done."""

    # A backend that keeps pools also has
    # pools: pool_contract.Pools

    async def tidy(self) -> None: ...

    async def ping(self) -> None: ...

    async def close(self) -> None: ...

    def forked(self) -> None: ...

    def beacon(self) -> int | None: ...

    async def doctor(self) -> list[tuple[str, str]]: ...

    def schema(self) -> str: ...


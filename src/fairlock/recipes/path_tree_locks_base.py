"""Locks on paths, written once for threads and asyncio: which locks of the store a reader and a writer of a path hold.

A writer of a path excludes everyone below it, at it and above it. A reader excludes the writers there. Siblings do not
exclude each other. Every node of a path is two resources of the store:

    tree:a/b     the target: who reads or writes exactly this node. A readers-writer lock
    tree:a/b/    the subtree: who is at work at or below this node. A semaphore, of which each takes a weight

             | on each ancestor                           | on the node itself
    a reader | subtree: 1                                 | target: reads; then for a moment subtree: NO_WRITERS
    a writer | for a moment target: writes; subtree: MANY | target: writes; subtree: ALL

A reader of a node and a writer below it must exclude each other, although readers share and so do writers in different
places below. No weights in one resource can do that (if two of each kind fit, one of each fits, too). So each kind
first waits until the other is gone and then leaves a mark that keeps new ones of the other kind out:

- A writer writes the target of an ancestor for a moment: it waits there for the readers of that node. In that moment
  it enters the subtree.
- A reader reads the target, so no new writer enters the subtree. Then it takes NO_WRITERS of the subtree, for a moment:
  that fits as soon as no writer is below, however many readers are.

All acquire from the root downwards, the target of a node before its subtree, and waits at a node only for those
that already have it: they wait further down or not at all. So there is no ring of waits. tests/recipes/test_tree.py
goes through all interleavings.

Rejected alternatives: the four modes of databases (IS, IX, S, X) as a kind of lock (one more kind for every store and
for the scripts in Redis); one lock for the whole tree (siblings would wait); the names of all locks below (unbounded).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar

from ..engine import snapshots, validate
from ..engine.name_from_text import safe_name
from ..engine.validate import OWN, Seconds
from ..errors import ConfigError, LockError, LockTimeout, LossReason, NotHeld, StoreError
from ..rules.locks import EXCLUSIVE
from .await_if_needed import Client, EitherBlock, await_if_needed, release_quietly
from .entered_by_caller import EnteredByCaller

Mode = Literal["read", "write"]
TreeLock = TypeVar("TreeLock", bound="TreeLockBase")

ALL = EXCLUSIVE - 1  # the capacity of a subtree
MANY = 1 << 20  # the weight of a writer below: 2,047 of them fit
NO_WRITERS = ALL - MANY + 1  # fits beside a million readers, and beside no writer


class Step(NamedTuple):
    """Acquire one lock of the store; or release one that was for a moment only."""

    resource: str
    kind: Literal["read", "write", "subtree", "release"]
    weight: int = 0


def steps(path: str, mode: Mode) -> Iterator[Step]:
    """Return what a reader or a writer of this path does, in this order. Pure."""
    names = path.split("/")
    for depth in range(1, len(names) + 1):
        node = f"tree:{'/'.join(names[:depth])}"
        here = depth == len(names)
        if mode == "read" and not here:
            yield Step(f"{node}/", "subtree", 1)
        elif mode == "read":
            yield Step(node, "read")
            yield Step(f"{node}/", "subtree", NO_WRITERS)
            yield Step(f"{node}/", "release")
        else:
            yield Step(node, "write")
            yield Step(f"{node}/", "subtree", ALL if here else MANY)
            if not here:
                yield Step(node, "release")


def checked_path(path: Any) -> str:
    """Return the path without slashes around it. ConfigError if it has empty names, '.' or '..'."""
    if not isinstance(path, str):
        raise ConfigError(f"A path is a string, not {type(path).__name__}.")
    names = path.strip("/").split("/")
    if any(name in ("", ".", "..") for name in names):
        raise ConfigError(f"A path is names with a slash between them, such as 'repo/src'; not {validate.shown(path)}.")
    for name in names:
        validate.label(name, "A name in a path")
    return "/".join(names)


class TreeLeaseBase:
    """What a reader or a writer of a path holds: several leases, of which each must be held."""

    def __init__(self, path: str, mode: Mode, leases: list[Any], fence: int) -> None:
        self.path = path
        self.mode: Mode = mode
        self._leases = leases
        self.fence = fence
        """Greater than every number given out before for this node. Between nodes the store's clock decides: the number
        of a later holder is greater if all nodes have one clock, which has not gone back."""
        self._released = False

    @property
    def lost(self) -> bool:
        """True if one of its leases has been lost. Reads the clock, does no I/O, and once True stays True."""
        return any(lease.lost for lease in self._leases)

    @property
    def held(self) -> bool:
        """True if it is neither released nor lost."""
        return not self._released and not self.lost

    @property
    def reason(self) -> LossReason | None:
        """The reason of its loss; None if it was not lost."""
        reasons = [lease.reason for lease in self._leases if lease.lost]
        return reasons[0] if reasons else None

    def remaining(self) -> float:
        """Return for how many seconds it is held even if the store is never reached again; 0.0 if it is not held."""
        return 0.0 if self._released else min(lease.remaining() for lease in self._leases)

    def ensure_held(self) -> None:
        """Raise LeaseLost if it is lost, NotHeld after a release. Call it before a step that must not happen twice."""
        if self._released:
            raise NotHeld(f"The lease on {self.path!r} was released.")
        for lease in self._leases:
            lease.ensure_held()

    async def _release(self) -> None:
        """Release all of them, the last taken first, whatever happens to one. The first error is raised at the end."""
        raised: BaseException | None = None
        self._released = True
        for lease in reversed(self._leases):
            try:
                await await_if_needed(lease.release())
            except LockError as error:
                self._released = self._released and not isinstance(error, StoreError)  # it may be called again
                raised = raised or error
        if raised is not None:
            raise raised

    async def _enter(self) -> Self:
        """Return it. From here on a loss of any of them cancels the task, and this thread is known to be inside."""
        self.ensure_held()
        for lease in self._leases:
            await EitherBlock(lease).__aenter__()
        return self

    async def _leave(self, error: BaseException | None) -> None:
        """Leave `with`. A loss is raised only if the body was clean, else noted on its exception."""
        self._released = True
        raised = error
        for lease in reversed(self._leases):
            try:
                await EitherBlock(lease).__aexit__(None if raised is None else type(raised), raised, None)
            except BaseException as worse:
                raised = worse
        if raised is not None and raised is not error:
            raise raised

    def __repr__(self) -> str:
        state = "released" if self._released else "lost" if self.lost else f"{self.remaining():.1f} s left"
        return f"<TreeLease {self.mode} {self.path!r} fence {self.fence}, {state}>"


class TreeBase(Generic[Client, TreeLock]):
    """A path, without the part that waits."""

    _lock_type: type[TreeLock]

    def __init__(
        self, locks: Client, path: str, *, timeout: Seconds | None = None, lease: Seconds | None = None, note: str = ""
    ) -> None:
        self.path = checked_path(path)
        self._locks = locks
        self._timeout = validate.timeout(timeout)
        self._lease = None if lease is None else validate.lease(lease)
        self._note = validate.label(note, "A note")

    def read(self) -> TreeLock:
        """Return the lock of a reader: shared with other readers, here, below and above."""
        return self._lock("read")

    def write(self) -> TreeLock:
        """Return the lock of the writer: it excludes everyone at this path, below it and above it."""
        return self._lock("write")

    def _lock(self, mode: Mode) -> TreeLock:
        note = f"{mode} {self.path}{f': {self._note}' if self._note else ''}"[:200]
        return self._lock_type(self._locks, self.path, mode, self._timeout, {"lease": self._lease, "note": note})

    def __repr__(self) -> str:
        return f"<Tree {self.path!r}>"


class TreeLockBase:
    """The reader or the writer of a path: its locks, acquired from the root downwards under one deadline."""

    _lease_type: type[Any]

    def __init__(self, locks: Any, path: str, mode: Mode, timeout: float | None, options: dict[str, Any]) -> None:
        self.path = path
        self.mode: Mode = mode
        self._locks = locks
        self._timeout = timeout
        self._options = options
        self._entered = EnteredByCaller(locks.session.runtime.current, repr(path))

    def _limit(self, blocking: bool, timeout: Seconds | None) -> float | None:
        if timeout is OWN:
            return self._timeout if blocking else 0.0
        return validate.blocking(blocking, timeout)

    def _make(self, step: Step) -> Any:
        name = safe_name(step.resource)
        if step.kind == "subtree":
            return self._locks.semaphore(name, ALL, **self._options)
        both = self._locks.rwlock(name, local_handoff=False, **self._options)
        return both.read() if step.kind == "read" else both.write()

    async def _acquire(self, limit: float | None) -> Any:
        """Return the lease, or the step that could not be done in time. On any exception nothing is left."""
        session = self._locks.session
        until = None if limit is None else session.clock() + limit
        held: dict[str, Any] = {}
        got = None
        try:
            for step in steps(self.path, self.mode):
                if step.kind == "release":
                    await await_if_needed(held.pop(step.resource).release())
                    continue
                rest = None if until is None else max(until - session.clock(), 0.0)
                weight = {"weight": step.weight} if step.weight else {}
                lease = await await_if_needed(self._make(step).acquire(timeout=rest, **weight))
                if lease is None:
                    return step
                held[step.resource] = lease
            got = self._lease_type(self.path, self.mode, list(held.values()), held[f"tree:{self.path}"].fence)
            got.ensure_held()
            return got
        finally:
            if got is None or got.lost:
                await session.runtime.shield(release_quietly(list(held.values())))

    async def _attempt(self, limit: float | None) -> Any:
        """Return the lease; None: not in time."""
        got = await self._acquire(limit)
        return None if isinstance(got, Step) else got

    async def _enter(self) -> Any:
        """Enter `with`. LockTimeout if it was not acquired in time."""
        got = await self._acquire(self._timeout)
        if isinstance(got, Step):
            raise await self._timed_out(got)
        try:
            await got._enter()
        except BaseException:
            await self._locks.session.runtime.shield(release_quietly(got._leases))
            raise
        self._entered.push(got)
        return got

    async def _leave(self, error: BaseException | None) -> None:
        await self._entered.pop()._leave(error)

    async def _timed_out(self, step: Step) -> LockTimeout:
        """Return the LockTimeout of a wait that has ended: what is in the way, and where."""
        name = safe_name(step.resource)
        held = ""
        holders: tuple[str, ...] = ()
        try:
            state, now = await self._locks.session.read(name)
        except StoreError:
            pass
        else:
            found = snapshots.resource(name, state, now).holders
            holders = tuple(one.owner for one in found if one.owner)
            held = snapshots.in_the_way(found)
        waited = f"; you waited {snapshots.duration(self._timeout)}" if self._timeout else ""
        where = f": {step.resource.removeprefix('tree:')!r} {held}" if held else ""
        error = LockTimeout(f"{self.path!r} could not be acquired to {self.mode} it{where}{waited}.")
        error.name, error.holders, error.waited = self.path, holders, self._timeout or 0.0
        return error

    def __repr__(self) -> str:
        return f"<TreeLock {self.mode} {self.path!r}>"

"""Election: of several processes one leads, and another takes over when it ends, dies or hangs.

An election is the lock of its name: the leader is the holder, the candidates are its queue, a term is a lease. What a
program usually writes around that is here: wait in the queue again after a loss, resign at SIGTERM, show the leader.

A leader that is only slow does not know that another leads. So a term has a fence, which rises from term to term, and
`lost`, which turns True before another can lead (docs/recipes-elect.md).

Rejected alternatives: a name of its own in the store, as "leader:NAME" (`fairlock show`, `evict` and `run` should mean
the same thing by a name); a thread that calls main() (a loss could not be raised there, and signals do not arrive
there); SIGTERM as a flag (most programs do not read it while they work).
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from ..engine import validate
from ..engine.run_sync import run
from ..engine.validate import Seconds
from ..errors import LeaseLost, StoreError
from ..rules.locks import EXCLUSIVE
from ..sync import Lease, Lock, Locks
from .await_if_needed import EitherBlock, await_if_needed, checked_function

PAUSE = 1.0  # seconds between two attempts to stand while the store is down
ENDED_BY_SIGTERM = 128 + signal.SIGTERM

R = TypeVar("R")


class Leader(NamedTuple):
    """The leader of an election, as the store knows it."""

    owner: str
    """The label of its client, host:pid by default."""
    since: float
    """Seconds since 1970, by the store's clock."""
    fence: int
    """The number of its term. Greater than that of every earlier term."""
    note: str


async def find_leader(locks: Any, name: str) -> Leader | None:
    """Return the leader, or None if there is none at this moment. For clients of both faces."""
    state, now = await locks.session.read(validate.name(name))
    for each in state.holders:
        if each.expires > now and each.owner and each.weight == EXCLUSIVE:
            return Leader(each.owner, each.since / 1e6, each.fence, each.note)
    return None


def leader(locks: Locks, name: str) -> Leader | None:
    """Return the leader of this election, or None if there is none at this moment."""
    return run(find_leader(locks, name))


async def wait_and_lead(election: Any, main: Callable[[Any], Any]) -> Any:
    """Lead until main ends by itself. After a loss wait again; after the first try a store may also be down."""
    checked_function(main, "main", election._locks)
    led = False
    while True:
        term = None
        try:
            async with EitherBlock(election.hold(timeout=None)) as term:
                led = True
                return await await_if_needed(main(term))
        except LeaseLost:
            if term is None or not term.lost:
                raise  # of another lock that main holds
        except StoreError as down:
            if term is not None or down.refused or not led:
                raise
            await election._locks.session.runtime.sleep(PAUSE)


class Terminated(KeyboardInterrupt):
    """SIGTERM. A KeyboardInterrupt, because no line of the library is left half done by one."""


class ResignAtSigterm:
    """While main runs, SIGTERM ends it by an exception. Only in the main thread, and if the program has no handler."""

    def __enter__(self) -> None:
        import threading

        self._before = None
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            self._before = signal.signal(signal.SIGTERM, self._end)

    def _end(self, signum: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: main is ending, and then the leader resigns
        raise Terminated

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)


class Election(Lock[Lease]):
    """One of several processes leads. Waiting for that, and leading, is a `with` block, or `run`.

        with locks.elect("scheduler") as term:
            while term.held:
                ...

    It is the lock of this name, with everything that a lock does; a term is its lease.
    """

    def __init__(self, locks: Locks, name: str, *, lease: Seconds | None = None, note: str = "") -> None:
        chosen = locks.lock(name, lease=lease, note=note, local_handoff=False)
        super().__init__(locks, chosen._request, timeout=None, reentrant=False)

    def run(self, main: Callable[[Lease], R]) -> R:
        """Wait for leadership, call main(term), resign. After a loss wait again and call it again.

        Returns what main returns while it leads, and raises what it raises. After a loss main is expected to end soon:
        it checks `term.held`, or calls `term.ensure_held()`, whose LeaseLost may leave it. SIGTERM ends main by an
        exception, the leader resigns, and SystemExit(143) is raised; only in the main thread, and if SIGTERM has no
        handler. StoreError if the store cannot be reached at first; later it tries again every second.
        """
        try:
            with ResignAtSigterm():
                result: R = run(wait_and_lead(self, main))
                return result
        except Terminated:
            raise SystemExit(ENDED_BY_SIGTERM) from None


elect = Election

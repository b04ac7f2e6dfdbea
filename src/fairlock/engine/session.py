"""The session: all that one client knows. Its grants, its pending releases, and its events.

Plain data under one mutex that is never held across an await. The files beside this one work on it: acquire.py adds
grants, release.py gives them back, renewal.py renews them and sends the pending releases.

A grant is filed from before the first request until it is released or lost: under its key if others of this client may
share it (request.py), so that they find it; else under its ticket.

A *pending release* is a Release that has to reach the store: of a withdrawn request, of a release that found the store
down, of a lost grant. It is recorded before it is tried, so neither a second Ctrl-C nor a cancelled task can forget it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Hashable
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from ..errors import ConfigError, LockError, LossReason, StoreError
from ..rules.locks import Acquire
from ..stores import base
from ..stores.base import Answer, Backend, OutcomeUnknown, Runtime, unanswered
from ..stores.deadline import over
from . import validate
from .boot_clock import jitter
from .default_owner import salt, this_process
from .events import Event, Measured, emit, log_exception, report_lost
from .grant import NEVER, Grant, LeaseBase, Loss
from .grant_state import HELD, LOST, RELEASED, RELEASING
from .keeper_threads import keepers_for
from .local_queue import lead
from .recheck_leases import follow, look_up
from .request import LockRequest

if TYPE_CHECKING:
    from ..rules.pools import Order
    from ..stores.base import PoolAnswer, Pools
    from .ask_to_release import ReleaseRequest
    from .cancel_event import Cancel

TRIES = 5
BRIEF = 1.0  # seconds for which a request is repeated in any case: a connection that broke is soon back
CLOSED = "This client is closed. Make a new one with connect()."
SOON = 0.1  # seconds after which a grant from a wake-up is confirmed: most are released by then
FORGET = 60.0  # a pending release lasts this long, or a lease: the store's clock may go back in the meantime


class PendingRelease(NamedTuple):
    name: str
    ticket: str
    command: Any
    due: float  # not before this: a lost grant is released only when its holder had the margin to notice
    until: float  # after this the lease has ended it anyway
    pool: bool = False  # the command is for a pool


class Session:
    def __init__(
        self,
        backend: Backend,
        runtime: Runtime,
        owner: str | None,
        on_event: Callable[[Event], object] | None = None,
        hold: type[LeaseBase] = LeaseBase,
    ) -> None:
        self.backend = backend
        self.runtime = runtime
        self.clock = runtime.clock
        self._unnamed = owner is None
        self.owner = this_process() if owner is None else owner
        self.on_event = validate.callback(on_event, "on_event")
        self.measured: Callable[[str], Measured] | None = getattr(on_event, "fairlock_measured", None)
        self.hold = hold
        self.ends_with_process = True  # grants are released at the normal end of the interpreter
        self.closing = False  # nothing is acquired or passed on any more
        self.closed = False
        self.ended: base.Event | None = None  # set when an acquire ends while the client closes
        self.last_reply = runtime.clock()
        self.down = False
        self.hurried = -1.0  # when a grant was last accepted that is confirmed after SOON
        self.exiting: Hashable = None  # the thread or task that closes this client, because the interpreter ends
        # Confirms a grant by another way than the keeper, if that is late; it returns False if it cannot. None: the
        # keeper is enough. Such a one is called before a grant is accepted that is not confirmed yet.
        self.watch_young: Callable[[Grant], bool] | None = None
        self.watch_at = 0.0
        self.passed_on = False  # a lock was passed on between threads or tasks of this client
        self._numbers = count(1)
        self._begin()
        backend.name_connections(self.owner)
        follow(self)

    def _begin(self) -> None:
        """Hold nothing, wait for nothing, have nothing to send: at first, and in the child of a fork."""
        self.mutex = self.runtime.mutex()
        self.grants: dict[object, Grant] = {}
        self.pending_releases: dict[str, PendingRelease] = {}
        self.entered: dict[Hashable, LeaseBase] = {}  # the innermost `with` of each thread or task: see `entered_by`
        self.release_requests: dict[str, ReleaseRequest] = {}  # by ticket, of grants that are held or were lately
        self.nested: dict[tuple[str, Hashable], LeaseBase] = {}  # reentrant holds, by thread or task
        self.cancels: dict[LeaseBase, Cancel] = {}  # waits that can be cancelled, and by what
        self.called_off: set[LeaseBase] = set()
        self.keepers = keepers_for(self)  # the threads that run its keeper; None: it has one of its own
        self.keeper_event: base.Event = (self.keepers or self.runtime).event()
        self.watch_event = self.runtime.event()
        self.keeping = self.watching = False
        self.wake_at = NEVER  # when the keeper wakes up by itself; NEVER: wake it
        self._prefix, self._salt = os.urandom(9).hex(), salt()

    def ticket(self, who: Hashable = None) -> str:
        """Return a new ticket: 18 digits that cannot be guessed, 6 for the thread or task, 8 that cannot repeat.

        The digits of the thread find deadlocks. They are 0 if it is not known: as soon as this client has passed on
        a lock from one thread or task to another, a ticket does not show any more which of them holds it.
        """
        mark = 0 if who is None or self.passed_on else (hash(who) ^ self._salt) & 0xFFFFFF
        number = next(self._numbers)
        if number >> 32:
            return f"{self._prefix}{mark:06x}{number:08x}"
        return self._prefix + (mark << 32 | number).to_bytes(7, "big").hex()  # the same, in a third of the time

    def thread(self, who: Hashable) -> str:
        """Return the number of this thread or task as a ticket has it."""
        return "%06x" % ((hash(who) ^ self._salt) & 0xFFFFFF)

    def over(self) -> BaseException:
        """Return the error of a closed client; for other threads and tasks at the end of the interpreter an exception
        that ends them without a traceback."""
        if self.exiting is not None and self.exiting != self.runtime.current():
            return self.runtime.quiet_end(CLOSED)
        return ConfigError(CLOSED)

    # -- calls to the store

    async def call(self, name: str, command: Any, until: float | None = None, pools: Pools | None = None) -> Answer:
        """Make one step, repeated while its outcome is unknown. StoreError if that does not help until `until`."""
        turn, began = 0, self.clock()
        target: Any = self.backend if pools is None else pools
        acquires = type(command) is Acquire or type(command).__name__ == "Seek"  # most clients import no pools
        while True:
            if self.closing and (self.closed or acquires):
                raise self.over()
            try:
                answer: Answer = await target.call(name, command)
                break
            except StoreError as error:
                self.failed(error)
                raise
            except OutcomeUnknown as doubt:
                turn += 1
                look_up(self)  # the backend may know more than this one request shows
                await self.doubted(doubt, turn, began, until)
                if acquires and pools is not None:
                    command = command._replace(again=True)
        self.answered(answer.at)
        return answer if not turn else answer._replace(again=True)

    def pools(self) -> Pools:
        """Return the pools of the store. ConfigError if it has none."""
        pools = self.backend.pools
        if pools is None:
            raise ConfigError(f"{self.backend.where} keeps no pools. All stores that come with fairlock do.")
        return pools

    def target(self, request: LockRequest) -> Any:
        """Return what this request is sent to: the backend, or its pools."""
        return self.pools() if request.pool else self.backend

    async def call_pool(self, pool: str, order: Order, until: float | None = None) -> PoolAnswer:
        """Send a step of a pool, as `call` sends one of a lock."""
        return cast("PoolAnswer", await self.call(pool, order, until, self.pools()))

    def failed(self, error: StoreError) -> None:
        if not error.refused:
            self.note_down(str(error))

    async def doubted(self, doubt: OutcomeUnknown, turn: int, began: float, until: float | None) -> None:
        """Pause before it is repeated; StoreError if it was repeated often enough."""
        late = (until is not None and self.clock() >= until) or over()
        if late or (turn >= TRIES and self.clock() >= began + BRIEF):
            if not late:
                self.note_down(str(doubt))
            raise unanswered(self.backend.where, doubt) from None
        await self.runtime.sleep((0.5 + jitter() / 2) * min(0.005 * 3**turn, 0.25))

    def answered(self, at: float) -> None:
        self.last_reply = at
        if self.down:
            self.down = False
            emit(self, "store_up", detail=f"{self.backend.where} replies again")

    def note_down(self, detail: str) -> None:
        if not self.down:
            self.down = True
            emit(self, "store_down", detail=detail)

    # -- grants

    def holders(self) -> list[Grant]:
        """Return the grants that this client holds, whatever changes in the meantime."""
        return [grant for grant in list(self.grants.values()) if grant.state is HELD or grant.state is RELEASING]

    def hand_to_keeper(self, grant: Grant) -> None:
        """Let the keeper renew this grant from now on. It is filed already, and its times are set.

        The keeper writes NEVER before it reads the grants, and the time of its next round after that: so one of the two
        sees what the other has written, and an acquire needs no mutex.
        """
        due = grant.renew_at if grant.renew_at < grant.cap else grant.cap
        if due < self.wake_at:
            with self.mutex:
                self.wake_keeper(due)
        if grant.watched:
            with self.mutex:
                self.watch(grant.end())

    def wake_keeper(self, due: float) -> None:
        """Make the keeper work by then. Under the mutex. LockError if it cannot be started."""
        if not self.keeping:
            if self.closed:
                return
            if self.keepers is not None:
                from .renewal import Keeper

                self.keepers.add(self, Keeper(self))
            else:
                from .renewal import keep

                self.start(keep(self), "fairlock-keeper")
            self.keeping = True  # not before: without a keeper the next call must try again
            self.wake_at = due
        elif due < self.wake_at:
            self.wake_at = due
            self.keeper_event.set()

    def watch(self, due: float) -> None:
        """Under the mutex: start the watch. It reads only the clock, so it notices a loss in time."""
        if not self.watching:
            from .renewal import watch

            self.start(watch(self), "fairlock-watch")
            self.watching = True
            self.watch_at = due
        elif due < self.watch_at:
            self.watch_at = due
            self.watch_event.set()

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run this in the background; it waits for the mutex if it needs what is set next."""
        try:
            self.runtime.spawn(work, name)
        except RuntimeError as error:
            work.close()
            raise LockError(
                f"The client needs a {'thread' if self.runtime.blocking else 'task'} of its own to keep its "
                f"leases, and it cannot be started: {error}. Nothing is held by this call. End some threads, or raise "
                f"the limit."
            ) from None

    def drop_grant(self, grant: Grant) -> None:
        """Remove this grant. If others wait in its local queue, one of them asks for a new grant."""
        with self.mutex:
            # In an order that a Ctrl-C may interrupt between any two lines, and that may be repeated.
            self.hand_down(grant)
            if self.grants.get(grant.ticket) is grant:
                del self.grants[grant.ticket]

    def set_apart(self, grant: Grant) -> None:
        """Under the mutex: keep this grant, but do not share it from here on."""
        if self.grants.get(grant.request.key) is grant:
            self.grants[grant.ticket] = grant
            self.hand_down(grant)

    def hand_down(self, grant: Grant) -> None:
        """Under the mutex: this grant is shared no more. The first of its local queue, if there is one, leads from here
        on, for a new grant with a new ticket."""
        key = grant.request.key
        if self.grants.get(key) is not grant:
            return
        if grant.queue:
            heir = grant.queue[0]
            new = Grant(heir._request, self.ticket(heir._who), heir)
            new.queue = grant.queue
            new.since = self.clock()  # nothing has been sent for it yet, so all of its queue have come in time
            self.grants[key] = new
            grant.queue = None
            lead(new, heir)
        else:
            del self.grants[key]

    def leave_soon(self, grant: Grant) -> None:
        """Release a lost grant now, before its margin is over, if all its holders know of the loss and released it."""
        with self.mutex:
            pending, clock = self.pending_releases.get(grant.ticket), self.clock()
            if pending is not None and pending.due > clock and all(hold._released for hold in grant.holds):
                self.pending_releases[grant.ticket] = pending._replace(due=clock)
                self.wake_keeper(clock)

    def lose(self, grant: Grant, reason: LossReason | Literal[""] = "", detail: str = "") -> None:
        """Lose this grant, for all its holders, finally. Without a reason: its time is over."""
        with self.mutex:
            if grant.state is LOST or grant.state is RELEASED:
                return
            clock = self.clock()
            if not reason:
                reason, detail = self._why(grant, clock)
            grant.loss = Loss(reason, detail)
            holds = list(grant.holds)
            for hold in holds:
                hold._reason = reason
            if reason != "forked":
                due = clock + grant.lease / 10 + self.backend.skew
                # Also of an evicted one, whose grant stays: its holder has not noticed yet.
                own = None if grant.cut or reason == "evicted" else int(grant.lease * 1e6) + 1
                self.give_up(grant, due, own)
            grant.state = LOST
        self.drop_grant(grant)
        for hold in holds:
            report_lost(self, hold, reason, detail)
        for hold in holds:
            hold._notice_loss()
            self.call_back(hold, "on_lost")

    def call_back(self, hold: LeaseBase, what: Literal["on_lost", "on_asked"]) -> None:
        """Call this function of the user, if there is one, in the background: it cannot stop or delay the keeper."""
        if getattr(hold._request, what) is not None:
            from .renewal import call_user

            try:
                self.start(call_user(hold, what), f"fairlock-{what.replace('_', '-')}")
            except LockError:
                log_exception(f"{what} for {hold.name!r} could not be called")

    def _why(self, grant: Grant, clock: float) -> tuple[LossReason, str]:
        if clock >= grant.cap:
            return "max_hold", "it was held longer than max_hold allows"
        if self.down:
            silent = clock - self.last_reply
            return "unreachable", f"the store has not replied for {silent:.0f} s. Someone else may hold it now"
        return "expired", "it was not renewed in time (was this process stopped?). Someone else may hold it now"

    # -- pending releases

    def give_up(self, grant: Grant, due: float, lease: int | None = None, leave_tombstone: bool | None = None) -> None:
        """Under the mutex: record that the ticket of this grant must be given up, at `due` or as soon as possible.

        With a lease: not if it is longer in the store, because then another client has extended it.
        """
        if leave_tombstone is None:
            leave_tombstone = grant.doubtful or self.backend.may_duplicate
        command = grant.request.withdraw_message(grant, leave_tombstone, lease)
        until = self.clock() + max(grant.lease, FORGET)
        self.schedule_release(PendingRelease(grant.name, grant.ticket, command, due, until, grant.request.pool))

    def schedule_release(self, pending: PendingRelease) -> None:
        """Call this under the mutex."""
        self.pending_releases[pending.ticket] = pending
        try:
            self.wake_keeper(pending.due)
        except LockError:
            pass  # it is recorded: the next keeper sends it

    # -- fork

    def forked(self) -> None:
        """Reset the session in the child of a fork."""
        for grant in self.grants.values():
            grant.loss = Loss("forked", "it belongs to the parent process")
            grant.state = LOST
            for hold in grant.holds:
                hold._reason = "forked"
        self._begin()
        if self._unnamed:
            self.owner = this_process()
        self.backend.forked()
        self.backend.name_connections(self.owner)

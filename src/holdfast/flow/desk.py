"""The desk: everything one client knows. Its seats, what it owes the store, and what it tells the user.

Plain data under one mutex that is never held across an await. The flows beside this file work on it: acquire.py brings
seats, release.py gives them back, keep.py keeps them and pays the debts.

A seat is filed from before it is asked for until it is left or lost: under its key if others of this client may share
it (wish.py), so that they find it; else under its ticket.

A *debt* is a Leave that has to reach the store: of a withdrawn wish, of a release that found the store down, of a seat
that was lost. It is written down before it is tried, so neither a second Ctrl-C nor a cancelled task can forget it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Hashable
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..backends import contract
from ..backends.contract import Answer, Backend, Colour, Unknown, unanswered
from ..backends.patience import over
from ..doorman import ALL, Command, Enter
from ..errors import BackendError, ConfigError, LockError, LossReason
from . import check
from .clock import chance
from .events import Event, EventKind, heeded, log, short, stumbled
from .owner import this_process
from .party import lead
from .reset import follow, look_up
from .seat import NEVER, Hold, Seat

if TYPE_CHECKING:
    from ..pool import On, Quit
    from .call_off import Cancel
    from .pool import Seeker

TRIES = 5
CLOSED = "This client is closed. Make a new one with connect()."
SOON = 0.1  # seconds after which a seat is confirmed that was taken on the word of a push: most are free again by then
FORGET = 60.0  # a debt is worth this long, or a lease: the store's clock may go back meanwhile and a seat outlast it


class Debt(NamedTuple):
    name: str
    ticket: str
    bury: bool
    due: float  # not before this: a lost seat is left only when its holder had the margin to notice
    until: float  # after this the lease has ended it anyway
    order: On | Quit | None = None  # of a pool: this, and no Leave
    lease: int | None = None  # microseconds: with a longer one another client has extended it, and it is not left


class Desk:
    def __init__(
        self,
        backend: Backend,
        colour: Colour,
        owner: str | None,
        on_event: Callable[[Event], object] | None = None,
        hold: type[Hold] = Hold,
        item: type[Hold] = Hold,
    ) -> None:
        self.backend = backend
        self.colour = colour
        self.clock = colour.clock
        self._unnamed = owner is None
        self.owner = this_process() if owner is None else owner
        self.on_event = check.callback(on_event, "on_event")
        self.hold = hold
        self.item = item
        self.mutex = colour.mutex()
        self.seats: dict[object, Seat] = {}
        self.debts: dict[str, Debt] = {}
        self.entered: dict[Hashable, list[Hold]] = {}  # by `with`, of each thread or task, the innermost last
        self.nested: dict[tuple[str, Hashable], Hold] = {}  # reentrant holds, by who has them
        self.seeking: dict[str, Seeker] = {}  # those who want an item of a pool, by ticket
        self.cancels: dict[Hold | Seeker, Cancel] = {}  # waits that can be called off from elsewhere, and by what
        self.called_off: set[Hold | Seeker] = set()
        self.ends_with_process = True  # what is still held at the normal end of the interpreter is released
        self.closing = False  # nobody is let in or passed on any more
        self.closed = False
        self.ended: contract.Event | None = None  # set when an acquire ends while the client closes
        self.heard = colour.clock()
        self.down = False
        self.bell = colour.event()
        self.keeping = False
        self.wake_at = NEVER  # when the keeper looks up by itself; NEVER: ring
        self.hurried = -1.0  # when a seat was last taken that is to be confirmed SOON
        self.exiting: Hashable = None  # the thread or task that closes this client, because the interpreter ends
        self.watch_bell = colour.event()
        self.watching = False
        self.watch_at = 0.0
        self._tickets = count(1)
        self._prefix = os.urandom(12).hex()
        follow(self)

    def ticket(self) -> str:
        """A new ticket. The first half cannot be guessed, the second cannot repeat."""
        return "%s%08x" % (self._prefix, next(self._tickets))  # noqa: UP031  # a tenth quicker

    def over(self) -> BaseException:
        """What is raised by a client that is closed. In another thread or task at the end of the interpreter: what ends
        it without a traceback."""
        if self.exiting is not None and self.exiting != self.colour.current():
            return self.colour.quiet_end(CLOSED)
        return ConfigError(CLOSED)

    # -- talking to the store

    async def ask(self, name: str, command: Command, until: float | None = None) -> Answer:
        """One step, said again while its outcome is unknown. BackendError if that does not help, or not by then."""
        turn = 0
        while True:
            if self.closing and (self.closed or isinstance(command, Enter)):
                raise self.over()
            try:
                answer = await self.backend.ask(name, command)
                break
            except BackendError as error:
                self.failed(error)
                raise
            except Unknown as doubt:
                turn += 1
                look_up(self)  # the backend may have learnt more than this one request shows
                await self.doubted(doubt, turn, until)
        self.answered(answer.at)
        return answer if not turn else answer._replace(again=True)

    def failed(self, error: BackendError) -> None:
        if not error.refused:
            self.set_down(str(error))

    async def doubted(self, doubt: Unknown, turn: int, until: float | None) -> None:
        """Pause before it is said again; BackendError if it was said often enough."""
        late = (until is not None and self.clock() >= until) or over()
        if turn == TRIES or late:
            if not late:
                self.set_down(str(doubt))
            raise unanswered(self.backend.where, doubt) from None
        await self.colour.sleep((0.5 + chance() / 2) * min(0.005 * 3**turn, 0.25))

    def answered(self, at: float) -> None:
        self.heard = at
        if self.down:
            self.down = False
            self.tell("store_up", detail=f"{self.backend.where} answers again")

    def set_down(self, detail: str) -> None:
        if not self.down:
            self.down = True
            self.tell("store_down", detail=detail)

    def tell(self, kind: EventKind, name: str = "", ticket: str = "", fence: int = 0, detail: str = "") -> None:
        if self.on_event is None and not heeded(kind):
            return
        event = Event(kind, name, short(ticket), fence, detail)
        log(event)
        if self.on_event is not None:
            try:
                self.on_event(event)
            except KeyboardInterrupt:
                raise
            except BaseException:  # sys.exit() in it must not end the keeper, nor the acquire that it was told of
                stumbled("on_event raised; the lock goes on")

    # -- seats

    def inside(self) -> list[Seat]:
        """Those that are ours, whoever else comes and goes meanwhile."""
        return [seat for seat in list(self.seats.values()) if seat.fence]

    def seated(self, seat: Seat) -> None:
        """From now on the keeper keeps this one. It is filed already, and its times are set.

        The keeper says NEVER before it looks at the seats, and what it will do after that: so one of the two sees what
        the other has written, and whoever comes in needs no mutex.
        """
        due = seat.renew_at if seat.renew_at < seat.cap else seat.cap
        if due < self.wake_at:
            with self.mutex:
                self.ring(due)
        if seat.watched:
            with self.mutex:
                self.watch(seat.end())

    def ring(self, due: float) -> None:
        """Have the keeper at work by then. Under the mutex. LockError if it cannot be started."""
        if not self.keeping:
            if self.closed:
                return
            from .keep import keep

            self.start(keep(self), "holdfast-keeper")
            self.keeping = True  # not before: without a keeper the next one who needs it must try again
            self.wake_at = due
        elif due < self.wake_at:
            self.wake_at = due
            self.bell.set()

    def watch(self, due: float) -> None:
        """Under the mutex: have somebody look at the clock who does not talk to the store, so loss is told in time."""
        if not self.watching:
            from .keep import watch

            self.start(watch(self), "holdfast-watch")
            self.watching = True
            self.watch_at = due
        elif due < self.watch_at:
            self.watch_at = due
            self.watch_bell.set()

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run this beside everything else, which waits for the mutex if it needs what is set next."""
        try:
            self.colour.spawn(work, name)
        except RuntimeError as error:
            work.close()
            raise LockError(
                f"The client needs a {'thread' if self.colour.blocking else 'task'} of its own to keep its leases, and "
                f"it cannot be started: {error}. Nothing is held by this call. End some threads, or raise the limit."
            ) from None

    def unseat(self, seat: Seat) -> None:
        """This seat is no longer ours to keep; those who stand by get one of them to ask for a new one."""
        with self.mutex:
            # In an order that may be broken off by a Ctrl-C between any two lines, and begun again.
            if self.seats.get(seat.filed) is seat:
                if seat.line:
                    self.hand_down(seat)
                else:
                    del self.seats[seat.filed]
            if seat.weight != ALL:
                self.seats.pop(seat.ticket, None)

    def set_apart(self, seat: Seat) -> None:
        """Under the mutex: it stays ours, but nobody shares it from here on."""
        if seat.filed != seat.ticket:
            self.seats[seat.ticket] = seat
            self.hand_down(seat)
            seat.filed = seat.ticket

    def hand_down(self, seat: Seat) -> None:
        """Under the mutex: the first of those who stand by leads from here on, for a new seat, under a new ticket."""
        if self.seats.get(seat.filed) is not seat:
            return
        if seat.line:
            heir = seat.line[0]
            new = Seat(heir._wish, self.ticket(), self.backend.skew, seat.filed)
            new.line = seat.line
            new.leader = heir
            self.seats[seat.filed] = new
            seat.line = None
            lead(new, heir)
        else:
            del self.seats[seat.filed]

    def leave_soon(self, seat: Seat) -> None:
        """A lost seat is left now if all that held it know of the loss and are out; no need to wait for its margin."""
        with self.mutex:
            debt, clock = self.debts.get(seat.ticket), self.clock()
            if debt is not None and debt.due > clock and all(hold._released for hold in seat.holds):
                self.debts[seat.ticket] = debt._replace(due=clock)
                self.ring(clock)

    def lose(self, seat: Seat, reason: LossReason | Literal[""] = "", story: str = "") -> None:
        """This seat is lost, for all who hold it, for good. Without a reason: the clock says so."""
        with self.mutex:
            if seat.reason or seat.left:
                return
            clock = self.clock()
            if not reason:
                reason, story = self._why(seat, clock)
            seat.reason, seat.story = reason, story
            holds = list(seat.holds)
            for hold in holds:
                hold._reason = reason
            if reason != "forked":
                due = clock + seat.margin  # also of an evicted one, whose seat stays: its holder has not looked yet
                bury = seat.doubtful or self.backend.doubles
                until = clock + max(seat.lease, FORGET)
                own = None if seat.order is not None or seat.cut or reason == "evicted" else int(seat.lease * 1e6) + 1
                self.owe(Debt(seat.name, seat.ticket, bury, due, until, seat.order, own))
        self.unseat(seat)
        self.tell("evicted" if reason == "evicted" else "lost", seat.name, seat.ticket, seat.fence, story)
        for hold in holds:
            hold._told_lost()
            if hold._wish.on_lost is not None:
                from .keep import call_on_lost

                try:
                    self.start(call_on_lost(hold), "holdfast-on-lost")
                except LockError:
                    stumbled(f"on_lost for {hold.name!r} could not be called")

    def _why(self, seat: Seat, clock: float) -> tuple[LossReason, str]:
        if clock >= seat.cap:
            return "max_hold", "it was held longer than max_hold allows"
        if self.down:
            silent = clock - self.heard
            return "unreachable", f"the store has not answered for {silent:.0f} s. Someone else may hold it now"
        return "expired", "it was not renewed in time (was this process stopped?). Someone else may hold it now"

    # -- debts

    def owe(self, debt: Debt) -> None:
        """Under the mutex."""
        self.debts[debt.ticket] = debt
        try:
            self.ring(debt.due)
        except LockError:
            pass  # it is written down: the next keeper sends it

    # -- fork

    def forked(self) -> None:
        """In the child of a fork: it holds nothing, waits for nothing, owes nothing."""
        self.mutex = self.colour.mutex()
        for seat in self.seats.values():
            seat.reason, seat.story = "forked", "it belongs to the parent process"
            for hold in seat.holds:
                hold._reason = "forked"
        self.seats.clear()
        self.debts.clear()
        self.entered.clear()
        self.nested.clear()
        self.seeking.clear()
        self.cancels.clear()
        self.called_off.clear()
        self.bell = self.colour.event()
        self.watch_bell = self.colour.event()
        self.keeping = self.watching = False
        self.wake_at = NEVER
        self._prefix = os.urandom(12).hex()
        if self._unnamed:
            self.owner = this_process()
        self.backend.forked()

"""Getting in: the flow from a wish to a hold.

    acquire   joins a party of this client that waits for the same thing, or starts one and leads it
    _lead     says Enter until the doorman admits; between two Enters it waits for a hint, never longer than rules allow
    withdraw  undoes whatever a cancelled or interrupted acquire had got to

short.py has the way into a lock that nobody else wants, without waiting and so without coroutines; release.py has the
way out.

A wish that ends early, for whatever reason (time, cancellation, Ctrl-C, an error), leaves nothing behind: its Leave is
written down as a debt first and then tried, so that the keeper pays it if this very attempt is interrupted, too.
"""

from __future__ import annotations

from ..backends.contract import Event
from ..doorman import ALL, Admitted, Enter, Gone, Refused, Waiting
from ..doorman.record import WINDOW
from ..doorman.rules import sleep_span
from ..errors import BackendError
from .clock import chance
from .desk import FORGET, SOON, Debt, Desk
from .events import heeded, warn
from .party import lead, let_in, stand_by
from .refusal import refusal
from .release import pay, release
from .seat import NEVER, Hold, Seat

RETRY_FIRST = 0.05
RETRY_MOST = 1.0
LOOK_AGAIN = 5.0
SPREAD = 0.02
QUICKLY = 0.2  # whoever gives up waits no longer than this for a silent store: the keeper sees to it

named = tuple.__new__  # makes a named tuple for half of what its own name costs


async def acquire(desk: Desk, hold: Hold, until: float | None) -> bool:
    """Whether it is had, or the time is over. `until` is the client's clock: None = for ever, 0 = only try.

    On any exception the caller must `withdraw(desk, hold)`.
    """
    trying = until == 0
    if hold._seat.leader is not hold and hold._event is None:  # else the short way has got so far
        if not _join(desk, hold, trying):
            return False
    if hold._event is not None:
        await _stand_by(desk, hold, hold._event, until)
        if hold in hold._seat.holds:
            desk.seated(hold._seat)
            desk.tell("acquired", hold.name, hold.ticket, hold.fence)
            return True
        if hold._seat.leader is not hold:
            if desk.closing:
                raise desk.over()
            return False
    return await _lead(desk, hold, hold._seat, until, trying)


def _join(desk: Desk, hold: Hold, trying: bool) -> bool:
    """Stand by those of this client who want the same, or lead. False: not worth trying, this very client holds it."""
    wish = hold._wish
    with desk.mutex:
        key: object = wish.key
        seat = desk.seats.get(key)
        if seat is not None and trying:
            if seat.fence and desk.clock() < seat.deadline:
                return False
            seat = key = None
        if seat is None:
            hold._seat = seat = Seat(wish, desk.ticket(), desk.backend.skew, key)
            seat.leader = hold
            desk.seats[seat.filed] = seat
        else:
            stand_by(seat, hold, desk.colour.event())
    if hold._event is not None:
        desk.tell("waiting", wish.name, detail="behind others of this client")
    return True


async def _stand_by(desk: Desk, hold: Hold, event: Event, until: float | None) -> None:
    """Wait until somebody leads us in, or we are to lead. The event is a hint; what counts is looked at again."""
    while True:
        with desk.mutex:
            over = desk.closing or hold in desk.called_off or (until is not None and desk.clock() >= until)
            if called(desk, hold) or over:
                _stand_aside(desk, hold)
                return
        rest = LOOK_AGAIN if until is None else min(until - desk.clock(), LOOK_AGAIN)
        if hold._warn_at is not None:
            rest = min(rest, _warn(desk, hold))
        if await event.wait(max(rest, 0)):
            event.clear()


def called(desk: Desk, hold: Hold) -> bool:
    """Under the mutex: whether this one has what it stood by for, or is to ask for it."""
    if hold in hold._seat.holds:
        return True
    seat = desk.seats.get(hold._wish.key)
    if seat is None or seat.leader is not hold:
        return False
    hold._seat = seat
    return True


def _stand_aside(desk: Desk, hold: Hold) -> None:
    """Under the mutex: out of the line, also if whoever called it was interrupted before it could."""
    seat = desk.seats.get(hold._wish.key)
    if seat is not None and seat.line and hold in seat.line:
        seat.line.remove(hold)


def _warn(desk: Desk, hold: Hold) -> float:
    """Whoever waits for what it holds itself may be waiting for ever: say so, or how long to wait before saying so."""
    assert hold._warn_at is not None
    rest = hold._warn_at - desk.clock()
    if rest > 0:
        return rest
    hold._warn_at = None
    kind = "thread" if desk.colour.blocking else "task"
    warn(f"A {kind} waits for {hold.name!r}, which it holds itself. Unless another one releases it, it waits for ever.")
    return NEVER


async def _lead(desk: Desk, hold: Hold, seat: Seat, until: float | None, trying: bool) -> bool:
    name = seat.name
    backend = desk.backend
    retry = RETRY_FIRST
    while True:
        if desk.called_off and hold in desk.called_off:
            await _step_down(desk, hold)
            return False
        doubt = seat.doubtful
        answer, seat.answer = seat.answer, None
        try:
            if answer is None:
                answer = await desk.ask(name, say_enter(desk, seat, trying), until or None)
        except BackendError as error:
            left = NEVER if until is None else until - desk.clock()
            if not seat.waited or error.refused or left <= 0:
                raise
            await desk.colour.sleep(min(retry, left))
            retry = min(retry * 2, RETRY_MOST)
            continue
        seat.doubtful = doubt or answer.again
        retry = RETRY_FIRST
        reply = answer.reply
        if isinstance(reply, Admitted):
            if take_seat(desk, hold, seat, reply.fence, answer.at, reply.left):
                return True
            if until is None or desk.clock() < until:
                continue  # the answer took longer than the lease: ask whether the seat is still ours; or we close
            await _step_down(desk, hold)
            return False
        if isinstance(reply, Waiting):
            _note_place(desk, seat, reply)
            clock = desk.clock()
            if until is not None and clock >= until:
                await _step_down(desk, hold)
                return False
            nap = min(reply.retry_in, sleep_span(reply.ahead)) / 1e6
            if reply.ahead > 1:  # all of the line look at the same expiry: not at the same instant, or they collide
                nap += chance() * min(SPREAD * reply.ahead, 0.2)
            if hold._warn_at is not None:
                nap = min(nap, _warn(desk, hold))
            nap = max(min(nap, until - clock) if until is not None else nap, 0.0005)
            try:
                pushed = await backend.changed(name, seat.ticket, nap)
            except BackendError:  # it cannot be listened to: whether it can be asked, the next Enter tells
                pushed = None
                await desk.colour.sleep(min(nap, RETRY_MOST))
            if pushed is not None and pushed.fence and pushed.place == seat.place and backend.pushes_grants:
                # Sent after the grant was made, and for the place we hold since our last answered poll.
                window = min(seat.wish.span, WINDOW)
                at = pushed.until - window / 1e6 if pushed.until else answer.at  # it was made then, or later
                if desk.clock() < at + window / 4e6:  # else little of it may be left: ask
                    if take_seat(desk, hold, seat, pushed.fence, at, window):
                        return True
            continue
        if isinstance(reply, Gone):
            await _move_out(desk, seat)
            raise refusal(hold._wish, reply)
        seat.sent = seat.waited or seat.doubtful or backend.doubles  # an earlier Enter may yet arrive
        await _step_down(desk, hold)
        if isinstance(reply, Refused):
            return False
        raise refusal(hold._wish, reply)


def say_enter(desk: Desk, seat: Seat, trying: bool) -> Enter:
    """What the leader says for its party. From here on the store may know the ticket."""
    wish = seat.wish
    seat.sent = seat.doubtful = True
    return named(Enter, (
        seat.ticket, wish.capacity, wish.weight, wish.span, not trying, wish.fair, wish.block,
        desk.backend.ear, desk.owner, wish.note,
    ))  # fmt: skip


def take_seat(desk: Desk, hold: Hold, seat: Seat, fence: int, at: float, left: int) -> bool:
    """Sit down, unless the time granted is over already."""
    wish = hold._wish
    seat.confirm(at, left)
    clock = desk.clock()
    if clock >= seat.deadline or desk.closing:
        return False
    if left < wish.span:  # the store has not heard us yet, and most are out again before it has to
        seat.renew_at = clock + min((seat.deadline - clock) / 3, SOON)
        desk.hurried = clock
    seat.admitted = clock
    seat.fence = fence
    seat.give(hold, fence, clock)
    seat.leader = None
    if wish.weight != ALL:
        with desk.mutex:
            let_in(seat, clock)
            desk.set_apart(seat)
    if seat.renew_at < desk.wake_at or seat.watched or seat.cap < desk.wake_at:
        desk.seated(seat)
    if desk.on_event is not None or heeded("acquired"):
        desk.tell("acquired", wish.name, seat.ticket, fence)
    return True


def _note_place(desk: Desk, seat: Seat, reply: Waiting) -> None:
    if not seat.waited:
        seat.waited = True
        if desk.on_event is not None or heeded("waiting"):
            desk.tell("waiting", seat.name, seat.ticket, detail=f"{reply.ahead} ahead in line")
    elif reply.place != seat.place and reply.ahead > seat.ahead:
        detail = f"silent for too long: {seat.ahead} stood ahead before, {reply.ahead} now"
        desk.tell("place_lost", seat.name, seat.ticket, detail=detail)
    seat.place, seat.ahead = reply.place, reply.ahead


async def _move_out(desk: Desk, seat: Seat) -> None:
    """This ticket will never be let in again: whoever leads next needs another. If it was inside, it need not stay."""
    with desk.mutex:
        clock = desk.clock()
        desk.owe(Debt(seat.name, seat.ticket, False, clock + 1.0, clock + max(seat.lease, FORGET)))
        seat.leader = None
    desk.unseat(seat)
    await pay(desk, seat.ticket, desk.clock() + QUICKLY)


async def _step_down(desk: Desk, hold: Hold) -> None:
    """The leader no longer wants: somebody of its party leads from here on with the same ticket, or the ticket goes."""
    seat = hold._seat
    with desk.mutex:
        if seat.leader is not hold:
            return
        if seat.line:
            lead(seat, seat.line[0])
            return
        if seat.sent:
            clock = desk.clock()
            bury = seat.doubtful or desk.backend.doubles
            desk.owe(Debt(seat.name, seat.ticket, bury, clock + 1.0, clock + max(seat.lease, FORGET)))
        seat.leader = None
        if desk.seats.get(seat.filed) is seat:
            del desk.seats[seat.filed]
    if seat.sent:
        await pay(desk, seat.ticket, desk.clock() + QUICKLY)


async def withdraw(desk: Desk, hold: Hold) -> None:
    """Undo what an acquire that ends by an exception had got to. Never raises what the store says."""
    with desk.mutex:
        _stand_aside(desk, hold)
        called(desk, hold)
    if hold in hold._seat.holds:
        hold._seat.leader = None
        await release(desk, hold, quiet=True)
    else:
        await _step_down(desk, hold)
    if desk.ended is not None:
        desk.ended.set()

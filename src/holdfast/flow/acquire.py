"""Getting in and getting out: the flow from a wish to a hold, and from a hold to nothing.

    acquire   joins a party of this client that waits for the same thing, or starts one and leads it
    _lead     says Enter until the doorman admits; between two Enters it waits for a hint, never longer than rules allow
    release   passes the seat on to the next of the party, or leaves
    withdraw  undoes whatever a cancelled or interrupted acquire had got to

short.py has the way in and out of a lock that nobody else wants, without waiting and so without coroutines.

A wish that ends early, for whatever reason (time, cancellation, Ctrl-C, an error), leaves nothing behind: its Leave is
written down as a debt first and then tried, so that the keeper pays it if this very attempt is interrupted, too.
"""

from __future__ import annotations

from ..doorman import ALL, Admitted, Enter, Gone, Keep, Leave, Left, Mismatch, Refused, Waiting
from ..doorman.record import WINDOW
from ..doorman.rules import sleep_span
from ..errors import BackendError, ConfigError, LeaseLost
from .clock import chance
from .desk import FORGET, SOON, Debt, Desk
from .events import warn
from .party import Guest, Party, key_of
from .seat import NEVER, Hold, Seat, Wish

RETRY_FIRST = 0.05
RETRY_MOST = 1.0
LOOK_AGAIN = 5.0
SPREAD = 0.02
QUICKLY = 0.2  # whoever gives up waits no longer than this for a silent store: the keeper sees to it


async def acquire(desk: Desk, wish: Wish, until: float | None, guest: Guest) -> Hold | None:
    """A hold, or None when the time is over. `until` is the client's clock: None = for ever, 0 = only try.

    On any exception the caller must `withdraw(desk, guest)`.
    """
    trying = until == 0
    if guest.party is not None:
        return await _lead(desk, guest, guest.party, until, trying)  # the short way has led only so far
    key = key_of(wish)
    with desk.mutex:
        party = desk.parties.get(key) if key is not None else None
        if party is not None and trying:
            if party.seat is not None and desk.clock() < party.seat.deadline:
                return None  # this very client holds it
            party = key = None
        if party is None:
            guest.party = party = Party(wish, key)
            guest.leads = True
            party.leader = guest
            if key is not None:
                desk.parties[key] = party
        else:
            guest.event = desk.colour.event()
            guest.party = party
            party.line.append(guest)
    if not guest.leads:
        desk.tell("waiting", wish.name, detail="behind others of this client")
        hold = await _stand_by(desk, guest, party, until)
        if hold is not None:
            with desk.mutex:
                desk.seated(hold._seat)
            desk.tell("acquired", wish.name, hold.ticket, hold.fence)
        if not guest.leads:
            return hold
    return await _lead(desk, guest, party, until, trying)


async def _stand_by(desk: Desk, guest: Guest, party: Party, until: float | None) -> Hold | None:
    """Wait for the party's leader, or for the hold itself. The event is a hint; what counts is looked at again."""
    assert guest.event is not None
    while True:
        rest = LOOK_AGAIN if until is None else min(until - desk.clock(), LOOK_AGAIN)
        if guest.warn_at is not None:
            rest = min(rest, _warn(desk, guest))
        told = await guest.event.wait(max(rest, 0))
        with desk.mutex:
            if told or guest.hold is not None or guest.leads:
                if guest in party.line:
                    party.line.remove(guest)  # whoever called it was interrupted before it could
                return guest.hold
            if until is not None and desk.clock() >= until:
                party.line.remove(guest)
                return None


def _warn(desk: Desk, guest: Guest) -> float:
    """Whoever waits for what it holds itself may be waiting for ever: say so, or how long to wait before saying so."""
    assert guest.warn_at is not None
    rest = guest.warn_at - desk.clock()
    if rest > 0:
        return rest
    guest.warn_at = None
    kind = "thread" if desk.colour.blocking else "task"
    name = guest.wish.name
    warn(f"A {kind} waits for {name!r}, which it holds itself. Unless another one releases it, it waits for ever.")
    return NEVER


async def _lead(desk: Desk, guest: Guest, party: Party, until: float | None, trying: bool) -> Hold | None:
    name = party.wish.name
    backend = desk.backend
    retry = RETRY_FIRST
    while True:
        wish = party.wish
        doubt = party.unanswered
        answer, party.answer = party.answer, None
        try:
            if answer is None:
                answer = await desk.ask(name, say_enter(desk, party, trying), until or None)
        except BackendError as error:
            if not party.waited or error.refused or (until is not None and desk.clock() + retry >= until):
                raise
            await desk.colour.sleep(retry)
            retry = min(retry * 2, RETRY_MOST)
            continue
        party.unanswered = doubt or answer.again
        retry = RETRY_FIRST
        reply = answer.reply
        if isinstance(reply, Admitted):
            hold = take_seat(desk, guest, party, reply.fence, answer.at, reply.left)
            if hold is not None:
                return hold
            if until is None or desk.clock() < until:
                continue  # the answer took longer than the lease: ask whether the seat is still ours
            await _step_down(desk, guest)
            return None
        if isinstance(reply, Waiting):
            _note_place(desk, party, reply)
            clock = desk.clock()
            if until is not None and clock >= until:
                await _step_down(desk, guest)
                return None
            nap = min(reply.retry_in, sleep_span(reply.ahead)) / 1e6
            if reply.ahead > 1:  # all of the line look at the same expiry: not at the same instant, or they collide
                nap += chance() * min(SPREAD * reply.ahead, 0.2)
            if guest.warn_at is not None:
                nap = min(nap, _warn(desk, guest))
            nap = max(min(nap, until - clock) if until is not None else nap, 0.0005)
            try:
                pushed = await backend.changed(name, party.ticket, nap)
            except BackendError:  # it cannot be listened to: whether it can be asked, the next Enter tells
                pushed = None
                await desk.colour.sleep(min(nap, RETRY_MOST))
            if pushed is not None and pushed.fence and pushed.place == party.place and backend.pushes_grants:
                # Sent after the grant was made, and for the place we hold since our last answered poll.
                window = min(int(wish.lease * 1e6), WINDOW)
                if desk.clock() < answer.at + window / 4e6:  # else little of it may be left: ask
                    hold = take_seat(desk, guest, party, pushed.fence, answer.at, window)
                    if hold is not None:
                        return hold
            continue
        if isinstance(reply, Gone):
            await _move_out(desk, party)
        else:
            party.sent = party.waited or party.unanswered or backend.doubles  # an earlier Enter may yet arrive
        await _step_down(desk, guest)
        if isinstance(reply, Refused):
            return None
        raise _refusal(wish, reply)


def say_enter(desk: Desk, party: Party, trying: bool) -> Enter:
    """What the leader says for its party. From here on the store may know the ticket."""
    wish = party.wish
    if not party.ticket:
        party.ticket = desk.ticket()
    party.sent = party.unanswered = True
    return Enter(
        party.ticket, wish.capacity, wish.weight, int(wish.lease * 1e6), not trying, wish.fair, party.block,
        desk.backend.ear, desk.owner, wish.note,
    )  # fmt: skip


def take_seat(desk: Desk, guest: Guest, party: Party, fence: int, at: float, left: int) -> Hold | None:
    """Sit down, unless the time granted is over already."""
    wish = guest.wish
    seat = Seat(wish.name, party.ticket, fence, party.block, wish.weight, wish.lease, desk.backend.skew, party)
    seat.doubtful = party.unanswered
    seat.confirm(at, left)
    clock = desk.clock()
    if clock >= seat.deadline:
        return None
    if left < int(wish.lease * 1e6):  # the store has not heard us yet, and most are out again before it has to
        seat.renew_at = clock + min((seat.deadline - clock) / 3, SOON)
        desk.hurried = clock
    seat.admitted = clock
    with desk.mutex:
        # In this order, so that a Ctrl-C between any two lines leaves something that withdraw() can undo.
        party.seat = seat
        hold = guest.hold = desk.new_hold(seat, fence, wish, guest.who)
        guest.leads = False
        party.leader = None
        if wish.weight != ALL:
            while party.line:  # readers who waited together go in together
                other = party.line.popleft()
                other.hold = desk.new_hold(seat, fence, other.wish, other.who)
                assert other.event is not None
                other.event.set()
            if desk.parties.get(party.key) is party:
                del desk.parties[party.key]
        desk.seated(seat)
    desk.tell("acquired", wish.name, seat.ticket, fence)
    return hold


def _note_place(desk: Desk, party: Party, reply: Waiting) -> None:
    if not party.waited:
        party.waited = True
        desk.tell("waiting", party.wish.name, party.ticket, detail=f"{reply.ahead} ahead in line")
    elif reply.place != party.place and reply.ahead > party.ahead:
        detail = f"silent for too long: {party.ahead} stood ahead before, {reply.ahead} now"
        desk.tell("place_lost", party.wish.name, party.ticket, detail=detail)
    party.place, party.ahead = reply.place, reply.ahead


def _refusal(wish: Wish, reply: object) -> Exception:
    if isinstance(reply, Mismatch):
        if not reply.capacity:
            return ConfigError(f"How many slots {wish.name!r} has was never said. Say it: semaphore({wish.name!r}, 4).")
        has = f"{wish.name!r} has {reply.capacity} slot{'s' if reply.capacity > 1 else ''}"
        if wish.weight > reply.capacity and wish.capacity in (0, reply.capacity):
            return ConfigError(f"{has}; a weight of {wish.weight} can never fit.")
        if reply.capacity == ALL:
            return ConfigError(f"{wish.name!r} is a lock and is in use; it has no slots. Use another name.")
        if wish.capacity == ALL:
            return ConfigError(f"{has} and is in use; this client says it is a lock. Use another name.")
        return ConfigError(
            f"{has} and is in use; this client says {wish.capacity}. "
            f"Use resize({wish.name!r}, {wish.capacity}) or wait until idle."
        )
    assert isinstance(reply, Gone)
    why = reply.why
    error = LeaseLost(f"The place in line for {wish.name!r} was taken away by {why.by or 'the store'}: {why.reason}.")
    error.reason = "evicted" if why.kind == "evicted" else "expired"
    return error


async def _move_out(desk: Desk, party: Party) -> None:
    """This ticket will never be let in again: whoever leads next needs another. If it was inside, it need not stay."""
    with desk.mutex:
        ticket, party.ticket = party.ticket, ""
        party.sent = party.waited = party.unanswered = False
        clock = desk.clock()
        desk.owe(Debt(party.wish.name, ticket, False, clock + 1.0, clock + max(party.wish.lease, FORGET)))
    await pay(desk, ticket, desk.clock() + QUICKLY)


async def _step_down(desk: Desk, guest: Guest) -> None:
    """The leader no longer wants: somebody of its party leads from here on with the same ticket, or the ticket goes."""
    party = guest.party
    assert party is not None
    with desk.mutex:
        if not guest.leads:
            return
        if party.line:
            party.lead(party.line[0])
            guest.leads = False
            return
        guest.leads = False
        party.leader = None
        ticket, party.ticket = party.ticket, ""
        if desk.parties.get(party.key) is party:
            del desk.parties[party.key]
        if not ticket or not party.sent:
            return
        clock = desk.clock()
        bury = party.unanswered or desk.backend.doubles
        desk.owe(Debt(party.wish.name, ticket, bury, clock + 1.0, clock + max(party.wish.lease, FORGET)))
    await pay(desk, ticket, desk.clock() + QUICKLY)


async def withdraw(desk: Desk, guest: Guest) -> None:
    """Undo what an acquire that ends by an exception had got to. Never raises what the store says."""
    party = guest.party
    if party is None:
        return
    with desk.mutex:
        if guest in party.line:
            party.line.remove(guest)
    if guest.hold is not None:
        await release(desk, guest.hold, quiet=True)
    else:
        await _step_down(desk, guest)


async def pay(desk: Desk, ticket: str, until: float | None = None) -> bool:
    """Try to pay one debt now. False: it stays with the keeper."""
    debt = desk.debts.get(ticket)
    if debt is None or desk.closed:
        return False
    try:
        if debt.order is not None:
            from .orders import order

            await order(desk, debt.name, debt.order, until)
        else:
            await desk.ask(debt.name, Leave(ticket, debt.bury), until)
    except (BackendError, ConfigError):
        return False
    with desk.mutex:
        desk.debts.pop(ticket, None)
    return True


async def release(desk: Desk, hold: Hold, quiet: bool = False) -> None:
    """Give the hold back: to the next of the party, or to the doorman. A second time does nothing.

    Raises LeaseLost if it had been lost, BackendError if the store cannot be told (the keeper goes on trying, and it
    may be called again). quiet: neither; it is reported and kept as a debt.
    """
    seat = hold._seat
    with desk.mutex:
        if hold._released:
            return
        lost = bool(hold._reason)
        if not lost and not seat.leaving:
            party = seat.party
            if hold in seat.holds and len(seat.holds) > 1:
                seat.holds.remove(hold)  # readers who came together: the last one leaves
                over(hold)
                return
            if party is not None and party.seat is seat and not desk.closing and party.may_pass_on(desk.clock()):
                _pass_on(desk, party, seat, hold)
                return
            seat.leaving = True
    if lost:
        over(hold)
        if not quiet and hold._reason != "forked":
            raise hold._loss()
        return
    await _leave(desk, seat, hold, quiet)


def _pass_on(desk: Desk, party: Party, seat: Seat, hold: Hold) -> None:
    """Under the mutex: to the next of the party, with the next fence of the block, without asking anybody."""
    seat.holds.clear()
    seat.cap = NEVER
    seat.given += 1
    guest = party.line[0]
    guest.hold = desk.new_hold(seat, seat.fence + seat.given, guest.wish, guest.who)
    party.line.popleft()
    assert guest.event is not None
    guest.event.set()
    over(hold)


def over(hold: Hold) -> None:
    hold._released = True
    if hold._home is not None and hold in hold._home:
        hold._home.remove(hold)
    nested = hold._desk.nested
    if nested:
        key = hold._wish.name, hold._who
        if nested.get(key) is hold:
            rest = [h for h in hold._seat.holds if h._who == hold._who and not h._released]
            if rest:  # released in another order than taken: what is left still counts
                nested[key] = rest[0]
            else:
                nested.pop(key, None)


async def _leave(desk: Desk, seat: Seat, hold: Hold, quiet: bool) -> None:
    clock = desk.clock()
    wish = hold._wish
    stay = 0.0
    if wish.at_least is not None:
        stay = wish.at_least - (clock - hold._since)
    first = not seat.going
    seat.going = seat.going or clock
    bury = seat.doubtful or desk.backend.doubles
    command: Leave | Keep = Leave(seat.ticket, bury, hold.fence)
    if stay > 0:
        command = Keep(seat.ticket, seat.fence, max(int(stay * 1e6), 1))
    try:
        answer = await desk.ask(seat.name, command)
    except BackendError as error:
        with desk.mutex:
            until = clock + max(seat.lease, FORGET)
            desk.owe(Debt(seat.name, seat.ticket, bury, clock + max(stay, 0.1), until))
        desk.unseat(seat)
        if not quiet:
            raise
        over(hold)
        warn(f"The release of {seat.name!r} did not reach the store ({error}); it is tried again until the lease ends.")
        return
    except BaseException:
        with desk.mutex:
            desk.owe(Debt(seat.name, seat.ticket, True, clock, clock + max(seat.lease, FORGET)))
        desk.unseat(seat)
        raise
    seat.left = True
    with desk.mutex:
        desk.debts.pop(seat.ticket, None)
    desk.unseat(seat)
    kept = isinstance(answer.reply, Admitted) or (isinstance(answer.reply, Left) and answer.reply.held)
    if (answer.again or not first or desk.backend.doubles) and seat.going < seat.deadline:
        kept = True  # an earlier try had done it, or the keeper, or another thread that released it too
    over(hold)
    if kept:
        desk.tell("released", seat.name, seat.ticket, hold.fence)
        return
    if not seat.reason:  # else it has been told while we were asking
        seat.reason = hold._reason = "expired"
        seat.story = "it had ended before it was released. Someone else may have held it meanwhile"
        desk.tell("lost", seat.name, seat.ticket, hold.fence, seat.story)
    if not quiet:
        raise hold._loss()

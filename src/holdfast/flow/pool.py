"""Items of pools: seeking one. Colourless, like the rest.

    seek      says Seek until there is something; between two of them it waits for a hint, never longer than rules allow
    withdraw  undoes whatever a cancelled or interrupted seek had got to

item_renewal.py has how it is kept, let_go.py its end: given back, finished or removed; short_item.py the way there and
back without waiting.

An item that is held is a seat, as a lock that is held: the same keeper keeps it, and it is lost in the same way.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from ..errors import BackendError, ConfigError, LockTimeout
from ..pool import (
    Absent,
    Busy,
    Finish,
    Finished,
    Give,
    Look,
    Looked,
    Nothing,
    On,
    Quit,
    Remove,
    Seek,
    Taken,
    Waiting,
)
from ..pool.line import sleep_span
from .acquire import QUICKLY, RETRY_FIRST, RETRY_MOST, named
from .desk import FORGET, Debt, Desk
from .events import heeded
from .orders import order as say
from .orders import pools_of
from .release import pay
from .seat import NEVER, Hold, Seat
from .wish import Wish

if TYPE_CHECKING:
    from ..backends.pool_contract import PoolAnswer

BACK_OFF = 5.0  # seconds for which nobody is to have what a failed body gave back


class Want:
    """What somebody wants of a pool. Made once for many takes."""

    __slots__ = ("key", "lease", "note", "pool", "renew", "wish")

    def __init__(self, pool: str, lease: float, key: str = "", renew: bool = True, note: str = "") -> None:
        self.pool = pool
        self.lease = lease
        self.key = key
        self.renew = renew
        self.note = note
        self.wish = Wish(pool, 0, 1, lease, note=note)


class Seeker:
    """One who wants an item, and how far he has got."""

    ticket = ""
    sent = False  # the store may know this ticket
    answer: PoolAnswer | None = None  # one that nobody has looked at yet
    hold: Hold | None = None
    place: int | None = None
    who: Hashable = None

    def __init__(self, want: Want) -> None:
        self.want = want

    def quit(self) -> Quit:
        """What is sent when it no longer wants one."""
        return Quit(self.ticket, int(self.want.lease * 1e6), self.want.key)


class ItemSeat(Seat):
    """One item that is ours. Nobody shares it, and it is there only when it is inside: so it needs little of a seat."""

    __slots__ = ("end_by", "key", "renews")

    # What never changes of an item's seat is the same for all of them.
    weight, leader, line, answer = 1, None, None, None
    sent = doubtful = waited = lowered = cut = False
    place = ahead = given = 0

    def __init__(self, want: Want, key: str, ticket: str, fence: int, skew: float) -> None:
        wish = self.wish = want.wish
        self.name = wish.name
        lease = self.lease = wish.lease
        self.margin = lease / 10 + skew
        self.ticket = self.filed = ticket
        self.fence = fence
        self.key = key
        self.renews = want.renew
        self.end_by: Give | Finish | Remove | None = None
        self.cap = NEVER
        self.deadline = self.failed = self.going = 0.0
        self.leaving = self.left = self.watched = False
        self.reason = self.story = ""

    @property
    def order(self) -> On:  # type: ignore[override]
        """How it is let go: given back, if nobody said otherwise."""
        return On(self.key, self.end_by or Give(self.ticket, self.fence))

    def confirm(self, at: float, left: int) -> None:
        Seat.confirm(self, at, left)
        if not self.renews:
            self.renew_at = NEVER


async def seek(desk: Desk, seeker: Seeker, until: float | None) -> Hold | None:
    """A hold on an item, or None when the time is over. `until` is the client's clock: None = for ever, 0 = only try.

    On any exception the caller must `withdraw(desk, seeker)`.
    """
    want = seeker.want
    pools = pools_of(desk)
    doubt = seeker.sent and seeker.answer is None  # it was said already, on the short way, and perhaps heard
    heard = False
    retry = RETRY_FIRST
    while True:
        if desk.called_off and seeker in desk.called_off:
            await withdraw(desk, seeker)
            return None
        again = seeker.sent
        answer, seeker.answer = seeker.answer, None
        try:
            if answer is None:
                answer = await say(desk, want.pool, say_seek(desk, seeker, until == 0, again), until or None)
        except BackendError as error:
            if not heard or error.refused or (until is not None and desk.clock() + retry >= until):
                raise
            await desk.colour.sleep(retry)
            retry = min(retry * 2, RETRY_MOST)
            continue
        heard = True
        retry = RETRY_FIRST
        reply = answer.reply
        if isinstance(reply, Taken):
            hold = have(desk, seeker, reply, answer.at)
            if hold is not None:
                return hold
            nap = 0.0  # the answer took longer than the lease: ask whether it is still ours
        elif isinstance(reply, Finished):
            what = f"{want.key!r} of {want.pool!r}"
            raise ConfigError(f"{what} is done. Remove it and add it again to have it done anew.")
        elif isinstance(reply, Waiting):
            if seeker.place is None:
                desk.tell("waiting", want.pool, seeker.ticket, detail=f"{reply.ahead} ahead in line")
            seeker.place = reply.ahead + 1
            nap = min(reply.retry_in, sleep_span(reply.ahead)) / 1e6
        else:
            assert isinstance(reply, Busy | Absent | Nothing)
            nap = min(reply.due_in if isinstance(reply, Busy) else NEVER, sleep_span(0)) / 1e6
        clock = desk.clock()
        if until is not None and clock >= until:
            if until == 0 and not doubt and not answer.again and isinstance(reply, Nothing | Busy | Absent):
                seeker.sent = False  # it left nothing behind
            await withdraw(desk, seeker)
            return None
        if nap:
            nap = max(min(nap, until - clock) if until is not None else nap, 0.0005)
            try:
                await pools.changed(want.pool, seeker.ticket, nap)
            except BackendError:  # it cannot be listened to: whether it can be asked, the next Seek tells
                await desk.colour.sleep(min(nap, RETRY_MOST))


def say_seek(desk: Desk, seeker: Seeker, trying: bool, again: bool = False) -> Seek:
    """What is said for him. From here on the store may know the ticket."""
    want = seeker.want
    ticket = seeker.ticket = seeker.ticket or desk.ticket()
    seeker.sent = True
    desk.seeking[ticket] = seeker
    order: Seek = named(Seek, (
        ticket, want.wish.span, not trying, desk.backend.ear, desk.owner, want.note, want.key, again,
    ))  # fmt: skip
    return order


def have(desk: Desk, seeker: Seeker, reply: Taken, at: float) -> Hold | None:
    """It is ours, unless the time for which it was is over already."""
    want = seeker.want
    fence, left, body, key = reply
    seat = ItemSeat(want, key, seeker.ticket, fence, desk.backend.skew)
    seat.confirm(at, left)
    clock = desk.clock()
    if clock >= seat.deadline or desk.closing:
        return None
    seat.admitted = clock
    hold: Any = desk.item(desk, want.wish, seeker.who)
    hold._text = body
    hold._done = False
    hold._back_off = 0.0
    hold._seat = seat
    hold._since = clock
    hold.fence = fence
    seat.holds = [hold]
    seeker.hold = hold
    desk.seats[seat.ticket] = seat
    desk.seeking.pop(seat.ticket, None)
    if seat.renew_at < desk.wake_at:
        desk.seated(seat)
    if desk.on_event is not None or heeded("acquired"):
        desk.tell("acquired", want.pool, seat.ticket, fence, key)
    return hold  # type: ignore[no-any-return]


async def withdraw(desk: Desk, seeker: Seeker) -> None:
    """Undo what a seek that ends without an item had got to. Never raises what the store says."""
    if seeker.hold is not None:
        from .let_go import give

        await give(desk, seeker.hold, quiet=True)
    elif seeker.sent:
        seeker.sent = False
        want = seeker.want
        with desk.mutex:
            clock = desk.clock()
            until = clock + max(want.lease, FORGET)
            desk.owe(Debt(want.pool, seeker.ticket, False, clock + 1.0, until, seeker.quit()))
        await pay(desk, seeker.ticket, desk.clock() + QUICKLY)
    desk.seeking.pop(seeker.ticket, None)
    if desk.ended is not None:
        desk.ended.set()


async def timed_out(desk: Desk, seeker: Seeker, limit: float) -> LockTimeout:
    """The sentence for a wait that was over too early."""
    want = seeker.want
    there = ""
    try:
        if want.key:
            answer = await say(desk, want.pool, On(want.key, Look()))
            item = answer.reply.item if isinstance(answer.reply, Looked) else None
            there = "it is not there" if item is None else f"taken by {item.owner}" if item.ticket else "it rests"
        else:
            counts = await pools_of(desk).count(want.pool)
            there = ", ".join(f"{number} {state}" for state, number in counts.items() if number) or "the pool is empty"
    except BackendError:
        pass
    waited = f"; you waited {limit:g} s" if limit else ""
    number = f", number {seeker.place} in line" if seeker.place is not None and limit else ""
    what = f"{want.key!r} of {want.pool!r} was not" if want.key else f"Nothing of {want.pool!r} was"
    error = LockTimeout(f"{what} to be had ({there or 'no answer'}){waited}{number}.")
    error.name, error.place, error.waited = want.pool, seeker.place, limit
    return error

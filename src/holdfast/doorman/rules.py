"""The rules of the doorman: `apply(record, command, now, deaf, dead) -> (record, reply, woken)`.

Every resource has a doorman. He keeps one small record: who is inside, who stands in line, the last fence number he
gave out. A lock, a readers-writer lock and a semaphore differ only in numbers: capacity and weight. Somebody enters
when the weights inside leave room and nobody stands in line before them. That is the whole idea; the rest of this page
is about messages that get lost, late or doubled, processes that die or sleep, and clocks that jump.

**Tickets.** Whoever wants in makes up a ticket before the first byte is sent, and says Enter with it as often as he
likes: the first time he is let in or put in line, later times mean "still waiting" or "I got it". So when an answer is
lost, the cure is always to say the same thing again, and nobody is ever refused by his own lock.

**Leases.** A seat lasts for its lease and is kept by Renew. Whoever falls silent loses it, but only when somebody else
wants it: an expired seat that nobody waits for may still be renewed. The lease belongs to the ticket; a renewal may
make it longer and never shorter, or a late one would cut a live one. A renewal never creates anything.

**The line.** A place in line lasts for its patience and is kept by polling. The step itself sets patience from the
place (three times as long as the client may sleep there), so client and doorman cannot disagree about it. When room
appears, whoever makes the step admits the head of the line in the same step: nobody has to be awake for it. The
admitted one is *unsure* until heard, and only for WINDOW: if it is gone, that is all it costs. If it comes later than
that but within its patience, it stands at the head of the line again (SILENT: passed over until it polls), so a lost
wake-up costs a turn and not the place.

**Deaf and dead.** A store may know that nobody listens at somebody's ear any more (deaf: passed over, place kept, for
after a failover all are deaf for a moment; when all are deaf, the head is admitted after all), or that the whole
process is gone (dead: treated as expired, at every step). One that polled after being passed over is not passed over
again, or it would starve.

**Seats without a process.** A Keep makes a seat last for a time that nobody renews and nobody ends (a released lock
that stays closed for a while, a lease that was detached). A holder that leaves lets in the next, but nobody leaves
here. So the head of the line is woken when such a seat is made, and whenever another one becomes the head while there
is one: its next poll tells it when to look.

**Fences.** Every grant gets a number greater than all before it: max(last + 1, now). Taking the clock in keeps the
numbers rising even when the store loses its data. A grant may reserve a block of numbers, for passing the lock on
inside one process, where each holder in turn needs a number of his own.

**Graves.** An Enter that arrives after its own Leave would put a ghost inside for a whole lease. So whoever leaves
while an Enter is unanswered asks to be buried, and a buried ticket is never let in again. An eviction is a grave, too:
its ticket may stay until the lease ends but is renewed no more.

**Sizes.** The capacity is what programs say when they enter: all the same number while anybody is there, and the next
one's number when nobody is. A Resize is an operator's word and wins: from then on another number in an Enter is ignored
(only a weight that can never fit is refused), until a Resize without a number gives the size back to the programs.

**Time.** If the clock has gone back, every expiry is cut to at most its own span from now: otherwise a clock that had
run ahead would freeze every lease until it is reached again.

One step: the clock; the asker's patience; the sweep; admit; the command; admit again. The order matters: a living
waiter must not be swept by its own poll, and the room that a Leave makes belongs to the line, not to the next comer.

Decided against: a transaction of several steps (a crash in between leaves it half done), one expiry for all readers (a
dead one is kept alive by the others), wake-ups as grants (they can be forged, late or doubled), dropping the deaf.

Every sentence here has its example in tests/doorman. What must be true of every step, whoever made it and however the
messages went, is written down in laws/ there; it is checked in every state that small worlds can reach.
"""

from collections.abc import Collection, Iterable
from operator import itemgetter

from .commands import (
    Admitted,
    Command,
    Done,
    Enter,
    Evict,
    Gone,
    Keep,
    Leave,
    Left,
    Look,
    Looked,
    Mismatch,
    NotInside,
    Refused,
    Renew,
    Reply,
    Resize,
    Waiting,
)
from .record import FRESH, HEARD, PASSED, SILENT, WINDOW, Entrant, Grave, Record, Wake, Why

GRAVE = 60_000_000  # a grave lasts this long, or the lease if that is longer
SLEEP_CAP = 10_000_000  # no waiter sleeps longer than this
SWEEP = 16  # how many expired ones one step removes from the middle of the line

LEFT = Why("left")
DEAD = Why("dead")
NOBODY: frozenset[str] = frozenset()


def sleep_span(ahead: int) -> int:
    """How long a waiter with so many ahead of it in line may sleep between two polls."""
    return min(WINDOW // 2 * (ahead + 1), SLEEP_CAP)


def patience(ahead: int) -> int:
    """How long a place lasts without a poll: three times as long as its owner may sleep."""
    return 3 * sleep_span(ahead)


def apply(
    record: Record,
    command: Command,
    now: int,
    deaf: Collection[str] = NOBODY,
    dead: Collection[str] = NOBODY,
) -> tuple[Record, Reply, tuple[Wake, ...]]:
    """One atomic step of the doorman. Pure: the same input gives the same output, and nothing is changed in place."""
    if isinstance(command, Look):
        return record, Looked(record), ()
    outcome = None
    if not (record.line or record.graves or dead):
        outcome = _alone(record, command, now)  # a short cut; see the end of this file
    elif record.line and not (record.graves or dead or deaf):
        outcome = _in_line(record, command, now)  # another one
    if outcome is not None:
        return outcome
    step = _Step(record, command, now, deaf, dead)
    if now < record.seen:
        step.turn_back_the_clock()
    step.hear_the_asker()
    step.sweep()
    step.admit()
    reply = step.obey()
    step.admit()
    if reply is None:
        reply = step.answer_enter()
    return step.record(), reply, step.wakes()


class _Step:
    """The record opened up for one step. Its methods are the paragraphs of the essay, in the order of the step."""

    __slots__ = (
        "asker",
        "before",
        "capacity",
        "closes",
        "command",
        "dead",
        "deaf",
        "dropped",
        "entering",
        "fence",
        "fixed",
        "graves",
        "inside",
        "line",
        "now",
        "places",
    )

    def __init__(
        self, record: Record, command: Command, now: int, deaf: Collection[str], dead: Collection[str]
    ) -> None:
        self.before = record
        self.capacity, self.fixed, self.fence, self.places, _, inside, line, graves = record
        self.inside = list(inside)
        self.line = list(line)
        self.graves = graves
        self.command = command
        self.now = now
        self.deaf = deaf
        self.dead = dead
        self.asker = "" if isinstance(command, (Resize, Evict, Look)) else command.ticket
        self.entering = isinstance(command, Enter)
        self.dropped: list[Wake] = []
        self.closes = False  # whether a Keep has just set the end of a seat

    def record(self) -> Record:
        return Record(
            self.capacity, self.fixed, self.fence, self.places, self.now,
            tuple(self.inside), tuple(self.line), self.graves,
        )  # fmt: skip

    # -- the clock, the asker, the sweep

    def turn_back_the_clock(self) -> None:
        """Time never runs back: nothing may last longer than its own span from now."""
        now = self.now
        self.inside = [
            e._replace(
                expires=min(e.expires, now + (e.lease if e.sure else min(e.lease, WINDOW))), since=min(e.since, now)
            )
            for e in self.inside
        ]
        self.line = [e._replace(expires=min(e.expires, now + e.patience), since=min(e.since, now)) for e in self.line]
        self.graves = tuple(g._replace(until=min(g.until, now + g.span)) for g in self.graves)

    def hear_the_asker(self) -> None:
        """A poll refreshes its own place before anything is swept, or a living waiter is swept by its own poll."""
        if self.entering:
            for i, e in enumerate(self.line):
                if e.ticket == self.asker:
                    self.line[i] = self._heard(e, i)
                    return

    def _heard(self, e: Entrant, ahead: int) -> Entrant:
        span = patience(ahead)
        passed = HEARD if e.passed in (PASSED, SILENT) else e.passed
        return e._replace(patience=span, expires=self.now + span, passed=passed)

    def sweep(self) -> None:
        """Remove what has expired or is dead: a bounded number of the line, insiders, graves.

        Graves go last: one who was evicted and comes back after grave and lease have both run out finds neither.
        """
        now = self.now
        if self.line:
            expired = sorted([(e.expires, e.ticket) for e in self.line if e.expires <= now])[:SWEEP]
            if expired or self.dead:
                tickets = {ticket for _, ticket in expired}
                self.line = [e for e in self.line if e.ticket not in tickets and not self._is_dead(e)]
        for e in self.inside:
            if e.expires <= now or self._is_dead(e):
                self._sweep_inside()
                break
        if self.graves:
            self.graves = tuple(g for g in self.graves if g.until > now)

    def _sweep_inside(self) -> None:
        stay: list[Entrant] = []
        back: list[Entrant] = []
        wanted = any(not self._over(e) for e in self.line)
        for e in self.inside:
            if not self._over(e):
                stay.append(e)
            elif self._is_dead(e) or self._buried(e.ticket):
                continue
            elif not wanted and self._renews(e):
                stay.append(e)  # an expired lease that nobody wanted
            elif not e.sure and e.since + e.patience > self.now and e.weight <= self.capacity:
                back.append(e)  # unless a Resize has made it too heavy: then it would bar the line for ever
        self.inside = stay
        if back:
            self.line = [self._returned(e) for e in back] + self.line

    def _renews(self, e: Entrant) -> bool:
        """Whether the command is about to make this seat last."""
        c = self.command
        if isinstance(c, Enter):
            return c.ticket == e.ticket and not (c.ear and c.ticket in self.dead)
        return isinstance(c, (Renew, Keep)) and c.ticket == e.ticket and c.fence in (None, e.fence)

    def _returned(self, e: Entrant) -> Entrant:
        """Admitted, not heard in time, but not given up either: to the head of the line, under a new place number."""
        self.places += 1
        until = e.since + e.patience
        e = e._replace(
            place=self.places, since=self.now, expires=until, patience=until - self.now, fence=0, passed=SILENT
        )
        return self._heard(e, 0) if self.entering and e.ticket == self.asker else e

    def _is_dead(self, e: Entrant) -> bool:
        return e.ticket in self.dead and e.ear != ""

    def _over(self, e: Entrant) -> bool:
        return e.expires <= self.now or self._is_dead(e)

    def _buried(self, ticket: str) -> Why | None:
        for g in self.graves:
            if g.ticket == ticket:
                return g.why
        return None

    # -- admitting

    def admit(self) -> None:
        """Let in from the head of the line while it fits. The deaf and the silent are passed over, keeping places."""
        while self.line:
            turn = self._next_in_line()
            if turn is None or self.line[turn].weight > self.room():
                return
            for i in range(turn):
                e = self.line[i]
                if e.passed == FRESH:
                    self.line[i] = e._replace(passed=PASSED)
            self._let_in(self.line.pop(turn))

    def _next_in_line(self) -> int | None:
        """Whose turn it is. Expired ones that come up on the way are removed, however long the line is."""
        fallback: int | None = None
        i = 0
        while i < len(self.line):
            e = self.line[i]
            if self._over(e):
                del self.line[i]
            elif e.passed == SILENT:
                i += 1
            elif e.ticket in self.deaf and e.passed != HEARD and not (self.entering and e.ticket == self.asker):
                fallback = i if fallback is None else fallback
                i += 1
            else:
                return i
        return fallback

    def room(self) -> int:
        return self.capacity - sum([e.weight for e in self.inside])

    def _let_in(self, e: Entrant) -> None:
        fence = max(self.fence + 1, self.now)
        self.fence = fence + e.block - 1
        sure = self.entering and e.ticket == self.asker
        self.inside.append(
            e._replace(
                fence=fence,
                sure=sure,
                since=self.now,
                expires=self.now + (e.lease if sure else min(e.lease, WINDOW)),
                patience=max(e.expires - self.now, 0),
                passed=FRESH,
            )
        )

    # -- the commands

    def obey(self) -> Reply | None:
        """The command itself. None: an Enter that is answered after the second admitting."""
        command = self.command
        if isinstance(command, Enter):
            return self._enter(command)
        if isinstance(command, Leave):
            return self._leave(command)
        if isinstance(command, (Renew, Keep)):
            return self._renew(command)
        if isinstance(command, Evict):
            return self._evict(command)
        assert isinstance(command, Resize)
        return self._resize(command)

    def _enter(self, c: Enter) -> Reply | None:
        if c.ear and c.ticket in self.dead:
            return Gone(DEAD)
        why = self._buried(c.ticket)
        if why:
            return Gone(why)
        for i, e in enumerate(self.inside):
            if e.ticket == c.ticket:
                self.inside[i] = e._replace(sure=True, expires=self.now + e.lease)
                return None
        if any(e.ticket == c.ticket for e in self.line):
            return None
        wanted = self.capacity if self.fixed else c.capacity or self.capacity
        if wanted != self.capacity and (self.inside or self.line):
            return Mismatch(self.capacity)
        if not 1 <= c.weight <= wanted:
            return Mismatch(wanted)
        self.capacity = wanted
        span = patience(len(self.line))
        e = Entrant(
            c.ticket, c.weight, c.lease, span, max(c.block, 1) if c.weight == wanted else 1,
            c.ear, c.owner, c.note, 0, self.now, self.now + span,
        )  # fmt: skip
        if (not self.line or not c.fair) and c.weight <= self.room():
            self._let_in(e)
            return None
        if not c.wait and not self._would_pass_all(e):
            return Refused()
        self.places += 1
        self.line.append(e._replace(place=self.places))
        return None

    def _would_pass_all(self, e: Entrant) -> bool:
        """Whether somebody who only tries would be let in past a line of silent and deaf ones."""
        if e.weight > self.room():
            return False
        self.line.append(e)
        first = self._next_in_line() == len(self.line) - 1
        self.line.pop()
        return first

    def answer_enter(self) -> Reply:
        for e in self.inside:
            if e.ticket == self.asker:
                return Admitted(e.fence, e.expires - self.now)
        for i, e in enumerate(self.line):
            if e.ticket == self.asker:
                if e.patience != patience(i):  # it must fit the place that is told, not the one before the step
                    self.line[i] = self._heard(e, i)
                return Waiting(i, e.place, self._retry_in(i, e.lease))
        raise AssertionError(f"{self.asker} neither inside nor in line")

    def _retry_in(self, ahead: int, lease: int) -> int:
        """When those directly ahead expire: for the head of the line whoever is inside, for the others the head.

        And for everybody whoever was let in and not heard yet: if that one is dead, the next in line may be, too, and
        somebody must be there when its turn is over. That is enough to notice every death in turn. Whoever has a lease
        shorter than the window must look more often, or it would sleep through every turn that it gets without a wake.
        """
        if ahead:
            soon = min([self.line[0].expires, *[e.expires for e in self.inside if not e.sure]]) - self.now
        else:
            soon = min([e.expires for e in self.inside], default=self.now) - self.now
        if lease < WINDOW:
            soon = min(soon, lease // 2 * (ahead + 1))
        return max(soon, 1)

    def _leave(self, c: Leave) -> Reply:
        held = False
        for i, e in enumerate(self.inside):
            if e.ticket == c.ticket:
                let_in_just_now = e.fence > self.before.fence
                if not (let_in_just_now or c.fence is None or e.fence <= c.fence < e.fence + e.block):
                    return Left(False)  # the seat of another incarnation
                if not let_in_just_now and c.lease is not None and e.lease > c.lease:
                    return Left(False)  # another client has extended it
                del self.inside[i]
                held = not let_in_just_now and self._buried(c.ticket) is None
                break
        else:
            self.line = [e for e in self.line if e.ticket != c.ticket]
        if c.bury:
            self._bury(c.ticket, LEFT)
        return Left(held)

    def _renew(self, c: Renew | Keep) -> Reply:
        why = self._buried(c.ticket)
        if why is None:
            for i, e in enumerate(self.inside):
                if e.ticket == c.ticket and (c.fence is None or c.fence == e.fence):
                    if isinstance(c, Keep):
                        self.closes = e.ear != "" or e.expires != self.now + c.lease
                        e = e._replace(lease=c.lease, ear="", owner="" if c.closed else e.owner)
                    else:
                        if c.weight is not None:
                            e = e._replace(weight=max(1, min(c.weight, e.weight)))  # it may only fall
                        if c.lease is not None:
                            e = e._replace(lease=max(c.lease, e.lease))  # it may only grow
                    self.inside[i] = e._replace(sure=True, expires=self.now + e.lease)
                    return Admitted(e.fence, e.lease)
        return NotInside(why)

    def _evict(self, c: Evict) -> Reply:
        tickets = [e.ticket for e in self.inside] if c.ticket is None else [c.ticket]
        there: list[str] = []
        for ticket in tickets:
            for e in [*self.inside, *self.line]:
                if e.ticket == ticket:
                    there.append(ticket)
                    self.dropped.append(Wake(e.ear, ticket))
            self.line = [e for e in self.line if e.ticket != ticket]
            if c.at_once:
                self.inside = [e for e in self.inside if e.ticket != ticket]
            self._bury(ticket, Why("evicted", c.by, c.reason))
        return Done(tuple(there))

    def _resize(self, c: Resize) -> Reply:
        self.fixed = c.capacity is not None
        self.capacity = self.capacity if c.capacity is None else c.capacity
        heavy = [e for e in self.line if e.weight > self.capacity]
        if heavy:
            self.line = [e for e in self.line if e.weight <= self.capacity]
            self.dropped += [Wake(e.ear, e.ticket) for e in heavy]
        return Done(tuple(e.ticket for e in heavy))

    def _bury(self, ticket: str, why: Why) -> None:
        """A grave outlasts every lease it is there to end; a second one for the same ticket changes nothing."""
        if self._buried(ticket):
            return
        leases = [e.lease for e in (*self.before.inside, *self.before.line) if e.ticket == ticket]
        span = max([GRAVE, *leases])
        self.graves += (Grave(ticket, self.now + span, span, why),)

    def wakes(self) -> tuple[Wake, ...]:
        """Wake exactly those admitted in this step and not heard in it, those who were dropped or evicted, and the head
        of the line if it must look at another time than it thinks."""
        granted = [
            Wake(e.ear, e.ticket, e.place, e.fence)
            for e in self.inside
            if not e.sure and e.fence > self.before.fence and not self._buried(e.ticket)
        ]
        return (*granted, *self.dropped, *self._must_look_again())

    def _must_look_again(self) -> tuple[Wake, ...]:
        """A seat without a process ends by time alone: nobody leaves it, so nobody lets in the next. The head of the
        line has to be there at that instant, so it is woken when such a seat is made or when it has become the head.
        """
        if not self.line:
            return ()
        head, old = self.line[0], self.before
        if not head.ear or (self.entering and head.ticket == self.asker):
            return ()
        if not self.closes:
            if old.line and old.line[0].ticket == head.ticket:
                return ()
            if not (_any_without_process(old.inside) and _any_without_process(self.inside)):
                return ()
        return (Wake(head.ear, head.ticket),)


def _any_without_process(some: Iterable[Entrant]) -> bool:
    return any(not e.ear for e in some)


def _alone(record: Record, command: Command, now: int) -> tuple[Record, Reply, tuple[Wake, ...]] | None:
    """The two steps that make up nearly all of them: into an empty room, and out of it as the only one.

    It has no rules of its own: a test compares it with the long way, which takes four times as long. None: take that.
    """
    capacity, fixed, fence, places, _, inside, _, _ = record
    if type(command) is Enter and not inside:
        ticket, wanted, weight, lease, _, _, block, ear, owner, note = command
        if fixed:
            wanted = capacity
        if not 1 <= weight <= wanted:
            return None
        first = now if now > fence else fence + 1
        block = block if weight == wanted and block > 1 else 1
        span = patience(0)
        e = Entrant(ticket, weight, lease, span, block, ear, owner, note, 0, now, now + lease, first, True)
        return Record(wanted, fixed, first + block - 1, places, now, (e,)), Admitted(first, lease), ()
    if type(command) is Leave and len(inside) == 1 and not command.bury and command.lease is None:
        e = inside[0]
        given = command.fence
        if e.ticket != command.ticket or e.expires <= now:
            return None
        if given is not None and not e.fence <= given < e.fence + e.block:
            return None
        return Record(capacity, fixed, fence, places, now), Left(True), ()
    return None


def _in_line(record: Record, command: Command, now: int) -> tuple[Record, Reply, tuple[Wake, ...]] | None:
    """The three steps of a lock that many want: to the end of the line, heard for the first time inside, and out.

    Only where everybody is alive and one at a time fits, and, like the other one, without rules of its own.
    """
    capacity, fixed, fence, places, seen, inside, line, _ = record
    head = line[0]
    if len(inside) != 1 or now < seen or min(map(_EXPIRES, line)) <= now or any(map(_PASSED, line)):
        return None
    e = inside[0]
    if e.expires <= now or e.weight + head.weight <= capacity:
        return None
    if type(command) is Enter:
        ticket, wanted, weight, lease, wait, fair, block, ear, owner, note = command
        if ticket == e.ticket:
            e = Entrant(*e[:10], now + e.lease, e.fence, True, e.passed)
            return Record(capacity, fixed, fence, places, now, (e,), line), Admitted(e.fence, e.lease), ()
        if ticket in map(_TICKET, line) or not (fixed or wanted == capacity) or not 1 <= weight <= capacity:
            return None
        if not (wait and fair) or lease < WINDOW:
            return None
        span = patience(len(line))
        reserve = max(block, 1) if weight == capacity else 1
        last = Entrant(ticket, weight, lease, span, reserve, ear, owner, note, places + 1, now, now + span)
        soon = (head.expires if e.sure else min(head.expires, e.expires)) - now
        reply = Waiting(len(line), places + 1, max(soon, 1))
        return Record(capacity, fixed, fence, places + 1, now, inside, (*line, last)), reply, ()
    if type(command) is Leave and command.ticket == e.ticket and not command.bury and command.lease is None:
        given = command.fence
        if not (given is None or e.fence <= given < e.fence + e.block) or head.weight > capacity:
            return None
        if len(line) > 1 and head.weight + line[1].weight <= capacity:
            return None
        ticket, weight, lease, _, block, ear, owner, note, place, _, until = head[:11]
        if not (ear or e.ear):
            return None
        grant = max(fence + 1, now)
        window = now + min(lease, WINDOW)
        e = Entrant(ticket, weight, lease, until - now, block, ear, owner, note, place, now, window, grant)
        after = Record(capacity, fixed, grant + block - 1, places, now, (e,), line[1:])
        return after, Left(True), (Wake(ear, ticket, place, grant),)
    return None


_TICKET, _EXPIRES, _PASSED = (itemgetter(Entrant._fields.index(name)) for name in ("ticket", "expires", "passed"))

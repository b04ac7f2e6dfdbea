"""The rules of a lock: `apply(state, command, now, unreachable, dead) -> (state, reply, wake-ups)`.

Picture a doorman in front of every lock. Its state is small: the holders, the queue, the last fence that was given out.
A lock, a readers-writer lock and a semaphore differ only in numbers: capacity and weight. A request is granted when the
weights of the holders leave room and no waiter is before it in the queue. That is the whole idea; the rest of this page
is about messages that are lost, late or duplicated, processes that die or are suspended, and clocks that jump.

**Tickets.** A client makes up a ticket before it sends the first byte, and repeats Acquire with it as often as it
likes: the first one is granted or queued, later ones mean "still waiting" or "I have it". So the cure for a lost reply
is always to repeat the request, and no client is ever refused by its own lock.

**Leases.** A grant lasts for its lease and is kept by Renew. A silent holder loses it, but only when another client
wants it: an expired grant that has no waiter may still be renewed. The lease belongs to the ticket; a renewal may make
it longer and never shorter, or a late renewal would cut a live lease. A renewal never creates a grant.

**The queue.** A place in the queue lasts for its poll_ttl and is kept by polling. The step itself sets the poll_ttl
from the place (three times as long as the client may sleep there), so client and rules cannot disagree about it. When
room appears, the step that makes the room also grants to the head of the queue: no other client has to be awake. Such a
grant is *unconfirmed* until its client sends something, and lasts only for CONFIRM_WINDOW: a dead waiter costs no more
than that. A client that comes later than that but within its poll_ttl is at the head of the queue again (SILENT: passed
over until it polls), so a lost wake-up costs a turn and not the place.

**Unreachable and dead.** A store may know that a client no longer listens (unreachable: passed over, the place is kept,
because after a failover all clients are unreachable for a moment; if all are unreachable, the head is granted after
all), or that its process has ended (dead: treated as expired, at every step). A waiter that has polled after it was
passed over is not passed over again, or it would starve.

**Grants without a process.** Detach makes a grant last for a time that no client renews and no client ends (a released
lock that stays closed for a while, a lease that was detached). A release grants to the next waiter, but here there is
no release. So the head of the queue is woken when such a grant is made, and whenever another waiter becomes the head
while there is one: the reply to its next poll says when to poll again.

**Fences.** Every grant gets a number greater than all before it: max(last + 1, now). The clock keeps the numbers rising
even when the store loses its data. A grant may reserve a block of numbers, to pass the lock on inside one process,
where each holder in turn needs a number of its own.

**Tombstones.** An Acquire that arrives after its own Release would make a holder without a client, for a whole lease.
So a client that releases while an Acquire is unanswered asks for a tombstone, and a ticket with a tombstone is never
granted again. An eviction is a tombstone, too: its ticket may stay until the lease ends but is not renewed.

**Requests to release.** An operator may ask a holder to release: the polite step before an eviction. The grant stays as
it is, its client is woken, and every Granted to it names the operator and the reason. A request belongs to one grant
and ends with it, so the next holder is not asked. It is kept among the tombstones, as one that bars nothing and does
not end by time. A lock without such a request costs nothing more, and one with it takes no shortcut. A tombstone
replaces the request.

**Sizes.** The capacity is the number in Acquire: all clients must give the same number while the lock is in use, and
when it is idle the next number counts. A Resize by an operator wins: from then on another number in Acquire is ignored
(only a weight that can never fit is refused), until a Resize without a number lets the programs decide again.

**Time.** If the clock has gone back, every expiry is cut to at most its own duration from now: otherwise a clock that
had run ahead would freeze every lease until it is reached again.

One step: the clock; the poll_ttl of the sender; the sweep; grants; the command; grants again. The order matters: a
living waiter must not be swept by its own poll, and the room that a Release makes belongs to the queue, not to a
newcomer.

Rejected alternatives: a transaction of several steps (a crash leaves it half done), one expiry for all readers (the
others keep a dead one alive), wake-ups as grants (they can be forged, late or duplicated), dropping the unreachable.

Every sentence here has its example in tests/lock_rules. The laws of every step, whatever happens to the messages, are
in laws/ there; they are checked in every state that small worlds can reach.
"""

from collections.abc import Collection, Iterable

from ..wakeup import Wakeup
from .encoded_queue import fresh_until, is_in
from .messages import (
    Acquire,
    Ask,
    Command,
    Detach,
    Done,
    Evict,
    Granted,
    Mismatch,
    NotHolder,
    Queued,
    Refused,
    Release,
    Released,
    Renew,
    Reply,
    Resize,
    Revoked,
)
from .state import ASKED, CONFIRM_WINDOW, FOREVER, FRESH, PASSED, POLLED, SILENT, Entry, LockState, Tombstone, Why

TOMBSTONE = 60_000_000  # a tombstone lasts this long, or the lease if that is longer
SLEEP_CAP = 10_000_000  # no waiter sleeps longer than this
SWEEP = 16  # how many expired waiters one step removes from the middle of the queue

LEFT = Why("left")
DEAD = Why("dead")
NOBODY: frozenset[str] = frozenset()
_Outcome = tuple[LockState, Reply, tuple[Wakeup, ...]]


def sleep_span(ahead: int) -> int:
    """Return how long a waiter may sleep between two polls, with `ahead` others before it in the queue."""
    return min(CONFIRM_WINDOW // 2 * (ahead + 1), SLEEP_CAP)


def poll_ttl(ahead: int) -> int:
    """Return how long a place lasts without a poll: three times as long as its waiter may sleep."""
    return 3 * sleep_span(ahead)


def apply(
    record: LockState,
    command: Command,
    now: int,
    unreachable: Collection[str] = NOBODY,
    dead: Collection[str] = NOBODY,
) -> _Outcome:
    """Make one atomic step. Pure: the same input gives the same output, and nothing is changed in place."""
    if not (unreachable or dead):
        usual = None  # the usual steps have a shortcut; see the end of this file
        if type(command) is Acquire:
            usual = _usual_acquire(record, command, now)
        elif type(command) is Release:
            usual = _usual_release(record, command, now)
        if usual is not None:
            return usual
    step = _Step(record, command, now, unreachable, dead)
    if now < record.seen:
        step.turn_back_the_clock()
    step.refresh_the_sender()
    step.sweep()
    step.admit()
    reply = step.obey()
    step.admit()
    if reply is None:
        reply = step.reply_to_acquire()
    return step.record(), reply, step.wakes()


class _Step:
    """The state opened up for one step. The methods follow the essay, in the order of the step."""

    __slots__ = (
        "acquiring",
        "before",
        "capacity",
        "closes",
        "command",
        "dead",
        "dropped",
        "fence",
        "fixed",
        "holders",
        "now",
        "places",
        "queue",
        "sender",
        "tombstones",
        "unreachable",
    )

    def __init__(
        self, record: LockState, command: Command, now: int, unreachable: Collection[str], dead: Collection[str]
    ) -> None:
        self.before = record
        self.capacity, self.fixed, self.fence, self.places, _, holders, queue, tombstones = record
        self.holders = list(holders)
        self.queue = list(queue)
        self.tombstones = tombstones
        self.command = command
        self.now = now
        self.unreachable = unreachable
        self.dead = dead
        self.sender = "" if isinstance(command, (Resize, Evict, Ask)) else command.ticket
        self.acquiring = isinstance(command, Acquire)
        self.dropped: list[Wakeup] = []
        self.closes = False  # whether a Detach has just set the end of a grant

    def record(self) -> LockState:
        if self.tombstones:
            self._forget_requests()
        return LockState(
            self.capacity, self.fixed, self.fence, self.places, self.now,
            tuple(self.holders), tuple(self.queue), self.tombstones,
        )  # fmt: skip

    # -- the clock, the sender, the sweep

    def turn_back_the_clock(self) -> None:
        """Time never runs back: nothing may last longer than its own duration from now."""
        now = self.now
        self.holders = [
            e._replace(
                expires=min(e.expires, now + (e.lease if e.confirmed else min(e.lease, CONFIRM_WINDOW))),
                since=min(e.since, now),
            )
            for e in self.holders
        ]
        self.queue = [e._replace(expires=min(e.expires, now + e.poll_ttl), since=min(e.since, now)) for e in self.queue]
        self.tombstones = tuple(g._replace(until=min(g.until, now + g.span)) for g in self.tombstones)

    def refresh_the_sender(self) -> None:
        """A poll refreshes its own place before anything is swept, or a living waiter is swept by its own poll."""
        if self.acquiring:
            for i, e in enumerate(self.queue):
                if e.ticket == self.sender:
                    self.queue[i] = self._polled(e, i)
                    return

    def _polled(self, e: Entry, ahead: int) -> Entry:
        span = poll_ttl(ahead)
        passed = POLLED if e.passed in (PASSED, SILENT) else e.passed
        return e._replace(poll_ttl=span, expires=self.now + span, passed=passed)

    def sweep(self) -> None:
        """Remove what has expired or is dead: a bounded number of waiters, then holders, then tombstones.

        Tombstones go last: an evicted client that comes back when tombstone and lease have both ended finds neither.
        """
        now = self.now
        if self.queue:
            expired = sorted([(e.expires, e.ticket) for e in self.queue if e.expires <= now])[:SWEEP]
            if expired or self.dead:
                tickets = {ticket for _, ticket in expired}
                self.queue = [e for e in self.queue if e.ticket not in tickets and not self._is_dead(e)]
        for e in self.holders:
            if e.expires <= now or self._is_dead(e):
                self._sweep_holders()
                break
        if self.tombstones:
            self.tombstones = tuple(g for g in self.tombstones if g.until > now)
            self._forget_requests()

    def _sweep_holders(self) -> None:
        stay: list[Entry] = []
        back: list[Entry] = []
        wanted = any(not self._over(e) for e in self.queue)
        for e in self.holders:
            if not self._over(e):
                stay.append(e)
            elif self._is_dead(e) or self._tombstone_for(e.ticket):
                continue
            elif not wanted and self._renews(e):
                stay.append(e)  # an expired lease that no other client wants
            elif not e.confirmed and e.since + e.poll_ttl > self.now and e.weight <= self.capacity:
                back.append(e)  # unless a Resize has made it too heavy: then it would block the queue forever
        self.holders = stay
        if back:
            self.queue = [self._returned(e) for e in back] + self.queue

    def _renews(self, e: Entry) -> bool:
        """Return True if the command is about to make this grant last."""
        c = self.command
        if isinstance(c, Acquire):
            return c.ticket == e.ticket and not (c.listener and c.ticket in self.dead)
        return isinstance(c, (Renew, Detach)) and c.ticket == e.ticket and c.fence in (None, e.fence)

    def _returned(self, e: Entry) -> Entry:
        """Granted, not confirmed in time, but not given up: back to the head of the queue, under a new place number."""
        self.places += 1
        until = e.since + e.poll_ttl
        e = e._replace(
            place=self.places, since=self.now, expires=until, poll_ttl=until - self.now, fence=0, passed=SILENT
        )
        return self._polled(e, 0) if self.acquiring and e.ticket == self.sender else e

    def _is_dead(self, e: Entry) -> bool:
        return e.ticket in self.dead and e.listener != ""

    def _over(self, e: Entry) -> bool:
        return e.expires <= self.now or self._is_dead(e)

    def _tombstone_for(self, ticket: str) -> Why | None:
        why = self._find_mark(ticket)
        return why if why is None or why.kind != ASKED else None

    def _asked(self, ticket: str) -> Why | None:
        """Return the request to release, if there is one for this ticket."""
        why = self._find_mark(ticket)
        return why if why is not None and why.kind == ASKED else None

    def _find_mark(self, ticket: str) -> Why | None:
        for g in self.tombstones:
            if g.ticket == ticket:
                return g.why
        return None

    def _forget_requests(self) -> None:
        """A request to release ends with its grant."""
        tickets = {e.ticket for e in self.holders}
        self.tombstones = tuple(g for g in self.tombstones if g.why.kind != ASKED or g.ticket in tickets)

    # -- admitting

    def admit(self) -> None:
        """Grant to the head of the queue while it fits. Unreachable and silent waiters are passed over."""
        while self.queue:
            turn = self._next_in_queue()
            if turn is None or self.queue[turn].weight > self.room():
                return
            for i in range(turn):
                e = self.queue[i]
                if e.passed == FRESH:
                    self.queue[i] = e._replace(passed=PASSED)
            self._grant_entry(self.queue.pop(turn))

    def _next_in_queue(self) -> int | None:
        """Return the index of the next waiter. Expired waiters before it are removed, however long the queue is."""
        fallback: int | None = None
        i = 0
        while i < len(self.queue):
            e = self.queue[i]
            if self._over(e):
                del self.queue[i]
            elif e.passed == SILENT:
                i += 1
            elif e.ticket in self.unreachable and e.passed != POLLED and not (
                self.acquiring and e.ticket == self.sender
            ):
                fallback = i if fallback is None else fallback
                i += 1
            else:
                return i
        return fallback

    def room(self) -> int:
        return self.capacity - sum([e.weight for e in self.holders])

    def _grant_entry(self, e: Entry) -> None:
        fence = max(self.fence + 1, self.now)
        self.fence = fence + e.block - 1
        confirmed = self.acquiring and e.ticket == self.sender
        self.holders.append(
            e._replace(
                fence=fence,
                confirmed=confirmed,
                since=self.now,
                expires=self.now + (e.lease if confirmed else min(e.lease, CONFIRM_WINDOW)),
                poll_ttl=max(e.expires - self.now, 0),
                passed=FRESH,
            )
        )

    # -- the commands

    def obey(self) -> Reply | None:
        """Carry out the command. None: an Acquire, which gets its reply after the second round of grants."""
        command = self.command
        if isinstance(command, Acquire):
            return self._enter(command)
        if isinstance(command, Release):
            return self._leave(command)
        if isinstance(command, (Renew, Detach)):
            return self._renew(command)
        if isinstance(command, Evict):
            return self._evict(command)
        if isinstance(command, Ask):
            return self._ask(command)
        assert isinstance(command, Resize)
        return self._resize(command)

    def _enter(self, c: Acquire) -> Reply | None:
        if c.listener and c.ticket in self.dead:
            return Revoked(DEAD)
        why = self._tombstone_for(c.ticket)
        if why:
            return Revoked(why)
        for i, e in enumerate(self.holders):
            if e.ticket == c.ticket:
                self.holders[i] = e._replace(confirmed=True, expires=self.now + e.lease)
                return None
        if any(e.ticket == c.ticket for e in self.queue):
            return None
        wanted = self.capacity if self.fixed else c.capacity or self.capacity
        if wanted != self.capacity and (self.holders or self.queue):
            return Mismatch(self.capacity)
        if not 1 <= c.weight <= wanted:
            return Mismatch(wanted)
        self.capacity = wanted
        span = poll_ttl(len(self.queue))
        e = Entry(
            c.ticket, c.weight, c.lease, span, max(c.block, 1) if c.weight == wanted else 1,
            c.listener, c.owner, c.note, 0, self.now, self.now + span,
        )  # fmt: skip
        if (not self.queue or not c.fair) and c.weight <= self.room():
            self._grant_entry(e)
            return None
        if not c.wait and not self._would_pass_all(e):
            return Refused()
        self.places += 1
        self.queue.append(e._replace(place=self.places))
        return None

    def _would_pass_all(self, e: Entry) -> bool:
        """Return True if a client that only tries would be granted the lock past silent and unreachable waiters."""
        if e.weight > self.room():
            return False
        self.queue.append(e)
        first = self._next_in_queue() == len(self.queue) - 1
        self.queue.pop()
        return first

    def reply_to_acquire(self) -> Reply:
        for e in self.holders:
            if e.ticket == self.sender:
                return Granted(e.fence, e.expires - self.now, self._asked(e.ticket))
        for i, e in enumerate(self.queue):
            if e.ticket == self.sender:
                if e.poll_ttl != poll_ttl(i):  # it must fit the place in the reply, not the one before the step
                    self.queue[i] = self._polled(e, i)
                return Queued(i, e.place, self._retry_in(i, e.lease))
        raise AssertionError(f"{self.sender} neither a holder nor in the queue")

    def _retry_in(self, ahead: int, lease: int) -> int:
        """Return the time until those directly ahead expire: for the head the holders, for the others the head.

        For all waiters also the unconfirmed holders: if one of them is dead, the next waiter may be dead, too, and a
        live one must poll when that turn is over. That is enough to notice every death in turn. A client whose lease
        is shorter than the window must poll more often, or it would sleep through every turn without a wake-up.
        """
        if ahead:
            soon = min([self.queue[0].expires, *[e.expires for e in self.holders if not e.confirmed]]) - self.now
        else:
            soon = min([e.expires for e in self.holders], default=self.now) - self.now
        if lease < CONFIRM_WINDOW:
            soon = min(soon, lease // 2 * (ahead + 1))
        return max(soon, 1)

    def _leave(self, c: Release) -> Reply:
        held = False
        for i, e in enumerate(self.holders):
            if e.ticket == c.ticket:
                let_in_just_now = e.fence > self.before.fence
                if not (let_in_just_now or c.fence is None or e.fence <= c.fence < e.fence + e.block):
                    return Released(False)  # the grant of another incarnation
                if not let_in_just_now and c.lease is not None and e.lease > c.lease:
                    return Released(False)  # another client has extended it
                del self.holders[i]
                held = not let_in_just_now and self._tombstone_for(c.ticket) is None
                break
        else:
            self.queue = [e for e in self.queue if e.ticket != c.ticket]
        if c.leave_tombstone:
            self._add_tombstone(c.ticket, LEFT)
        return Released(held)

    def _renew(self, c: Renew | Detach) -> Reply:
        why = self._tombstone_for(c.ticket)
        if why is None:
            for i, e in enumerate(self.holders):
                if e.ticket == c.ticket and (c.fence is None or c.fence == e.fence):
                    if isinstance(c, Detach):
                        lease = max(c.lease - (self.now - e.since), 1) if c.closed else c.lease
                        self.closes = e.listener != "" or e.expires != self.now + lease
                        e = e._replace(lease=lease, listener="", owner="" if c.closed else e.owner)
                    else:
                        if c.weight is not None:
                            e = e._replace(weight=max(1, min(c.weight, e.weight)))  # it may only fall
                        if c.lease is not None:
                            e = e._replace(lease=max(c.lease, e.lease))  # it may only grow
                    self.holders[i] = e._replace(confirmed=True, expires=self.now + e.lease)
                    return Granted(e.fence, e.lease, self._asked(e.ticket))
        return NotHolder(why)

    def _evict(self, c: Evict) -> Reply:
        tickets = [e.ticket for e in self.holders] if c.ticket is None else [c.ticket]
        there: list[str] = []
        for ticket in tickets:
            for e in [*self.holders, *self.queue]:
                if e.ticket == ticket:
                    there.append(ticket)
                    self.dropped.append(Wakeup(e.listener, ticket))
            self.queue = [e for e in self.queue if e.ticket != ticket]
            if c.at_once:
                self.holders = [e for e in self.holders if e.ticket != ticket]
            self._add_tombstone(ticket, Why("evicted", c.by, c.reason))
        return Done(tuple(there))

    def _ask(self, c: Ask) -> Reply:
        for e in self.holders:
            if e.ticket == c.ticket and not self._tombstone_for(c.ticket):
                self.dropped.append(Wakeup(e.listener, c.ticket))
                self._mark(Tombstone(c.ticket, FOREVER, FOREVER, Why(ASKED, c.by, c.reason)))
                return Done((c.ticket,))
        return Done(())

    def _resize(self, c: Resize) -> Reply:
        self.fixed = c.capacity is not None
        self.capacity = self.capacity if c.capacity is None else c.capacity
        heavy = [e for e in self.queue if e.weight > self.capacity]
        if heavy:
            self.queue = [e for e in self.queue if e.weight <= self.capacity]
            self.dropped += [Wakeup(e.listener, e.ticket) for e in heavy]
        return Done(tuple(e.ticket for e in heavy))

    def _add_tombstone(self, ticket: str, why: Why) -> None:
        """Add a tombstone. It outlasts every lease that it must end; a second one changes nothing."""
        if self._tombstone_for(ticket):
            return
        leases = [e.lease for e in (*self.before.holders, *self.before.queue) if e.ticket == ticket]
        span = max([TOMBSTONE, *leases])
        self._mark(Tombstone(ticket, self.now + span, span, why))

    def _mark(self, mark: Tombstone) -> None:
        """Add it in place of a request to release."""
        self.tombstones = (*[g for g in self.tombstones if g.ticket != mark.ticket], mark)

    def wakes(self) -> tuple[Wakeup, ...]:
        """Wake exactly the clients that this step granted to without their asking, dropped, evicted or asked, and the
        head of the queue if it must poll at another time than it knows."""
        granted = [
            Wakeup(e.listener, e.ticket, e.place, e.fence)
            for e in self.holders
            if not e.confirmed and e.fence > self.before.fence and not self._tombstone_for(e.ticket)
        ]
        return (*granted, *self.dropped, *self._wake_head_to_poll())

    def _wake_head_to_poll(self) -> tuple[Wakeup, ...]:
        """Return the wake-up of a head that must poll when a grant ends.

        A grant without a process ends by time alone: no release grants to the next waiter. The head of the queue
        must poll at that instant, so it is woken when such a grant is made or when it has become the head.
        """
        if not self.queue:
            return ()
        head, old = self.queue[0], self.before
        if not head.listener or (self.acquiring and head.ticket == self.sender):
            return ()
        if not self.closes:
            if old.queue and old.queue[0].ticket == head.ticket:
                return ()
            if not (_any_without_process(old.holders) and _any_without_process(self.holders)):
                return ()
        return (Wakeup(head.listener, head.ticket),)


def _any_without_process(some: Iterable[Entry]) -> bool:
    return any(not e.listener for e in some)


def _usual_acquire(record: LockState, command: Acquire, now: int) -> _Outcome | None:
    """Acquire, join the queue, or confirm a grant. None: it takes the full step.

    Like `_usual_release` only where no holder or waiter has expired and none was passed over. Both have no rules of
    their own: a test compares them with the full step, which takes four times as long.
    """
    capacity, fixed, fence, places, seen, holders, queue, tombstones = record
    ticket, wanted, weight, lease, wait, fair, block, listener, owner, note = command
    if tombstones:
        return None
    size = room = capacity if fixed else wanted
    if holders or queue:
        if now < seen or size != capacity:
            return None
        mine = None
        for e in holders:
            if e.expires <= now:
                return None
            room -= e.weight
            if e.ticket == ticket:
                mine = e
        if queue and (fresh_until(queue) <= now or queue[0].weight <= room):
            return None
        if mine is not None:
            e = _new(Entry, (*mine[:10], now + mine.lease, mine.fence, True, mine.passed))
            inside = tuple([e if other is mine else other for other in holders])
            after = _new(LockState, (capacity, fixed, fence, places, now, inside, queue, ()))
            return after, _new(Granted, (e.fence, e.lease, None)), ()
    if not 1 <= weight <= size:
        return None
    if block < 1 or weight != size:
        block = 1
    if weight <= room and not queue:
        first = now if now > fence else fence + 1
        e = _new(Entry, (
            ticket, weight, lease, _HEAD_TTL, block, listener, owner, note, 0, now, now + lease, first, True, FRESH,
        ))  # fmt: skip
        inside = (*holders, e) if holders else (e,)
        after = _new(LockState, (size, fixed, first + block - 1, places, now, inside, (), ()))
        return after, _new(Granted, (first, lease, None)), ()
    if not (wait and fair) or lease < CONFIRM_WINDOW or is_in(queue, ticket):
        return None
    span, place = poll_ttl(len(queue)), places + 1
    last = _new(Entry, (
        ticket, weight, lease, span, block, listener, owner, note, place, now, now + span, 0, False, FRESH,
    ))  # fmt: skip
    longer = queue + (last,)  # noqa: RUF005 - a queue that is text stays one
    retry_at = (queue or holders)[0].expires
    for e in holders:
        if not (queue and e.confirmed) and e.expires < retry_at:
            retry_at = e.expires
    after = _new(LockState, (capacity, fixed, fence, place, now, holders, longer, ()))
    return after, _new(Queued, (len(queue), place, max(retry_at - now, 1))), ()


def _usual_release(record: LockState, command: Release, now: int) -> _Outcome | None:
    """Release, and hand over to the head of the queue if there is room for it and for no other. None: the full step."""
    capacity, fixed, fence, places, seen, holders, queue, tombstones = record
    ticket, leave_tombstone, released, longest = command
    if tombstones or now < seen or leave_tombstone or longest is not None:
        return None
    room, mine = capacity, None
    for e in holders:
        if e.expires <= now:
            return None
        if e.ticket == ticket:
            mine = e
        else:
            room -= e.weight
    if mine is None or not (released is None or mine.fence <= released < mine.fence + mine.block):
        return None
    inside = () if len(holders) == 1 else tuple([e for e in holders if e is not mine])
    if not queue:
        return _new(LockState, (capacity, fixed, fence, places, now, inside, (), ())), _RELEASED, ()
    head = queue[0]
    room -= head.weight
    if fresh_until(queue) <= now or not 0 <= room < mine.weight:
        return None  # nobody fits, or the head did before
    if len(queue) > 1:
        second = queue[1]
        if second.weight <= room or (second.listener and _any_without_process(holders)):
            return None
    ticket, weight, lease, _, block, listener, owner, note, place, _, until = head[:11]
    first, ends = max(fence + 1, now), now + min(lease, CONFIRM_WINDOW)
    e = _new(Entry, (
        ticket, weight, lease, until - now, block, listener, owner, note, place, now, ends, first, False, FRESH,
    ))  # fmt: skip
    after = _new(LockState, (capacity, fixed, first + block - 1, places, now, (*inside, e), queue[1:], ()))
    return after, _RELEASED, (_new(Wakeup, (listener, ticket, place, first)),)


_RELEASED = Released(True)
_HEAD_TTL = poll_ttl(0)
_new = tuple.__new__  # makes a named tuple in half the time of its own constructor; every field must be given

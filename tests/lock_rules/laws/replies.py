"""Laws about the replies, and about which clients are woken."""

from fairlock.rules.locks import (
    CONFIRM_WINDOW,
    Acquire,
    Ask,
    Detach,
    Done,
    Evict,
    Granted,
    Mismatch,
    NotHolder,
    Queued,
    Refused,
    Renew,
    Resize,
    Revoked,
    Wakeup,
)
from tests.lock_rules.step import Step


def a_renewal_never_creates(s: Step) -> None:
    c = s.command
    if not isinstance(c, Renew | Detach):
        return
    old = s.was_inside.get(c.ticket)
    from_line = c.ticket in s.was_in_line and c.ticket in s.holders
    if isinstance(s.reply, Granted):
        assert old or from_line, "a renewal created a grant"
        grant = s.holders[c.ticket]
        assert c.fence in (None, grant.fence), "renewed with another fence"
        assert from_line or (old and old.fence == grant.fence)
        if isinstance(c, Detach):
            assert (grant.lease, grant.listener) == (c.lease, "")
        elif c.weight is not None and old:
            assert grant.weight == max(1, min(c.weight, old.weight))
    else:
        assert isinstance(s.reply, NotHolder)
        known = old and not s.is_dead(old) and not s.has_tombstone(c.ticket) and c.fence in (None, old.fence)
        if known and old:
            assert old.expires <= s.now, "a living grant was not renewed"
            assert s.waited() or old.ticket in s.tombstones_before, "nobody waited, and yet it was not renewed"


def entering_is_answered_as_the_table_says(s: Step) -> None:
    c = s.command
    if not isinstance(c, Acquire):
        return
    here = c.ticket in s.holders or c.ticket in s.in_queue
    if (c.listener and c.ticket in s.dead) or s.has_tombstone(c.ticket):
        assert isinstance(s.reply, Revoked)
    elif isinstance(s.reply, Refused):
        assert not c.wait
        assert not here
        assert c.ticket not in s.was_in_line, "one in queue was refused"
        alone = not s.after.holders and all(s.may_be_passed(e) for e in s.after.queue)
        assert not alone, "refused by an empty room"
    elif isinstance(s.reply, Mismatch):
        assert not here
        idle = not s.after.holders and not s.after.queue
        asked = s.after.capacity if s.after.fixed else c.capacity or s.after.capacity
        other = asked != s.after.capacity and not idle
        assert other or not 1 <= c.weight <= asked, "a mismatch where all matches"
        assert s.after.capacity == s.before.capacity
    elif isinstance(s.reply, Queued):
        assert c.ticket in s.in_queue
        assert c.wait or c.ticket in s.was_in_line or c.ticket in s.was_inside
        assert 1 <= c.weight <= s.after.capacity
        if not c.fair and c.ticket not in s.was_in_line and c.ticket not in s.was_inside:
            room = s.after.capacity - sum(e.weight for e in s.after.holders)
            assert c.weight > room, "fair=False, it fits, and yet it waits"
    else:
        assert isinstance(s.reply, Granted)
    if c.ticket not in s.was_inside and c.ticket not in s.was_in_line and here:
        assert s.after.fixed or c.capacity in (0, s.after.capacity), "let in under another capacity"


def capacity_changes_only_by_resize_or_when_idle(s: Step) -> None:
    if isinstance(s.command, Resize):
        given = s.command.capacity
        assert s.after.fixed == (given is not None), "a size is an operator's as long as it was given by one"
        assert s.after.capacity == (s.before.capacity if given is None else given)
        return
    assert s.after.fixed == s.before.fixed
    if s.after.capacity != s.before.capacity:
        assert not s.before.fixed and isinstance(s.command, Acquire)
        others = [e for e in (*s.after.holders, *s.after.queue) if e.ticket != s.sender]
        assert not others, "the capacity changed while somebody was there"


def exactly_the_newly_admitted_are_woken(s: Step) -> None:
    evicted = isinstance(s.command, Evict)
    wakes = [
        Wakeup(e.listener, e.ticket, e.place, e.fence)
        for e in s.admitted
        if not (e.ticket == s.sender and isinstance(s.reply, Granted)) and not (evicted and e.ticket in s.tombstones)
    ]
    if isinstance(s.reply, Done):
        known = {e.ticket: e.listener for e in (*s.before.holders, *s.before.queue)}
        wakes += [Wakeup(known[t], t) for t in s.reply.tickets]
    if s.after.queue and _wake_head_to_poll(s):
        wakes.append(Wakeup(s.after.queue[0].listener, s.after.queue[0].ticket))
    assert sorted(s.woken) == sorted(wakes), f"woken {s.woken} instead of {wakes}"


def _wake_head_to_poll(s: Step) -> bool:
    """Return True if the head of the queue must learn when a hold without a process, which wakes nobody, ends."""
    head = s.after.queue[0]
    if not head.listener or (s.acquiring and head.ticket == s.sender):
        return False
    old, new = s.was_inside.get(s.sender), s.holders.get(s.sender)
    if isinstance(s.command, Detach) and isinstance(s.reply, Granted) and new:
        if old is None or old.fence != new.fence or old.listener:
            return True
        lasts = old.lease if old.confirmed else min(old.lease, CONFIRM_WINDOW)
        expires = old.expires if s.now >= s.before.seen else min(old.expires, s.now + lasts)  # a clock set back
        if expires != new.expires:
            return True
    is_new = not s.before.queue or s.before.queue[0].ticket != head.ticket
    return is_new and any(not e.listener for e in s.before.holders) and any(not e.listener for e in s.after.holders)


def the_evicted_and_the_dropped_are_woken(s: Step) -> None:
    c = s.command
    if isinstance(c, Evict):
        told = s.reply.tickets if isinstance(s.reply, Done) else ()
        there = {e.ticket for e in (*s.before.holders, *s.before.queue) if not s.over(e)}
        must = there & {c.ticket} if c.ticket else {e.ticket for e in s.before.holders if not s.over(e)}
        assert must <= set(told)
    if isinstance(c, Resize):
        heavy = {e.ticket for e in s.before.queue if e.weight > s.after.capacity and not s.over(e)} - set(s.holders)
        assert isinstance(s.reply, Done) and heavy <= set(s.reply.tickets)


def a_holder_that_is_asked_is_told_so_in_every_grant(s: Step) -> None:
    if isinstance(s.reply, Granted):
        assert s.reply.asked == s.asked.get(s.sender), "told another request than the one in the state"
    if isinstance(s.command, Ask):
        assert s.command.ticket not in s.asked or s.command.ticket in [w.ticket for w in s.woken], (
            "asked, and not woken"
        )

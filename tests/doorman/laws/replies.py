"""Laws about what is answered, and who is woken."""

from holdfast.doorman import (
    WINDOW,
    Admitted,
    Done,
    Enter,
    Evict,
    Gone,
    Keep,
    Mismatch,
    NotInside,
    Refused,
    Renew,
    Resize,
    Waiting,
    Wake,
)
from tests.doorman.step import Step


def a_renewal_never_creates(s: Step) -> None:
    c = s.command
    if not isinstance(c, Renew | Keep):
        return
    old = s.was_inside.get(c.ticket)
    from_line = c.ticket in s.was_in_line and c.ticket in s.inside
    if isinstance(s.reply, Admitted):
        assert old or from_line, "a renewal created a seat"
        seat = s.inside[c.ticket]
        assert c.fence in (None, seat.fence), "renewed with another fence"
        assert from_line or (old and old.fence == seat.fence)
        if isinstance(c, Keep):
            assert (seat.lease, seat.ear) == (c.lease, "")
        elif c.weight is not None and old:
            assert seat.weight == max(1, min(c.weight, old.weight))
    else:
        assert isinstance(s.reply, NotInside)
        known = old and not s.is_dead(old) and not s.buried(c.ticket) and c.fence in (None, old.fence)
        if known and old:
            assert old.expires <= s.now, "a living seat was not renewed"
            assert s.waited() or old.ticket in s.graves_before, "nobody waited, and yet it was not renewed"


def entering_is_answered_as_the_table_says(s: Step) -> None:
    c = s.command
    if not isinstance(c, Enter):
        return
    here = c.ticket in s.inside or c.ticket in s.in_line
    if (c.ear and c.ticket in s.dead) or s.buried(c.ticket):
        assert isinstance(s.reply, Gone)
    elif isinstance(s.reply, Refused):
        assert not c.wait
        assert not here
        assert c.ticket not in s.was_in_line, "one in line was refused"
        alone = not s.after.inside and all(s.may_be_passed(e) for e in s.after.line)
        assert not alone, "refused by an empty room"
    elif isinstance(s.reply, Mismatch):
        assert not here
        idle = not s.after.inside and not s.after.line
        asked = s.after.capacity if s.after.fixed else c.capacity or s.after.capacity
        other = asked != s.after.capacity and not idle
        assert other or not 1 <= c.weight <= asked, "a mismatch where all matches"
        assert s.after.capacity == s.before.capacity
    elif isinstance(s.reply, Waiting):
        assert c.ticket in s.in_line
        assert c.wait or c.ticket in s.was_in_line or c.ticket in s.was_inside
        assert 1 <= c.weight <= s.after.capacity
        if not c.fair and c.ticket not in s.was_in_line and c.ticket not in s.was_inside:
            room = s.after.capacity - sum(e.weight for e in s.after.inside)
            assert c.weight > room, "fair=False, it fits, and yet it waits"
    else:
        assert isinstance(s.reply, Admitted)
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
        assert not s.before.fixed and isinstance(s.command, Enter)
        others = [e for e in (*s.after.inside, *s.after.line) if e.ticket != s.asker]
        assert not others, "the capacity changed while somebody was there"


def exactly_the_newly_admitted_are_woken(s: Step) -> None:
    evicted = isinstance(s.command, Evict)
    wakes = [
        Wake(e.ear, e.ticket, e.place, e.fence)
        for e in s.admitted
        if not (e.ticket == s.asker and isinstance(s.reply, Admitted)) and not (evicted and e.ticket in s.graves)
    ]
    if isinstance(s.reply, Done):
        known = {e.ticket: e.ear for e in (*s.before.inside, *s.before.line)}
        wakes += [Wake(known[t], t) for t in s.reply.tickets]
    if s.after.line and _must_look_again(s):
        wakes.append(Wake(s.after.line[0].ear, s.after.line[0].ticket))
    assert sorted(s.woken) == sorted(wakes), f"woken {s.woken} instead of {wakes}"


def _must_look_again(s: Step) -> bool:
    """Whether the head of the line does not know when somebody without a process is out, who lets nobody in."""
    head = s.after.line[0]
    if not head.ear or (s.entering and head.ticket == s.asker):
        return False
    old, new = s.was_inside.get(s.asker), s.inside.get(s.asker)
    if isinstance(s.command, Keep) and isinstance(s.reply, Admitted) and new:
        if old is None or old.fence != new.fence or old.ear:
            return True
        lasts = old.lease if old.sure else min(old.lease, WINDOW)
        expires = old.expires if s.now >= s.before.seen else min(old.expires, s.now + lasts)  # a clock set back
        if expires != new.expires:
            return True
    is_new = not s.before.line or s.before.line[0].ticket != head.ticket
    return is_new and any(not e.ear for e in s.before.inside) and any(not e.ear for e in s.after.inside)


def those_evicted_or_dropped_are_told_of(s: Step) -> None:
    c = s.command
    if isinstance(c, Evict):
        told = s.reply.tickets if isinstance(s.reply, Done) else ()
        there = {e.ticket for e in (*s.before.inside, *s.before.line) if not s.over(e)}
        must = there & {c.ticket} if c.ticket else {e.ticket for e in s.before.inside if not s.over(e)}
        assert must <= set(told)
    if isinstance(c, Resize):
        heavy = {e.ticket for e in s.before.line if e.weight > s.after.capacity and not s.over(e)} - set(s.inside)
        assert isinstance(s.reply, Done) and heavy <= set(s.reply.tickets)

"""Laws about holders: capacity, leases, fences."""

from fairlock.rules.locks import CONFIRM_WINDOW, Acquire, Detach, Granted, Renew, Resize
from tests.lock_rules.step import Step


def capacity_is_kept(s: Step) -> None:
    """A new holder fits beside all other holders; only a Resize may leave more holders than fit."""
    weight = sum(e.weight for e in s.after.holders)
    if s.admitted:
        limit = max(s.before.capacity, s.after.capacity) if isinstance(s.command, Resize) else s.after.capacity
        assert weight <= limit, f"{weight} holders, {limit} fit"
    if not s.after.fixed and weight > s.after.capacity:
        left_by_a_resize = sum(e.weight for e in s.before.holders)
        assert weight <= left_by_a_resize, f"{weight} holders, {s.after.capacity} fit"
    for e in s.after.holders:
        if (old := s.was_inside.get(e.ticket)) and old.fence == e.fence:
            assert e.weight <= old.weight, f"{e.ticket} has become heavier"


def a_living_grant_stays(s: Step) -> None:
    """Until a lease has run out nobody but its holder and an operator can end or shorten it."""
    for old in s.before.holders:
        if s.over(old) or s.removed(old.ticket):
            continue
        new = s.holders.get(old.ticket)
        assert new is not None, f"{old.ticket} was thrown out"
        assert new.fence == old.fence, f"the fence of {old.ticket} changed"
        if not (isinstance(s.command, Detach) and s.sender == old.ticket):
            least = old.expires
            if s.now < s.before.seen:
                least = min(least, s.now + (old.lease if old.confirmed else min(old.lease, CONFIRM_WINDOW)))
            assert new.expires >= least, f"the lease of {old.ticket} was cut"


def only_its_holder_lengthens_a_grant(s: Step) -> None:
    for old in s.before.holders:
        new = s.holders.get(old.ticket)
        if new and new.fence == old.fence and old.ticket != s.sender:
            assert new.expires <= old.expires, f"{old.ticket} lasts longer without a word of it"
            assert new.confirmed == old.confirmed, f"{old.ticket} became confirmed without a word of it"


def a_grant_is_what_was_asked_for(s: Step) -> None:
    """Lease, block, listener, owner, note: nothing that another message says later changes them, except Detach."""
    for old in (*s.before.holders, *s.before.queue):
        new = s.holders.get(old.ticket) or s.in_queue.get(old.ticket)
        if new is None or new.place > s.before.places or (new.place == 0 and new.fence > s.before.fence):
            continue  # not there any more, or granted again
        kept = isinstance(s.command, Detach) and s.sender == old.ticket
        if not kept:
            lease = old.lease
            if isinstance(s.command, Renew) and s.sender == old.ticket and isinstance(s.reply, Granted):
                lease = max(old.lease, s.command.lease or 0)
            assert (new.lease, new.listener) == (lease, old.listener), f"lease or listener of {old.ticket} changed"
        owner = "" if kept and isinstance(s.reply, Granted) and s.command.closed else old.owner  # type: ignore[union-attr]
        assert (new.block, new.owner, new.note) == (old.block, owner, old.note)
        lighter = isinstance(s.command, Renew) and s.sender == old.ticket and s.command.weight is not None
        assert new.weight == old.weight or lighter, f"the weight of {old.ticket} changed"
    c = s.command
    if isinstance(c, Acquire) and c.ticket not in s.was_inside and c.ticket not in s.was_in_line:
        new = s.holders.get(c.ticket) or s.in_queue.get(c.ticket)
        if new:
            block = max(c.block, 1) if c.weight == s.after.capacity else 1
            asked = (c.weight, c.lease, block, c.listener, c.owner, c.note)
            assert (new.weight, new.lease, new.block, new.listener, new.owner, new.note) == asked


def the_sender_is_confirmed_and_others_have_the_window(s: Step) -> None:
    if isinstance(s.reply, Granted):
        grant = s.holders.get(s.sender)
        assert grant is not None, "granted, but not a holder"
        assert grant.confirmed
        assert grant.fence == s.reply.fence
        assert s.reply.left == grant.lease == grant.expires - s.now, "the sender has not got its whole lease"
        assert not s.has_tombstone(s.sender)
    for e in s.admitted:
        assert e.since == s.now
        if not (e.ticket == s.sender and isinstance(s.reply, Granted)):
            assert not e.confirmed, f"{e.ticket} is confirmed without a word of it"
            assert e.expires == s.now + min(e.lease, CONFIRM_WINDOW), (
                f"{e.ticket} is unconfirmed for another time than the window"
            )


def fences_rise(s: Step) -> None:
    """No number is given twice, whole blocks counted, and none lags behind the clock."""
    last = s.before.fence
    for e in s.admitted:
        assert e.fence > last, f"fence {e.fence} of {e.ticket} was given before"
        assert e.fence >= s.now, "a fence behind the clock: it would not rise after data loss"
        last = e.fence + e.block - 1
    assert s.after.fence >= last, "the block was not reserved"
    for e in s.after.holders:
        old = s.was_inside.get(e.ticket)
        assert e.fence > s.before.fence or (old and old.fence == e.fence), f"{e.ticket} has somebody else's fence"

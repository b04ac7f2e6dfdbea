"""Laws about those inside: capacity, leases, fences."""

from holdfast.doorman import WINDOW, Admitted, Enter, Keep, Renew, Resize
from tests.doorman.step import Step


def capacity_is_kept(s: Step) -> None:
    """Whoever is let in fits beside all who are inside; only a Resize may leave more inside than fit."""
    weight = sum(e.weight for e in s.after.inside)
    if s.admitted:
        limit = max(s.before.capacity, s.after.capacity) if isinstance(s.command, Resize) else s.after.capacity
        assert weight <= limit, f"{weight} inside, {limit} fit"
    if not s.after.fixed and weight > s.after.capacity:
        left_by_a_resize = sum(e.weight for e in s.before.inside)
        assert weight <= left_by_a_resize, f"{weight} inside, {s.after.capacity} fit"
    for e in s.after.inside:
        if (old := s.was_inside.get(e.ticket)) and old.fence == e.fence:
            assert e.weight <= old.weight, f"{e.ticket} has become heavier"


def a_living_seat_stays(s: Step) -> None:
    """Until a lease has run out nobody but its holder and an operator can end or shorten it."""
    for old in s.before.inside:
        if s.over(old) or s.removed(old.ticket):
            continue
        new = s.inside.get(old.ticket)
        assert new is not None, f"{old.ticket} was thrown out"
        assert new.fence == old.fence, f"the fence of {old.ticket} changed"
        if not (isinstance(s.command, Keep) and s.asker == old.ticket):
            least = old.expires
            if s.now < s.before.seen:
                least = min(least, s.now + (old.lease if old.sure else min(old.lease, WINDOW)))
            assert new.expires >= least, f"the lease of {old.ticket} was cut"


def only_its_holder_lengthens_a_seat(s: Step) -> None:
    for old in s.before.inside:
        new = s.inside.get(old.ticket)
        if new and new.fence == old.fence and old.ticket != s.asker:
            assert new.expires <= old.expires, f"{old.ticket} lasts longer without a word of it"
            assert new.sure == old.sure, f"{old.ticket} became sure without a word of it"


def a_seat_is_what_was_asked_for(s: Step) -> None:
    """Lease, block, ear, owner, note: nothing that another message says later changes them, except Keep."""
    for old in (*s.before.inside, *s.before.line):
        new = s.inside.get(old.ticket) or s.in_line.get(old.ticket)
        if new is None or new.place > s.before.places or (new.place == 0 and new.fence > s.before.fence):
            continue  # not there any more, or come anew
        kept = isinstance(s.command, Keep) and s.asker == old.ticket
        if not kept:
            lease = old.lease
            if isinstance(s.command, Renew) and s.asker == old.ticket and isinstance(s.reply, Admitted):
                lease = max(old.lease, s.command.lease or 0)
            assert (new.lease, new.ear) == (lease, old.ear), f"lease or ear of {old.ticket} changed"
        owner = "" if kept and isinstance(s.reply, Admitted) and s.command.closed else old.owner  # type: ignore[union-attr]
        assert (new.block, new.owner, new.note) == (old.block, owner, old.note)
        lighter = isinstance(s.command, Renew) and s.asker == old.ticket and s.command.weight is not None
        assert new.weight == old.weight or lighter, f"the weight of {old.ticket} changed"
    c = s.command
    if isinstance(c, Enter) and c.ticket not in s.was_inside and c.ticket not in s.was_in_line:
        new = s.inside.get(c.ticket) or s.in_line.get(c.ticket)
        if new:
            block = max(c.block, 1) if c.weight == s.after.capacity else 1
            asked = (c.weight, c.lease, block, c.ear, c.owner, c.note)
            assert (new.weight, new.lease, new.block, new.ear, new.owner, new.note) == asked


def the_asker_is_sure_and_others_have_the_window(s: Step) -> None:
    if isinstance(s.reply, Admitted):
        seat = s.inside.get(s.asker)
        assert seat is not None, "admitted, but not inside"
        assert seat.sure
        assert seat.fence == s.reply.fence
        assert s.reply.left == seat.lease == seat.expires - s.now, "the asker has not got its whole lease"
        assert not s.buried(s.asker)
    for e in s.admitted:
        assert e.since == s.now
        if not (e.ticket == s.asker and isinstance(s.reply, Admitted)):
            assert not e.sure, f"{e.ticket} is sure without a word of it"
            assert e.expires == s.now + min(e.lease, WINDOW), f"{e.ticket} is unsure for another time than the window"


def fences_rise(s: Step) -> None:
    """No number is given twice, whole blocks counted, and none lags behind the clock."""
    last = s.before.fence
    for e in s.admitted:
        assert e.fence > last, f"fence {e.fence} of {e.ticket} was given before"
        assert e.fence >= s.now, "a fence behind the clock: it would not rise after data loss"
        last = e.fence + e.block - 1
    assert s.after.fence >= last, "the block was not reserved"
    for e in s.after.inside:
        old = s.was_inside.get(e.ticket)
        assert e.fence > s.before.fence or (old and old.fence == e.fence), f"{e.ticket} has somebody else's fence"

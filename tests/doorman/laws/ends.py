"""Laws about ends: expiry, death, graves, leaving."""

from holdfast.doorman import Done, Enter, Evict, Gone, Leave, Left, NotInside
from holdfast.doorman.rules import SWEEP
from tests.doorman.step import Step


def the_expired_and_the_dead_are_gone(s: Step) -> None:
    for e in s.after.inside:
        assert not s.is_dead(e), f"{e.ticket} is dead and inside"
        assert e.expires > s.now or e.lease <= 0, f"{e.ticket} has expired and is inside"
    for e in s.after.line:
        assert not s.is_dead(e), f"{e.ticket} is dead and in line"
    few = len(s.before.line) <= SWEEP  # of more than that some may be left for later, but never the head
    for e in s.after.line if few else s.after.line[:1]:
        assert e.expires > s.now, f"{e.ticket} has expired and is in line"
    for g in s.after.graves:
        assert g.until > s.now


def an_expired_seat_is_renewed_only_if_nobody_waits(s: Step) -> None:
    for old in s.before.inside:
        new = s.inside.get(old.ticket)
        if s.over(old) and new and new.fence == old.fence:
            assert old.ticket == s.asker and not isinstance(s.command, Leave), f"{old.ticket} sits on without a word"
            assert not s.waited(), f"{old.ticket} sits on although somebody waits"
            assert old.ticket not in s.graves_before, f"{old.ticket} was evicted"
            assert not s.is_dead(old)


def the_buried_stay_away(s: Step) -> None:
    """No evicted or departed ticket comes back, not by a late Enter and not by a renewal."""
    for ticket, grave in s.graves_before.items():
        if grave.until <= s.now:
            continue
        assert ticket not in s.in_line, f"{ticket} rose from its grave into the line"
        if new := s.inside.get(ticket):
            old = s.was_inside.get(ticket)
            assert old and old.fence == new.fence, f"{ticket} rose from its grave"
            assert new.expires <= old.expires, f"{ticket} was renewed although it was evicted"
        assert ticket in s.graves, f"the grave of {ticket} was lost"
        assert s.graves[ticket].until == min(grave.until, s.now + grave.span)
        assert s.graves[ticket].why == grave.why
    if s.buried(s.asker) or (s.asker in s.dead and isinstance(s.command, Enter) and s.command.ear):
        assert isinstance(s.reply, Gone | NotInside | Left | Done), "not told"
        assert s.reply != Left(True)


def whoever_asks_to_be_buried_is(s: Step) -> None:
    honoured = not (isinstance(s.command, Leave) and s.asker in s.inside)
    if (isinstance(s.command, Leave) and s.command.bury and honoured) or isinstance(s.command, Evict):
        all_inside = s.reply.tickets if isinstance(s.reply, Done) else ()
        for ticket in [s.asker] if s.asker else all_inside:
            assert ticket in s.graves, f"{ticket} has no grave"
            if not s.buried(ticket):
                old = s.was_inside.get(ticket) or s.was_in_line.get(ticket)
                span = max(s.grave, old.lease if old else 0)
                assert s.graves[ticket].until == s.now + span, f"the grave of {ticket} has another length"
    else:
        assert set(s.graves) <= set(s.graves_before), "a grave nobody asked for"


def leaving_leaves(s: Step) -> None:
    c = s.command
    if isinstance(c, Leave):
        old = s.was_inside.get(c.ticket)
        foreign = old and c.fence is not None and not old.fence <= c.fence < old.fence + old.block
        extended = old and c.lease is not None and old.lease > c.lease
        if old and foreign and not s.over(old):
            assert c.ticket in s.inside, "a Leave of another fence was honoured"
            assert s.reply == Left(False)
        elif old and extended and not s.over(old):
            assert c.ticket in s.inside, "what another client has extended was left"
            assert s.reply == Left(False)
        elif old and not s.over(old):
            assert c.ticket not in s.inside
            assert s.reply == Left(not s.buried(c.ticket))
        else:
            assert s.reply == Left(False), "it held nothing, or nothing any more"
        assert c.ticket not in s.in_line
        assert c.ticket not in s.inside or (old and (foreign or extended))
    if isinstance(c, Evict):
        for ticket in [c.ticket] if c.ticket else []:
            assert ticket not in s.in_line
            if c.at_once:
                assert ticket not in s.inside
            elif (old := s.was_inside.get(ticket)) and not s.over(old):
                assert ticket in s.inside, "evicted mildly, and out"

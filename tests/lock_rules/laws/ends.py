"""Laws about ends: expiry, death, tombstones, leaving."""

from fairlock.rules.locks import ASKED, Acquire, Ask, Done, Evict, NotHolder, Release, Released, Revoked
from fairlock.rules.locks.step import SWEEP
from tests.lock_rules.step import Step


def the_expired_and_the_dead_are_gone(s: Step) -> None:
    for e in s.after.holders:
        assert not s.is_dead(e), f"{e.ticket} is dead and holders"
        assert e.expires > s.now or e.lease <= 0, f"{e.ticket} has expired and is still a holder"
    for e in s.after.queue:
        assert not s.is_dead(e), f"{e.ticket} is dead and in queue"
    few = len(s.before.queue) <= SWEEP  # of more than that some may be left for later, but never the head
    for e in s.after.queue if few else s.after.queue[:1]:
        assert e.expires > s.now, f"{e.ticket} has expired and is in queue"
    for g in s.after.tombstones:
        assert g.until > s.now


def an_expired_grant_is_renewed_only_if_nobody_waits(s: Step) -> None:
    for old in s.before.holders:
        new = s.holders.get(old.ticket)
        if s.over(old) and new and new.fence == old.fence:
            assert old.ticket == s.sender and not isinstance(s.command, Release), f"{old.ticket} sits on without a word"
            assert not s.waited(), f"{old.ticket} sits on although somebody waits"
            assert old.ticket not in s.tombstones_before, f"{old.ticket} was evicted"
            assert not s.is_dead(old)


def tickets_with_a_tombstone_stay_away(s: Step) -> None:
    """No evicted or departed ticket comes back, not by a late Acquire and not by a renewal."""
    for ticket, tombstone in s.tombstones_before.items():
        if tombstone.until <= s.now:
            continue
        assert ticket not in s.in_queue, f"{ticket} rose from its tombstone into the queue"
        if new := s.holders.get(ticket):
            old = s.was_inside.get(ticket)
            assert old and old.fence == new.fence, f"{ticket} rose from its tombstone"
            assert new.expires <= old.expires, f"{ticket} was renewed although it was evicted"
        assert ticket in s.tombstones, f"the tombstone of {ticket} was lost"
        assert s.tombstones[ticket].until == min(tombstone.until, s.now + tombstone.span)
        assert s.tombstones[ticket].why == tombstone.why
    if s.has_tombstone(s.sender) or (s.sender in s.dead and isinstance(s.command, Acquire) and s.command.listener):
        assert isinstance(s.reply, Revoked | NotHolder | Released | Done), "not told"
        assert s.reply != Released(True)


def a_requested_tombstone_is_made(s: Step) -> None:
    honoured = not (isinstance(s.command, Release) and s.sender in s.holders)
    if (isinstance(s.command, Release) and s.command.leave_tombstone and honoured) or isinstance(s.command, Evict):
        all_inside = s.reply.tickets if isinstance(s.reply, Done) else ()
        for ticket in [s.sender] if s.sender else all_inside:
            assert ticket in s.tombstones, f"{ticket} has no tombstone"
            if not s.has_tombstone(ticket):
                old = s.was_inside.get(ticket) or s.was_in_line.get(ticket)
                span = max(s.tombstone, old.lease if old else 0)
                assert s.tombstones[ticket].until == s.now + span, f"the tombstone of {ticket} has another length"
    else:
        assert set(s.tombstones) <= set(s.tombstones_before), "a tombstone nobody asked for"


def leaving_leaves(s: Step) -> None:
    c = s.command
    if isinstance(c, Release):
        old = s.was_inside.get(c.ticket)
        foreign = old and c.fence is not None and not old.fence <= c.fence < old.fence + old.block
        extended = old and c.lease is not None and old.lease > c.lease
        if old and foreign and not s.over(old):
            assert c.ticket in s.holders, "a Release of another fence was honoured"
            assert s.reply == Released(False)
        elif old and extended and not s.over(old):
            assert c.ticket in s.holders, "what another client has extended was left"
            assert s.reply == Released(False)
        elif old and not s.over(old):
            assert c.ticket not in s.holders
            assert s.reply == Released(not s.has_tombstone(c.ticket))
        else:
            assert s.reply == Released(False), "it held nothing, or nothing any more"
        assert c.ticket not in s.in_queue
        assert c.ticket not in s.holders or (old and (foreign or extended))
    if isinstance(c, Evict):
        for ticket in [c.ticket] if c.ticket else []:
            assert ticket not in s.in_queue
            if c.at_once:
                assert ticket not in s.holders
            elif (old := s.was_inside.get(ticket)) and not s.over(old):
                assert ticket in s.holders, "evicted mildly, and out"


def a_request_to_release_ends_with_its_grant(s: Step) -> None:
    """It lasts as long as its grant, unless a tombstone takes its place. The next grant of the ticket is not asked."""
    for ticket in s.asked:
        grant = s.holders.get(ticket)
        assert grant is not None, f"{ticket} is asked to release what it does not hold"
        if ticket in s.asked_before:
            assert grant.fence == s.was_inside[ticket].fence, f"{ticket} is asked to release another grant"
    for ticket in s.asked_before.keys() - s.tombstones.keys():
        grant = s.holders.get(ticket)
        if grant is not None and grant.fence == s.was_inside[ticket].fence:
            assert ticket in s.asked, f"the request to {ticket} was forgotten"


def only_an_operator_asks(s: Step) -> None:
    """A request is made by Ask, about one holder; it changes no grant, and a second one replaces the first."""
    c = s.command
    for ticket, why in s.asked.items():
        if not (isinstance(c, Ask) and ticket == c.ticket):
            assert s.asked_before.get(ticket) == why, f"nobody has asked {ticket}"
    if isinstance(c, Ask):
        assert isinstance(s.reply, Done)
        holds = c.ticket in s.holders and not s.has_tombstone(c.ticket)
        assert s.reply == Done((c.ticket,) if holds else ())
        if holds:
            assert s.asked[c.ticket] == (ASKED, c.by, c.reason), "the newest request counts"

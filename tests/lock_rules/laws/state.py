"""Laws about the record as such: spans, uniqueness, and that saying it again changes nothing."""

from fairlock.rules.locks import CONFIRM_WINDOW, Done, Evict, Released
from tests.lock_rules.resource import SECOND
from tests.lock_rules.step import Step


def nothing_lasts_longer_than_its_span(s: Step) -> None:
    assert s.after.seen == s.now
    for e in s.after.holders:
        span = e.lease if e.confirmed else min(e.lease, CONFIRM_WINDOW)
        assert e.expires <= s.now + span, f"the grant of {e.ticket} outlasts its lease"
        assert e.since <= s.now
        if not e.confirmed:
            assert e.since + e.poll_ttl <= s.now + 30 * SECOND
    for e in s.after.queue:
        assert e.expires <= s.now + e.poll_ttl, f"the place of {e.ticket} outlasts its poll_ttl"
        assert e.since <= s.now
        assert e.poll_ttl <= 30 * SECOND
    for g in s.after.tombstones:
        assert g.until <= s.now + g.span, f"the tombstone of {g.ticket} outlasts its span"


def everybody_is_in_one_place(s: Step) -> None:
    tickets = [e.ticket for e in (*s.after.holders, *s.after.queue)]
    assert len(tickets) == len(set(tickets))
    assert len(s.tombstones) + len(s.asked) == len(s.after.tombstones)
    assert not s.tombstones.keys() & s.asked.keys(), "asked and barred"
    assert all(e.fence == 0 and not e.confirmed for e in s.after.queue)
    assert all(e.fence > 0 for e in s.after.holders)
    places = [e.place for e in (*s.after.holders, *s.after.queue) if e.place]
    assert len(places) == len(set(places)), "a place number was given twice"
    assert s.before.places <= s.after.places >= max(places, default=0)
    assert all(e.place for e in s.after.queue)
    here = {e.ticket for e in (*s.before.holders, *s.before.queue)} | {s.sender}
    assert set(tickets) <= here, "somebody came from nowhere"


def the_same_command_again_changes_nothing(s: Step) -> None:
    if isinstance(s.command, Evict) and s.command.ticket is None and s.command.at_once:
        return  # it means the current holders, and those may be others the second time
    again, reply, woken = s.apply(s.after, s.command, s.now, s.unreachable, s.dead)
    assert again == s.after, "the same command again changed the record"
    if not isinstance(s.reply, Released | Done):
        assert reply == s.reply, f"the same command again was answered {reply}"
    assert not any(w.fence for w in woken), "the same command again woke somebody"

"""Laws about the record as such: spans, uniqueness, and that saying it again changes nothing."""

from holdfast.doorman import WINDOW, Done, Evict, Left
from tests.doorman.door import SECOND
from tests.doorman.step import Step


def nothing_lasts_longer_than_its_span(s: Step) -> None:
    assert s.after.seen == s.now
    for e in s.after.inside:
        span = e.lease if e.sure else min(e.lease, WINDOW)
        assert e.expires <= s.now + span, f"the seat of {e.ticket} outlasts its lease"
        assert e.since <= s.now
        if not e.sure:
            assert e.since + e.patience <= s.now + 30 * SECOND
    for e in s.after.line:
        assert e.expires <= s.now + e.patience, f"the place of {e.ticket} outlasts its patience"
        assert e.since <= s.now
        assert e.patience <= 30 * SECOND
    for g in s.after.graves:
        assert g.until <= s.now + g.span, f"the grave of {g.ticket} outlasts its span"


def everybody_is_in_one_place(s: Step) -> None:
    tickets = [e.ticket for e in (*s.after.inside, *s.after.line)]
    assert len(tickets) == len(set(tickets))
    assert len(s.graves) == len(s.after.graves)
    assert all(e.fence == 0 and not e.sure for e in s.after.line)
    assert all(e.fence > 0 for e in s.after.inside)
    places = [e.place for e in (*s.after.inside, *s.after.line) if e.place]
    assert len(places) == len(set(places)), "a place number was given twice"
    assert s.before.places <= s.after.places >= max(places, default=0)
    assert all(e.place for e in s.after.line)
    here = {e.ticket for e in (*s.before.inside, *s.before.line)} | {s.asker}
    assert set(tickets) <= here, "somebody came from nowhere"


def the_same_command_again_changes_nothing(s: Step) -> None:
    if isinstance(s.command, Evict) and s.command.ticket is None and s.command.at_once:
        return  # it means whoever is inside, and that may be others the second time
    again, reply, woken = s.apply(s.after, s.command, s.now, s.deaf, s.dead)
    assert again == s.after, "the same command again changed the record"
    if not isinstance(s.reply, Left | Done):
        assert reply == s.reply, f"the same command again was answered {reply}"
    assert not any(w.fence for w in woken), "the same command again woke somebody"

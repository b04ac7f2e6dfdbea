"""Laws about waiters: first come first served, no due item is left lying, silent waiters are passed over."""

from fairlock.rules.pools import CONFIRM_WINDOW, Finish, Give, ItemState, On, Put, Quit, Remove, Seek
from tests.pool_rules.step import Step


def due_before(s: Step) -> list[ItemState]:
    """Return the items that were free when the step came to deal: also those that it has just added or given back."""
    found = [i for i in map(s.in_time, s.was.values()) if 0 <= i.score <= s.now]
    return sorted(found, key=lambda i: (i.score, i.key))


def nobody_waits_while_something_is_due(s: Step) -> None:
    if s.queue.workers:
        due = [i.key for i in s.items.values() if 0 <= i.score <= s.now]
        assert not due, f"{due} could be had, and {s.queue.workers[0].ticket} waits"


def first_come_first_served(s: Step) -> None:
    stood = [w.ticket for w in s.living]
    got = {i.ticket for i in s.newly_taken()}
    named = isinstance(s.order, Seek) and s.order.key
    still = [w.ticket for w in s.queue.workers]
    served = [t for t in stood if t in got]
    quitting = s.sender if isinstance(s.order, Quit) else ""
    rest = [t for t in stood if t != quitting]
    assert served == rest[: len(served)], f"{served} were served out of {rest}"
    if isinstance(s.order, Seek) and not named and s.sender in got and s.sender not in stood:
        assert served == stood, f"{s.sender} has just come and went before {stood}"
        assert not still
    strangers = got - set(stood) - {s.sender}
    assert not strangers, f"{strangers} did not ask"


def what_was_due_first_goes_first(s: Step) -> None:
    if isinstance(s.order, Put | On) or (isinstance(s.order, Seek) and s.order.key) or isinstance(s.order, Quit):
        return
    took = [i.key for i in s.newly_taken()]
    due = [i.key for i in due_before(s) if i.ticket != s.sender]  # its own is no longer anybody's
    assert took == due[: len(took)], f"{took} were taken, {due} were due"
    by_place = {t: n for n, t in enumerate(dict.fromkeys([*(w.ticket for w in s.living), s.sender]))}
    places = [by_place[s.items[k].ticket] for k in took]
    assert places == sorted(places), "who came first did not get what was due first"


def the_living_keep_their_place(s: Step) -> None:
    got = {i.ticket for i in s.items.values() if i.ticket}
    left = [w.ticket for w in s.living if w.ticket not in got]
    if isinstance(s.order, Quit):
        left = [t for t in left if t != s.sender]
    still = [w.ticket for w in s.queue.workers]
    assert still[: len(left)] == left, f"{left} stood in queue, and now {still}"
    assert len(still) <= len(left) + 1
    was = {w.ticket: w for w in s.living}
    for w in s.queue.workers:
        if w.ticket in was:
            assert (w.place, w.since) == (was[w.ticket].place, was[w.ticket].since)
        else:
            assert w.ticket == s.sender and isinstance(s.order, Seek) and s.order.wait and not s.order.key
            assert w.place == s.queue.places == s.line_was.places + 1
            assert (w.lease, w.listener, w.owner, w.note) == s.order[1:2] + s.order[3:6]
    places = [w.place for w in s.queue.workers]
    assert places == sorted(set(places))


def the_silent_and_the_dead_are_gone(s: Step) -> None:
    for w in (*s.queue.workers, *s.queue.watchers):
        assert w.expires > s.now, f"{w.ticket} was silent for too long"
        assert w.ticket not in s.dead or w.ticket == s.sender, f"{w.ticket} is dead"
        assert w.expires <= s.now + w.poll_ttl, f"{w.ticket} lasts longer than its poll_ttl"
    watched = {w.ticket for w in s.line_was.watchers if s.lives(w)} - {s.sender}
    assert {w.ticket for w in s.queue.watchers} - {s.sender} == watched


def the_sender_has_its_lease_and_the_others_the_window(s: Step) -> None:
    for i in s.newly_taken():
        span = i.lease if i.ticket == s.sender else min(i.lease, CONFIRM_WINDOW)
        assert i.score == s.now + span, f"{i.ticket} has {i.key} for {i.score - s.now}"
        who = next((w for w in s.living if w.ticket == i.ticket), None)
        if who is not None:
            assert (i.lease, i.owner, i.note) == (who.lease, who.owner, who.note)


def the_poll_ttl_fits_the_place(s: Step) -> None:
    if not isinstance(s.order, Seek) or s.order.key:
        return
    for place, w in enumerate(s.queue.workers):
        if w.ticket == s.sender:
            assert w.poll_ttl == 3 * min(CONFIRM_WINDOW // 2 * (place + 1), 10_000_000)
            assert w.expires == s.now + w.poll_ttl


def everybody_is_in_one_place(s: Step) -> None:
    have = [i.ticket for i in s.items.values() if i.ticket]
    wait = [w.ticket for w in s.queue.workers]
    assert len(set(have)) == len(have), "somebody has two"
    assert not set(have) & set(wait), "somebody has one and waits"
    assert len(set(wait)) == len(wait)


def exactly_the_concerned_are_woken(s: Step) -> None:
    woken = [h.ticket for h in s.hints]
    assert len(woken) == len(set(woken)), "woken twice"
    assert s.sender not in woken, "it has its reply"
    listeners = {w.ticket: w.listener for w in (*s.line_was.workers, *s.line_was.watchers)}
    assert all(h.listener == listeners[h.ticket] for h in s.hints)
    got = {i.ticket for i in s.newly_taken()} - {s.sender}
    assert got <= set(woken), f"{got - set(woken)} were given something and sleep on"
    first = s.queue.workers[0].ticket if s.queue.workers else ""
    if first and first != s.sender and [w.ticket for w in s.line_was.workers[:1]] != [first]:
        assert first in woken, f"{first} is first now and does not know it"
    changed = set()
    for key in {*s.was, *s.items}:
        old, new = s.was.get(key), s.items.get(key)
        if old is None or new is None or (old.ticket and old.ticket != new.ticket and s.says(old)):
            if new != old:
                changed.add(key)
    if isinstance(s.command, Give | Finish | Remove) or isinstance(s.order, Put | Quit):
        watching = {w.ticket for w in s.queue.watchers if w.key in changed} - {s.sender}
        assert watching <= set(woken), f"{watching} wait for {changed} and sleep on"
    else:
        watching = set()
    allowed = got | watching | {first}
    assert set(woken) <= allowed, f"{set(woken) - allowed} were woken for nothing"
    if first and [w.ticket for w in s.line_was.workers[:1]] == [first]:
        rests = isinstance(s.command, Give) and bool(changed)
        assert (first in woken) == rests, "he is woken exactly if something rests now"

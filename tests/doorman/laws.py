"""The laws: what must be true of every single step, whatever the record, the command and the clock.

They are written from the promises and not from the code: none of them calls into the rules, except to repeat a
command. A law is a function that asserts; `check` runs all of them and says which one was broken, by which step.
"""

from collections.abc import Callable

from holdfast.doorman import (
    WINDOW,
    Admitted,
    Done,
    Enter,
    Evict,
    Gone,
    Keep,
    Leave,
    Left,
    Mismatch,
    NotInside,
    Refused,
    Renew,
    Resize,
    Waiting,
    Wake,
)
from holdfast.doorman.record import HEARD, SILENT
from holdfast.doorman.rules import SWEEP
from tests.doorman.door import SECOND
from tests.doorman.step import Broken, Step

# -- inside


def capacity_is_kept(s: Step) -> None:
    """Whoever is let in fits beside all who are inside; only a Resize may leave more inside than fit."""
    weight = sum(e.weight for e in s.after.inside)
    if s.admitted:
        limit = max(s.before.capacity, s.after.capacity) if isinstance(s.command, Resize) else s.after.capacity
        assert weight <= limit, f"{weight} inside, {limit} fit"
    if not s.after.fixed:
        assert weight <= s.after.capacity, f"{weight} inside, {s.after.capacity} fit"
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
        if new is None or new.place > s.before.places or (new.place == 0 != old.place) or (s.asker == old.ticket and (
            new.fence > s.before.fence and old.fence
        )):
            continue  # not there any more, or come anew
        kept = isinstance(s.command, Keep) and s.asker == old.ticket
        if not kept:
            assert (new.lease, new.ear) == (old.lease, old.ear), f"lease or ear of {old.ticket} changed"
        assert (new.block, new.owner, new.note) == (old.block, old.owner, old.note)
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


# -- the line


def the_living_keep_their_place(s: Step) -> None:
    """Nobody who lives is dropped from the line, and nobody's turn changes."""
    for old in s.before.line:
        polled = s.entering and old.ticket == s.asker
        if s.is_dead(old) or (s.over(old) and not polled) or s.removed(old.ticket):
            continue
        if old.ticket in s.inside:
            assert s.inside[old.ticket].place == old.place
            continue
        if isinstance(s.command, Resize) and old.weight > s.command.capacity:
            assert old.ticket not in s.in_line, f"{old.ticket} bars the line for ever"
            continue
        assert old.ticket in s.in_line, f"{old.ticket} was dropped from the line"
        assert s.in_line[old.ticket].place == old.place, f"{old.ticket} stands under another number"
    stayed = [e.ticket for e in s.after.line if e.place <= s.before.places]
    assert stayed == [e.ticket for e in s.before.line if e.ticket in set(stayed)], "the order of the line changed"


def nobody_passes(s: Step) -> None:
    """Whoever is let in goes before nobody who was there earlier, listens, and has been heard."""
    order = [e.ticket for e in (*s.put_back(), *s.before.line)]
    for x in s.admitted:
        newcomer = x.ticket == s.asker and s.entering and x.ticket not in order
        if newcomer and not s.command.fair:  # type: ignore[union-attr]
            continue
        ahead = order if newcomer else order[: order.index(x.ticket)] if x.ticket in order else []
        for ticket in ahead:
            if y := s.in_line.get(ticket):
                assert s.may_be_passed(y), f"{x.ticket} passed {ticket}"
                assert y.passed, f"it is not remembered that {x.ticket} passed {ticket}"


def the_deaf_go_first_only_when_all_are_deaf(s: Step) -> None:
    for x in s.admitted:
        old = s.was_in_line.get(x.ticket)
        polled = s.entering and x.ticket == s.asker
        if old and not polled and x.ticket in s.deaf and old.passed != HEARD:
            for y in s.after.line:
                newcomer = y.ticket == s.asker and y.place > s.before.places
                assert newcomer or s.may_be_passed(y), f"{x.ticket} is deaf and was let in although {y.ticket} listens"
                earlier = y.place < x.place and y.ticket in s.was_in_line
                assert not earlier or y.passed == SILENT, f"{x.ticket} was let in before {y.ticket}, both deaf"


def the_silent_wait_until_they_poll(s: Step) -> None:
    for x in s.admitted:
        old = s.was_in_line.get(x.ticket)
        if old and old.passed == SILENT:
            assert s.entering and s.asker == x.ticket, f"{x.ticket} was let in before it was heard"
    for y in s.after.line:
        if s.entering and y.ticket == s.asker:
            assert y.passed != SILENT, f"{y.ticket} has polled and is still taken for silent"
            old = s.was_in_line.get(y.ticket)
            if old and y.place == old.place and old.passed:
                assert y.passed == HEARD, f"{y.ticket} polled after being passed over, and that is forgotten"


def the_passed_over_are_remembered(s: Step) -> None:
    """Or one whom nobody hears would be passed over again although it polls."""
    for y in s.after.line:
        old = s.was_in_line.get(y.ticket)
        if old and old.place == y.place and old.passed:
            assert y.passed, f"it is forgotten that {y.ticket} was passed over"
            if old.passed == HEARD:
                assert y.passed == HEARD, f"it is forgotten that {y.ticket} was heard"


def the_first_who_listens_does_not_fit(s: Step) -> None:
    room = s.after.capacity - sum(e.weight for e in s.after.inside)
    awake = [e for e in s.after.line if e.passed != SILENT]
    hearing = [e for e in awake if not s.may_be_passed(e)]
    for first in (hearing or awake)[:1]:
        assert first.weight > room, f"{first.ticket} fits and was left standing"


def a_lost_turn_is_not_a_lost_place(s: Step) -> None:
    """Unsure, the window over, the patience not: back to the head under a new number; otherwise out."""
    back = []
    for old in s.put_back():
        if s.removed(old.ticket) or (isinstance(s.command, Resize) and old.weight > s.command.capacity):
            continue
        if old.ticket in s.inside:
            assert old.ticket == s.asker, f"{old.ticket} sits on although its window is over"
            continue
        assert old.ticket in s.in_line, f"{old.ticket} lost its place with its turn"
        assert s.in_line[old.ticket].place > s.before.places, "an old number: old pushes would count"
        if not (s.entering and old.ticket == s.asker):
            assert s.in_line[old.ticket].passed == SILENT, f"{old.ticket} had its turn and is not passed over"
            until = min(old.since, s.now) + old.patience
            assert s.in_line[old.ticket].expires == until, f"the patience of {old.ticket} changed with its turn"
        back.append(old.ticket)
    assert [e.ticket for e in s.after.line[: len(back)]] == back, "not at the head of the line"
    for new in s.after.line[len(back) :]:
        assert new.place <= s.before.places or new.ticket == s.asker, f"{new.ticket} should not have come back"


def the_patience_goes_along_into_the_window(s: Step) -> None:
    for new in s.admitted:
        old = s.was_in_line.get(new.ticket)
        if old and new.place == old.place and not new.sure:
            left = min(old.expires, s.now + old.patience) - s.now
            assert new.patience == left, f"what was left of the patience of {new.ticket} is forgotten"


def the_patience_fits_the_answer(s: Step) -> None:
    """Three times as long as the client may sleep, who knows nothing but `ahead`."""
    if isinstance(s.reply, Waiting):
        e = s.after.line[s.reply.ahead]
        assert e.ticket == s.asker
        assert e.place == s.reply.place
        unsure = tuple(x for x in s.after.inside if not x.sure)
        ahead = s.after.line[:1] + unsure if s.reply.ahead else s.after.inside
        soon = min([x.expires for x in ahead]) - s.now
        if e.lease < WINDOW:
            soon = min(soon, e.lease // 2 * (s.reply.ahead + 1))
        assert s.reply.retry_in == max(soon, 1), "not the time when those directly ahead expire"
        sleep = min(WINDOW // 2 * (s.reply.ahead + 1), 10 * SECOND)
        assert e.expires == s.now + 3 * sleep == s.now + e.patience, "patience and sleep do not fit together"


# -- ends


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
        if old and foreign and not s.over(old):
            assert c.ticket in s.inside, "a Leave of another fence was honoured"
            assert s.reply == Left(False)
        elif old and not s.over(old):
            assert c.ticket not in s.inside
            assert s.reply == Left(not s.buried(c.ticket))
        else:
            assert s.reply == Left(False), "it held nothing, or nothing any more"
        assert c.ticket not in s.in_line
        assert c.ticket not in s.inside or (old and foreign)
    if isinstance(c, Evict):
        for ticket in [c.ticket] if c.ticket else []:
            assert ticket not in s.in_line
            if c.at_once:
                assert ticket not in s.inside
            elif (old := s.was_inside.get(ticket)) and not s.over(old):
                assert ticket in s.inside, "evicted mildly, and out"


# -- replies


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
        idle = not s.after.inside and not s.after.line and not s.after.fixed
        other = c.capacity not in (0, s.after.capacity) and not idle
        assert other or not 1 <= c.weight <= (c.capacity or s.after.capacity), "a mismatch where all matches"
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
        assert c.capacity in (0, s.after.capacity), "let in under another capacity"


def capacity_changes_only_by_resize_or_when_idle(s: Step) -> None:
    if isinstance(s.command, Resize):
        assert (s.after.capacity, s.after.fixed) == (s.command.capacity, True)
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
    assert sorted(s.woken) == sorted(wakes), f"woken {s.woken} instead of {wakes}"


def those_evicted_or_dropped_are_told_of(s: Step) -> None:
    c = s.command
    if isinstance(c, Evict):
        told = s.reply.tickets if isinstance(s.reply, Done) else ()
        there = {e.ticket for e in (*s.before.inside, *s.before.line) if not s.over(e)}
        must = there & {c.ticket} if c.ticket else {e.ticket for e in s.before.inside if not s.over(e)}
        assert must <= set(told)
    if isinstance(c, Resize):
        heavy = {e.ticket for e in s.before.line if e.weight > c.capacity and not s.over(e)} - set(s.inside)
        assert isinstance(s.reply, Done) and heavy <= set(s.reply.tickets)


# -- the record as such


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


Law = Callable[[Step], None]
LAWS: tuple[Law, ...] = (
    capacity_is_kept,
    a_living_seat_stays,
    only_its_holder_lengthens_a_seat,
    a_seat_is_what_was_asked_for,
    the_asker_is_sure_and_others_have_the_window,
    fences_rise,
    the_living_keep_their_place,
    nobody_passes,
    the_deaf_go_first_only_when_all_are_deaf,
    the_silent_wait_until_they_poll,
    the_passed_over_are_remembered,
    the_first_who_listens_does_not_fit,
    a_lost_turn_is_not_a_lost_place,
    the_patience_goes_along_into_the_window,
    the_patience_fits_the_answer,
    the_expired_and_the_dead_are_gone,
    an_expired_seat_is_renewed_only_if_nobody_waits,
    the_buried_stay_away,
    whoever_asks_to_be_buried_is,
    leaving_leaves,
    a_renewal_never_creates,
    entering_is_answered_as_the_table_says,
    capacity_changes_only_by_resize_or_when_idle,
    exactly_the_newly_admitted_are_woken,
    those_evicted_or_dropped_are_told_of,
    nothing_lasts_longer_than_its_span,
    everybody_is_in_one_place,
    the_same_command_again_changes_nothing,
)


def check(step: Step) -> None:
    for law in LAWS:
        try:
            law(step)
        except AssertionError as broken:
            raise Broken(law.__name__, step, broken) from None

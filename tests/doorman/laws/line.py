"""Laws about the line: places, turns, who may be passed over, patience."""

from holdfast.doorman import WINDOW, Resize, Waiting
from holdfast.doorman.record import HEARD, SILENT
from tests.doorman.door import SECOND
from tests.doorman.step import Step


def the_living_keep_their_place(s: Step) -> None:
    """Nobody who lives is dropped from the line, and nobody's turn changes."""
    for old in s.before.line:
        polled = s.entering and old.ticket == s.asker
        if s.is_dead(old) or (s.over(old) and not polled) or s.removed(old.ticket):
            continue
        if old.ticket in s.inside:
            assert s.inside[old.ticket].place == old.place
            continue
        if isinstance(s.command, Resize) and old.weight > s.after.capacity:
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
        if s.removed(old.ticket) or (isinstance(s.command, Resize) and old.weight > s.after.capacity):
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

"""Laws about the queue: places, turns, who may be passed over, poll_ttl."""

from fairlock.rules.locks import CONFIRM_WINDOW, Queued, Resize
from fairlock.rules.locks.state import POLLED, SILENT
from tests.lock_rules.resource import SECOND
from tests.lock_rules.step import Step


def the_living_keep_their_place(s: Step) -> None:
    """Nobody who lives is dropped from the queue, and nobody's turn changes."""
    for old in s.before.queue:
        polled = s.acquiring and old.ticket == s.sender
        if s.is_dead(old) or (s.over(old) and not polled) or s.removed(old.ticket):
            continue
        if old.ticket in s.holders:
            assert s.holders[old.ticket].place == old.place
            continue
        if isinstance(s.command, Resize) and old.weight > s.after.capacity:
            assert old.ticket not in s.in_queue, f"{old.ticket} bars the queue forever"
            continue
        assert old.ticket in s.in_queue, f"{old.ticket} was dropped from the queue"
        assert s.in_queue[old.ticket].place == old.place, f"{old.ticket} stands under another number"
    stayed = [e.ticket for e in s.after.queue if e.place <= s.before.places]
    assert stayed == [e.ticket for e in s.before.queue if e.ticket in set(stayed)], "the order of the queue changed"


def nobody_passes(s: Step) -> None:
    """A client that is granted never passes one that came earlier, is reachable, and is not silent."""
    order = [e.ticket for e in (*s.put_back(), *s.before.queue)]
    for x in s.admitted:
        newcomer = x.ticket == s.sender and s.acquiring and x.ticket not in order
        if newcomer and not s.command.fair:  # type: ignore[union-attr]
            continue
        ahead = order if newcomer else order[: order.index(x.ticket)] if x.ticket in order else []
        for ticket in ahead:
            if y := s.in_queue.get(ticket):
                assert s.may_be_passed(y), f"{x.ticket} passed {ticket}"
                assert y.passed, f"it is not remembered that {x.ticket} passed {ticket}"


def the_unreachable_go_first_only_when_all_are_unreachable(s: Step) -> None:
    for x in s.admitted:
        old = s.was_in_line.get(x.ticket)
        polled = s.acquiring and x.ticket == s.sender
        if old and not polled and x.ticket in s.unreachable and old.passed != POLLED:
            for y in s.after.queue:
                newcomer = y.ticket == s.sender and y.place > s.before.places
                assert newcomer or s.may_be_passed(y), (
                    f"{x.ticket} is unreachable and was let in although {y.ticket} listens"
                )
                earlier = y.place < x.place and y.ticket in s.was_in_line
                assert not earlier or y.passed == SILENT, f"{x.ticket} was let in before {y.ticket}, both unreachable"


def the_silent_wait_until_they_poll(s: Step) -> None:
    for x in s.admitted:
        old = s.was_in_line.get(x.ticket)
        if old and old.passed == SILENT:
            assert s.acquiring and s.sender == x.ticket, f"{x.ticket} was let in before it was heard"
    for y in s.after.queue:
        if s.acquiring and y.ticket == s.sender:
            assert y.passed != SILENT, f"{y.ticket} has polled and is still taken for silent"
            old = s.was_in_line.get(y.ticket)
            if old and y.place == old.place and old.passed:
                assert y.passed == POLLED, f"{y.ticket} polled after being passed over, and that is forgotten"


def the_passed_over_are_remembered(s: Step) -> None:
    """Otherwise a client that no wake-up reaches would be passed over again although it polls."""
    for y in s.after.queue:
        old = s.was_in_line.get(y.ticket)
        if old and old.place == y.place and old.passed:
            assert y.passed, f"it is forgotten that {y.ticket} was passed over"
            if old.passed == POLLED:
                assert y.passed == POLLED, f"it is forgotten that {y.ticket} polled"


def the_first_who_listens_does_not_fit(s: Step) -> None:
    room = s.after.capacity - sum(e.weight for e in s.after.holders)
    awake = [e for e in s.after.queue if e.passed != SILENT]
    hearing = [e for e in awake if not s.may_be_passed(e)]
    for first in (hearing or awake)[:1]:
        assert first.weight > room, f"{first.ticket} fits and was left standing"


def a_lost_turn_is_not_a_lost_place(s: Step) -> None:
    """Unconfirmed, the window over, the poll_ttl not: back to the head under a new number; otherwise out."""
    back = []
    for old in s.put_back():
        if s.removed(old.ticket) or (isinstance(s.command, Resize) and old.weight > s.after.capacity):
            continue
        if old.ticket in s.holders:
            assert old.ticket == s.sender, f"{old.ticket} sits on although its window is over"
            continue
        assert old.ticket in s.in_queue, f"{old.ticket} lost its place with its turn"
        assert s.in_queue[old.ticket].place > s.before.places, "an old number: old pushes would count"
        if not (s.acquiring and old.ticket == s.sender):
            assert s.in_queue[old.ticket].passed == SILENT, f"{old.ticket} had its turn and is not passed over"
            until = min(old.since, s.now) + old.poll_ttl
            assert s.in_queue[old.ticket].expires == until, f"the poll_ttl of {old.ticket} changed with its turn"
        back.append(old.ticket)
    assert [e.ticket for e in s.after.queue[: len(back)]] == back, "not at the head of the queue"
    for new in s.after.queue[len(back) :]:
        assert new.place <= s.before.places or new.ticket == s.sender, f"{new.ticket} should not have come back"


def the_poll_ttl_goes_along_into_the_window(s: Step) -> None:
    for new in s.admitted:
        old = s.was_in_line.get(new.ticket)
        if old and new.place == old.place and not new.confirmed:
            left = min(old.expires, s.now + old.poll_ttl) - s.now
            assert new.poll_ttl == left, f"what was left of the poll_ttl of {new.ticket} is forgotten"


def the_poll_ttl_fits_the_answer(s: Step) -> None:
    """Three times as long as the client may sleep, who knows nothing but `ahead`."""
    if isinstance(s.reply, Queued):
        e = s.after.queue[s.reply.ahead]
        assert e.ticket == s.sender
        assert e.place == s.reply.place
        unconfirmed = tuple(x for x in s.after.holders if not x.confirmed)
        ahead = s.after.queue[:1] + unconfirmed if s.reply.ahead else s.after.holders
        soon = min([x.expires for x in ahead]) - s.now
        if e.lease < CONFIRM_WINDOW:
            soon = min(soon, e.lease // 2 * (s.reply.ahead + 1))
        assert s.reply.retry_in == max(soon, 1), "not the time when those directly ahead expire"
        sleep = min(CONFIRM_WINDOW // 2 * (s.reply.ahead + 1), 10 * SECOND)
        assert e.expires == s.now + 3 * sleep == s.now + e.poll_ttl, "poll_ttl and sleep do not fit together"

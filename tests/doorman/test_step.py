"""One step of the doorman, sentence by sentence: the clock, the asker, the sweep, admitting, waking, graves."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.doorman import ALL, EMPTY, WINDOW, Admitted, Gone, Left, Look, Looked, NotInside, Waiting, Wake, Why
from holdfast.doorman.rules import SWEEP, patience, sleep_span
from tests.doorman.door import LEASE, SECOND, START, Door

# -- time never runs back


def test_a_clock_set_back_cuts_a_lease_to_its_own_length(door: Door) -> None:
    door.enter("a")
    door.pass_time(-3600)
    door.tick()
    assert door.seat("a").expires == door.now + LEASE


def test_a_clock_set_back_cuts_an_unsure_seat_to_the_window(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.leave("a")
    door.pass_time(-3600)
    door.tick()
    assert door.seat("b").expires == door.now + WINDOW


def test_a_clock_set_back_cuts_an_unsure_seat_with_a_short_lease_to_that(door: Door) -> None:
    door.enter("a")
    door.enter("b", lease=SECOND)
    door.leave("a")
    door.pass_time(-3600)
    door.tick()
    assert door.seat("b").expires == door.now + SECOND


def test_a_clock_set_back_cuts_a_place_in_line_to_its_patience(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.enter("c")
    door.pass_time(-3600)
    door.tick()
    assert [door.place(t).expires - door.now for t in "bc"] == [patience(0), patience(1)]


def test_a_clock_set_back_cuts_a_grave_to_its_own_span(door: Door) -> None:
    door.leave("a", bury=True)
    door.pass_time(-3600)
    door.tick()
    assert door.grave("a").until == door.now + 60 * SECOND


def test_a_clock_set_back_cuts_what_a_silent_one_has_left(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.leave("a")
    door.pass_time(-3600)
    door.pass_time(WINDOW / SECOND)
    door.tick()
    assert door.inside == ["b"]  # the window starts anew, but only once
    door.pass_time(WINDOW / SECOND)
    door.tick()
    assert (door.inside, door.line) == ([], ["b"])
    assert door.place("b").expires <= door.now + patience(0)


def test_a_clock_set_back_lengthens_nothing(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.pass_time(2)
    seat, place = door.seat("a").expires, door.place("b").expires
    door.pass_time(-1)
    door.tick()
    assert (door.seat("a").expires, door.place("b").expires) == (seat, place)


def test_a_clock_set_back_is_followed_from_then_on(door: Door) -> None:
    door.enter("a")
    door.pass_time(-3600)
    door.tick()
    assert door.record.seen == door.now
    door.pass_time(30)
    assert isinstance(door.enter("b"), Admitted)  # not 3,600 s later


def test_a_clock_set_back_gives_no_fence_twice(door: Door) -> None:
    first = door.enter("a").fence
    door.leave("a")
    door.pass_time(-3600)
    assert door.enter("b").fence == first + 1


# -- the asker first


def test_a_living_waiter_is_not_swept_by_its_own_late_poll(door: Door) -> None:
    door.enter("a")
    first = door.enter("b")
    door.enter("c")
    door.pass_time(29)
    assert door.enter("b").place == first.place
    assert door.line == ["b"]  # c has been silent longer than its patience


def test_a_poll_refreshes_the_patience(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.pass_time(1)
    door.enter("b")
    assert door.place("b").expires == door.now + patience(0)


# -- the sweep


def test_a_place_in_line_is_lost_after_its_patience(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.pass_time(patience(0) / SECOND)
    door.tick()
    assert door.line == []


def test_one_who_was_swept_from_the_line_joins_it_again_under_a_new_number(door: Door) -> None:
    door.enter("a")
    first = door.enter("b")
    door.enter("c")
    door.pass_time(4)
    door.enter("c")
    again = door.enter("b")
    assert again.place > first.place
    assert again.ahead == 1 > first.ahead


def test_any_step_sweeps_an_expired_seat_even_if_nobody_waits(door: Door) -> None:
    door.read("a")
    door.pass_time(31)
    door.read("b")
    assert door.inside == ["b"]
    assert door.renew("a") == NotInside(None)


def test_one_step_sweeps_a_bounded_number_from_the_middle_of_the_line(door: Door) -> None:
    door.enter("a", lease=3600 * SECOND)
    door.enter("head")
    for i in range(3 * SWEEP):
        door.enter(f"{i:03}")
    door.pass_time(40)
    door.enter("head")
    assert len(door.line) == 1 + 2 * SWEEP
    door.tick()
    door.tick()
    assert door.line == ["head"]


def test_a_dead_head_is_swept_however_many_have_expired(door: Door) -> None:
    door.enter("a", lease=3600 * SECOND)
    for i in range(5 * SWEEP):
        door.enter(f"{i:03}")
    door.enter("tail")
    door.pass_time(40)
    door.enter("tail")
    door.leave("a")
    assert door.inside == ["tail"]


def test_a_line_of_nothing_but_expired_ones_does_not_hold_up_a_newcomer(door: Door) -> None:
    door.enter("a")
    for i in range(5 * SWEEP):
        door.enter(f"{i:03}")
    door.pass_time(40)
    assert isinstance(door.enter("b"), Admitted)


def test_a_grave_is_swept_after_its_time(door: Door) -> None:
    door.leave("a", bury=True)
    door.pass_time(60)
    door.tick()
    assert door.record.graves == ()
    assert isinstance(door.enter("a"), Admitted)


# -- admitting


def test_the_room_that_a_sweep_makes_belongs_to_the_line_and_not_to_the_asker(door: Door) -> None:
    door.enter("a", lease=2 * SECOND)
    door.enter("b")
    door.pass_time(2)
    assert isinstance(door.enter("c", fair=False), Waiting)
    assert door.inside == ["b"]


def test_one_step_admits_as_many_as_fit(door: Door) -> None:
    door.enter("writer")
    for ticket in "abc":
        door.read(ticket)
    door.enter("second writer")
    door.read("d")
    door.leave("writer")
    assert (door.inside, door.line) == (["a", "b", "c"], ["second writer", "d"])
    assert door.hints == ["a", "b", "c"]


def test_a_heavy_head_is_not_passed_by_a_light_one(door: Door) -> None:
    door.slot("a", 2, of=3)
    door.slot("b", 1, of=3)
    door.slot("heavy", 3, of=3)
    door.slot("light", 1, of=3)
    door.leave("b")
    assert (door.inside, door.line) == (["a"], ["heavy", "light"])


def test_one_admitted_from_the_line_is_unsure_for_the_window_only(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.leave("a")
    seat = door.seat("b")
    assert (seat.sure, seat.expires, seat.since) == (False, door.now + WINDOW, door.now)


def test_one_with_a_lease_shorter_than_the_window_is_unsure_for_that(door: Door) -> None:
    door.enter("a")
    door.enter("b", lease=SECOND)
    door.leave("a")
    assert door.seat("b").expires == door.now + SECOND


def test_a_fence_is_taken_from_the_clock_so_that_it_rises_even_after_data_loss(door: Door) -> None:
    first = door.enter("a").fence
    assert first == START
    door.record = EMPTY
    door.pass_time(0.001)
    assert door.enter("b").fence > first


def test_a_fence_is_taken_from_the_clock_for_those_in_line_and_those_beside_others_too(door: Door) -> None:
    door.enter("a")
    door.read("b")
    door.pass_time(1)
    door.leave("a")
    assert door.seat("b").fence == door.now
    door.pass_time(1)
    assert door.read("c").fence == door.now


def test_two_grants_in_one_microsecond_have_two_fences(door: Door) -> None:
    assert [door.read(t).fence - START for t in "abc"] == [0, 1, 2]


def test_a_grant_reserves_its_whole_block(door: Door) -> None:
    first = door.enter("a", block=32).fence
    assert door.record.fence == first + 31
    door.leave("a")
    assert door.enter("b").fence == first + 32


def test_a_grant_from_the_line_reserves_its_whole_block(door: Door) -> None:
    door.enter("a")
    door.enter("b", block=32)
    door.leave("a")
    assert door.record.fence == door.seat("b").fence + 31


def test_a_block_is_for_those_who_weigh_all_of_it(door: Door) -> None:
    first = door.read("a", block=32).fence
    assert door.record.fence == first


def test_the_block_is_reserved_as_asked_whatever_the_capacity_is_at_the_grant(door: Door) -> None:
    door.slot("a", 2, of=2)
    door.slot("b", 2, of=2, block=32)
    door.resize(3)
    door.leave("a")
    assert door.record.fence == door.seat("b").fence + 31


def test_a_block_of_nothing_still_takes_a_fence_of_its_own(door: Door) -> None:
    fences = []
    for ticket, waiting in ("ab", "cd"):
        fences.append(door.enter(ticket, block=0).fence)
        door.enter(waiting, block=0)
        door.leave(ticket)
        fences.append(door.seat(waiting).fence)
        door.leave(waiting)
    assert len(set(fences)) == 4


# -- waking


def test_a_wake_names_ear_place_and_fence_of_the_grant(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    place = door.enter("c").place
    door.leave("b")
    door.leave("a")
    assert door.woken == (Wake("ear of c", "c", place, door.seat("c").fence),)


def test_nobody_is_woken_twice_for_one_grant(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.leave("a")
    door.tick()
    assert door.woken == ()
    door.renew("b")
    assert door.woken == ()


def test_one_admitted_and_gone_in_the_same_step_is_not_woken(door: Door) -> None:
    door.enter("a", lease=2 * SECOND)
    door.enter("b")
    door.enter("c")
    door.pass_time(2)
    assert door.leave("b") == Left(False)  # the sweep had let it in, but it was never told
    assert door.hints == ["c"]


def test_one_admitted_and_evicted_in_the_same_step_is_told_once_and_of_no_grant(door: Door) -> None:
    door.enter("a", lease=2 * SECOND)
    door.enter("b")
    door.pass_time(2)
    door.evict(None)
    assert door.woken == (Wake("ear of b", "b"),)


def test_one_dropped_is_woken_with_no_fence(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.evict("b")
    assert door.woken == (Wake("ear of b", "b"),)


# -- patience, and when to look again


@pytest.mark.parametrize("ahead, seconds", [(0, 1), (1, 2), (4, 5), (9, 10), (10, 10), (500, 10)])
def test_a_waiter_sleeps_longer_the_further_back_it_stands(ahead: int, seconds: int) -> None:
    assert sleep_span(ahead) == seconds * SECOND
    assert patience(ahead) == 3 * sleep_span(ahead)


def test_the_patience_fits_the_place_in_line(door: Door) -> None:
    door.enter("holder")
    for i in range(12):
        ahead = door.enter(f"{i:02}").ahead
        place = door.place(f"{i:02}")
        assert (ahead, place.patience, place.expires) == (i, patience(i), door.now + patience(i))


def test_the_patience_fits_the_place_that_is_answered_even_if_the_step_put_others_ahead(door: Door) -> None:
    door.slot("writer", 20, of=20)
    for i in range(10):
        door.slot(f"silent {i}", 1, of=20)
    door.slot("reader", 1, of=20)
    door.slot("asker", 20, of=20)
    door.leave("writer")
    door.renew("reader")
    door.pass_time(WINDOW / SECOND)
    reply = door.slot("asker", 20, of=20)
    assert reply.ahead == 10
    assert door.place("asker").expires - door.now == patience(10)


def test_retry_in_of_the_head_is_when_the_first_seat_expires(door: Door) -> None:
    door.read("a", lease=20 * SECOND)
    door.read("b", lease=10 * SECOND)
    assert door.enter("writer").retry_in == 10 * SECOND


def test_retry_in_of_the_others_is_when_the_head_loses_its_place(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.pass_time(1)
    assert door.enter("c").retry_in == patience(0) - SECOND
    assert door.enter("d").retry_in == patience(0) - SECOND


def test_retry_in_of_the_others_is_also_when_an_unheard_one_loses_its_turn(door: Door) -> None:
    """Or a line of dead ones is noticed only as fast as their patience ends, not as fast as their turns do."""
    for ticket in "abcd":
        door.enter(ticket)
    door.leave("a")  # b is let in and has not been heard
    assert door.enter("d").retry_in == WINDOW


def test_one_with_a_lease_shorter_than_the_window_looks_more_often_or_it_would_sleep_through_its_turns(
    door: Door,
) -> None:
    door.enter("a")
    assert door.enter("b", lease=SECOND).retry_in == SECOND // 2 < sleep_span(0)
    assert door.enter("c", lease=SECOND).retry_in == SECOND < sleep_span(1)


def test_retry_in_is_never_zero(door: Door) -> None:
    door.enter("a", lease=2 * SECOND)
    door.enter("b", lease=0)
    door.enter("c")
    door.pass_time(2)
    assert door.enter("c") == Waiting(0, 2, 1)  # b is inside now, and its time is over already


# -- graves, tickets and leases


def test_a_late_enter_after_its_own_leave_puts_no_ghost_inside(door: Door) -> None:
    door.leave("a", bury=True)
    door.pass_time(59)
    assert door.enter("a") == Gone(Why("left"))
    assert (door.inside, door.line) == ([], [])


@pytest.mark.parametrize("where", ["inside", "in line", "expired"])
def test_a_grave_lasts_as_long_as_the_lease_if_that_is_longer_than_a_minute(door: Door, where: str) -> None:
    if where == "in line":
        door.enter("holder")
    door.enter("a", lease=600 * SECOND)
    if where == "expired":
        door.pass_time(601)
    door.leave("a", bury=True)
    assert door.grave("a").until == door.now + 600 * SECOND


def test_a_grave_lasts_a_minute_at_least(door: Door) -> None:
    door.enter("a", lease=SECOND)
    door.leave("a", bury=True)
    assert door.grave("a").until == door.now + 60 * SECOND


def test_a_grave_outlasts_the_lease_of_one_evicted(door: Door) -> None:
    door.enter("a", lease=600 * SECOND)
    door.evict("a")
    door.pass_time(599)
    assert isinstance(door.enter("a"), Gone)


def test_a_leave_that_is_sent_twice_does_not_lengthen_the_grave(door: Door) -> None:
    door.leave("a", bury=True)
    until = door.grave("a").until
    door.pass_time(30)
    door.leave("a", bury=True)
    assert door.grave("a").until == until


def test_without_bury_the_same_ticket_may_come_again(door: Door) -> None:
    door.enter("a")
    door.leave("a")
    assert isinstance(door.enter("a"), Admitted)


def test_one_evicted_does_not_come_back_when_grave_and_lease_have_both_run_out(door: Door) -> None:
    fence = door.enter("a").fence
    door.evict("a")
    door.pass_time(3600)  # nobody has made a step since
    assert door.renew("a", fence) == NotInside(None)
    assert door.inside == []


def test_the_lease_belongs_to_the_ticket_and_a_poll_brings_no_other(door: Door) -> None:
    door.enter("a")
    door.enter("a", lease=SECOND)
    assert door.seat("a").expires == door.now + LEASE
    door.enter("b")
    door.enter("b", lease=SECOND)
    door.leave("a")
    assert door.renew("b").left == LEASE


def test_replies_carry_durations(door: Door) -> None:
    assert door.enter("a").left == LEASE
    door.pass_time(10)
    assert door.enter("b").retry_in == LEASE - 10 * SECOND
    assert door.renew("a").left == LEASE


def test_an_unknown_outcome_is_answered_by_saying_the_same_again(door: Door) -> None:
    door.enter("a")
    sayings: list[Callable[[], Any]] = [
        lambda: door.enter("a"),
        lambda: door.enter("b"),
        lambda: door.renew("a"),
        lambda: door.leave("b"),
        lambda: door.keep("a", LEASE),
        lambda: door.evict("a"),
        lambda: door.resize(7),
    ]
    for say in sayings:
        first, record = say(), door.record
        assert say() == first or first == Left(True)
        assert door.record == record


def test_looking_changes_nothing(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    before = door.record
    door.pass_time(3600)
    assert door.say(Look()) == Looked(before)
    assert (door.record, door.woken) == (before, ())


def test_after_a_downgrade_the_old_enter_does_not_raise_the_weight_again(door: Door) -> None:
    fence = door.enter("a").fence
    door.renew("a", fence, weight=1)
    door.enter("a", weight=ALL)
    assert door.seat("a").weight == 1

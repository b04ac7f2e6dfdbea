"""One step of a lock, sentence by sentence: the clock, the sender, the sweep, grants, wake-ups, tombstones."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlock.rules.locks import (
    CONFIRM_WINDOW,
    EMPTY,
    EXCLUSIVE,
    Granted,
    NotHolder,
    Queued,
    Released,
    Revoked,
    Wakeup,
    Why,
)
from fairlock.rules.locks.step import SWEEP, poll_ttl, sleep_span
from tests.lock_rules.resource import LEASE, SECOND, START, LockUnderTest

# -- time never runs back


def test_a_clock_set_back_cuts_a_lease_to_its_own_length(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.pass_time(-3600)
    lock.tick()
    assert lock.grant("a").expires == lock.now + LEASE


def test_a_clock_set_back_cuts_an_unconfirmed_grant_to_the_window(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.leave("a")
    lock.pass_time(-3600)
    lock.tick()
    assert lock.grant("b").expires == lock.now + CONFIRM_WINDOW


def test_a_clock_set_back_cuts_an_unconfirmed_grant_with_a_short_lease_to_that(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b", lease=SECOND)
    lock.leave("a")
    lock.pass_time(-3600)
    lock.tick()
    assert lock.grant("b").expires == lock.now + SECOND


def test_a_clock_set_back_cuts_a_place_in_line_to_its_poll_ttl(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.enter("c")
    lock.pass_time(-3600)
    lock.tick()
    assert [lock.place(t).expires - lock.now for t in "bc"] == [poll_ttl(0), poll_ttl(1)]


def test_a_clock_set_back_cuts_a_tombstone_to_its_own_span(lock: LockUnderTest) -> None:
    lock.leave("a", leave_tombstone=True)
    lock.pass_time(-3600)
    lock.tick()
    assert lock.tombstone("a").until == lock.now + 60 * SECOND


def test_a_clock_set_back_cuts_what_a_silent_one_has_left(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.leave("a")
    lock.pass_time(-3600)
    lock.pass_time(CONFIRM_WINDOW / SECOND)
    lock.tick()
    assert lock.holders == ["b"]  # the window starts again, but only once
    lock.pass_time(CONFIRM_WINDOW / SECOND)
    lock.tick()
    assert (lock.holders, lock.queue) == ([], ["b"])
    assert lock.place("b").expires <= lock.now + poll_ttl(0)


def test_a_clock_set_back_lengthens_nothing(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.pass_time(2)
    grant, place = lock.grant("a").expires, lock.place("b").expires
    lock.pass_time(-1)
    lock.tick()
    assert (lock.grant("a").expires, lock.place("b").expires) == (grant, place)


def test_a_clock_set_back_is_followed_from_then_on(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.pass_time(-3600)
    lock.tick()
    assert lock.record.seen == lock.now
    lock.pass_time(30)
    assert isinstance(lock.enter("b"), Granted)  # not 3,600 s later


def test_a_clock_set_back_gives_no_fence_twice(lock: LockUnderTest) -> None:
    first = lock.enter("a").fence
    lock.leave("a")
    lock.pass_time(-3600)
    assert lock.enter("b").fence == first + 1


# -- the sender first


def test_a_living_waiter_is_not_swept_by_its_own_late_poll(lock: LockUnderTest) -> None:
    lock.enter("a")
    first = lock.enter("b")
    lock.enter("c")
    lock.pass_time(29)
    assert lock.enter("b").place == first.place
    assert lock.queue == ["b"]  # c has been silent longer than its poll_ttl


def test_a_poll_refreshes_the_poll_ttl(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.pass_time(1)
    lock.enter("b")
    assert lock.place("b").expires == lock.now + poll_ttl(0)


# -- the sweep


def test_a_place_in_line_is_lost_after_its_poll_ttl(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.pass_time(poll_ttl(0) / SECOND)
    lock.tick()
    assert lock.queue == []


def test_one_who_was_swept_from_the_line_joins_it_again_under_a_new_number(lock: LockUnderTest) -> None:
    lock.enter("a")
    first = lock.enter("b")
    lock.enter("c")
    lock.pass_time(4)
    lock.enter("c")
    again = lock.enter("b")
    assert again.place > first.place
    assert again.ahead == 1 > first.ahead


def test_any_step_sweeps_an_expired_grant_even_if_nobody_waits(lock: LockUnderTest) -> None:
    lock.read("a")
    lock.pass_time(31)
    lock.read("b")
    assert lock.holders == ["b"]
    assert lock.renew("a") == NotHolder(None)


def test_one_step_sweeps_a_bounded_number_from_the_middle_of_the_line(lock: LockUnderTest) -> None:
    lock.enter("a", lease=3600 * SECOND)
    lock.enter("head")
    for i in range(3 * SWEEP):
        lock.enter(f"{i:03}")
    lock.pass_time(40)
    lock.enter("head")
    assert len(lock.queue) == 1 + 2 * SWEEP
    lock.tick()
    lock.tick()
    assert lock.queue == ["head"]


def test_a_dead_head_is_swept_however_many_have_expired(lock: LockUnderTest) -> None:
    lock.enter("a", lease=3600 * SECOND)
    for i in range(5 * SWEEP):
        lock.enter(f"{i:03}")
    lock.enter("tail")
    lock.pass_time(40)
    lock.enter("tail")
    lock.leave("a")
    assert lock.holders == ["tail"]


def test_a_line_of_nothing_but_expired_ones_does_not_hold_up_a_newcomer(lock: LockUnderTest) -> None:
    lock.enter("a")
    for i in range(5 * SWEEP):
        lock.enter(f"{i:03}")
    lock.pass_time(40)
    assert isinstance(lock.enter("b"), Granted)


def test_a_tombstone_is_swept_after_its_time(lock: LockUnderTest) -> None:
    lock.leave("a", leave_tombstone=True)
    lock.pass_time(60)
    lock.tick()
    assert lock.record.tombstones == ()
    assert isinstance(lock.enter("a"), Granted)


# -- admitting


def test_the_room_that_a_sweep_makes_belongs_to_the_line_and_not_to_the_sender(lock: LockUnderTest) -> None:
    lock.enter("a", lease=2 * SECOND)
    lock.enter("b")
    lock.pass_time(2)
    assert isinstance(lock.enter("c", fair=False), Queued)
    assert lock.holders == ["b"]


def test_one_step_admits_as_many_as_fit(lock: LockUnderTest) -> None:
    lock.enter("writer")
    for ticket in "abc":
        lock.read(ticket)
    lock.enter("second writer")
    lock.read("d")
    lock.leave("writer")
    assert (lock.holders, lock.queue) == (["a", "b", "c"], ["second writer", "d"])
    assert lock.hints == ["a", "b", "c"]


def test_a_heavy_head_is_not_passed_by_a_light_one(lock: LockUnderTest) -> None:
    lock.slot("a", 2, of=3)
    lock.slot("b", 1, of=3)
    lock.slot("heavy", 3, of=3)
    lock.slot("light", 1, of=3)
    lock.leave("b")
    assert (lock.holders, lock.queue) == (["a"], ["heavy", "light"])


def test_one_admitted_from_the_line_is_unconfirmed_for_the_window_only(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.leave("a")
    grant = lock.grant("b")
    assert (grant.confirmed, grant.expires, grant.since) == (False, lock.now + CONFIRM_WINDOW, lock.now)


def test_one_with_a_lease_shorter_than_the_window_is_unconfirmed_for_that(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b", lease=SECOND)
    lock.leave("a")
    assert lock.grant("b").expires == lock.now + SECOND


def test_a_fence_is_taken_from_the_clock_so_that_it_rises_even_after_data_loss(lock: LockUnderTest) -> None:
    first = lock.enter("a").fence
    assert first == START
    lock.record = EMPTY
    lock.pass_time(0.001)
    assert lock.enter("b").fence > first


def test_a_fence_is_taken_from_the_clock_for_those_in_line_and_those_beside_others_too(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.read("b")
    lock.pass_time(1)
    lock.leave("a")
    assert lock.grant("b").fence == lock.now
    lock.pass_time(1)
    assert lock.read("c").fence == lock.now


def test_two_grants_in_one_microsecond_have_two_fences(lock: LockUnderTest) -> None:
    assert [lock.read(t).fence - START for t in "abc"] == [0, 1, 2]


def test_a_grant_reserves_its_whole_block(lock: LockUnderTest) -> None:
    first = lock.enter("a", block=32).fence
    assert lock.record.fence == first + 31
    lock.leave("a")
    assert lock.enter("b").fence == first + 32


def test_a_grant_from_the_line_reserves_its_whole_block(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b", block=32)
    lock.leave("a")
    assert lock.record.fence == lock.grant("b").fence + 31


def test_a_block_is_for_those_who_weigh_all_of_it(lock: LockUnderTest) -> None:
    first = lock.read("a", block=32).fence
    assert lock.record.fence == first


def test_the_block_is_reserved_as_asked_whatever_the_capacity_is_at_the_grant(lock: LockUnderTest) -> None:
    lock.slot("a", 2, of=2)
    lock.slot("b", 2, of=2, block=32)
    lock.resize(3)
    lock.leave("a")
    assert lock.record.fence == lock.grant("b").fence + 31


def test_a_block_of_nothing_still_takes_a_fence_of_its_own(lock: LockUnderTest) -> None:
    fences = []
    for ticket, waiting in ("ab", "cd", "ef"):
        if ticket == "e":
            lock.leave("z", leave_tombstone=True)  # no short cut from here on
        fences.append(lock.enter(ticket, block=0).fence)
        lock.enter(waiting, block=0)
        lock.leave(ticket)
        fences.append(lock.grant(waiting).fence)
        lock.leave(waiting)
    assert len(set(fences)) == 6


# -- waking


def test_a_wake_names_listener_place_and_fence_of_the_grant(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    place = lock.enter("c").place
    lock.leave("b")
    lock.leave("a")
    assert lock.woken == (Wakeup("listener of c", "c", place, lock.grant("c").fence),)


def test_nobody_is_woken_twice_for_one_grant(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.leave("a")
    lock.tick()
    assert lock.woken == ()
    lock.renew("b")
    assert lock.woken == ()


def test_one_admitted_and_gone_in_the_same_step_is_not_woken(lock: LockUnderTest) -> None:
    lock.enter("a", lease=2 * SECOND)
    lock.enter("b")
    lock.enter("c")
    lock.pass_time(2)
    assert lock.leave("b") == Released(False)  # the sweep had let it in, but it was never told
    assert lock.hints == ["c"]


def test_one_admitted_and_evicted_in_the_same_step_is_told_once_and_of_no_grant(lock: LockUnderTest) -> None:
    lock.enter("a", lease=2 * SECOND)
    lock.enter("b")
    lock.pass_time(2)
    lock.evict(None)
    assert lock.woken == (Wakeup("listener of b", "b"),)


def test_one_dropped_is_woken_with_no_fence(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.evict("b")
    assert lock.woken == (Wakeup("listener of b", "b"),)


# -- poll_ttl, and when to poll again


@pytest.mark.parametrize("ahead, seconds", [(0, 1), (1, 2), (4, 5), (9, 10), (10, 10), (500, 10)])
def test_a_waiter_sleeps_longer_the_further_back_it_stands(ahead: int, seconds: int) -> None:
    assert sleep_span(ahead) == seconds * SECOND
    assert poll_ttl(ahead) == 3 * sleep_span(ahead)


def test_the_poll_ttl_fits_the_place_in_line(lock: LockUnderTest) -> None:
    lock.enter("holder")
    for i in range(12):
        ahead = lock.enter(f"{i:02}").ahead
        place = lock.place(f"{i:02}")
        assert (ahead, place.poll_ttl, place.expires) == (i, poll_ttl(i), lock.now + poll_ttl(i))


def test_the_poll_ttl_fits_the_place_that_is_answered_even_if_the_step_put_others_ahead(lock: LockUnderTest) -> None:
    lock.slot("writer", 20, of=20)
    for i in range(10):
        lock.slot(f"silent {i}", 1, of=20)
    lock.slot("reader", 1, of=20)
    lock.slot("sender", 20, of=20)
    lock.leave("writer")
    lock.renew("reader")
    lock.pass_time(CONFIRM_WINDOW / SECOND)
    reply = lock.slot("sender", 20, of=20)
    assert reply.ahead == 10
    assert lock.place("sender").expires - lock.now == poll_ttl(10)


def test_retry_in_of_the_head_is_when_the_first_grant_expires(lock: LockUnderTest) -> None:
    lock.read("a", lease=20 * SECOND)
    lock.read("b", lease=10 * SECOND)
    assert lock.enter("writer").retry_in == 10 * SECOND


def test_retry_in_of_the_others_is_when_the_head_loses_its_place(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.pass_time(1)
    assert lock.enter("c").retry_in == poll_ttl(0) - SECOND
    assert lock.enter("d").retry_in == poll_ttl(0) - SECOND


def test_retry_in_of_the_others_is_also_when_an_unheard_one_loses_its_turn(lock: LockUnderTest) -> None:
    """Or a queue of dead ones is noticed only as fast as their poll_ttl ends, not as fast as their turns do."""
    for ticket in "abcd":
        lock.enter(ticket)
    lock.leave("a")  # b is let in and has not been heard
    assert lock.enter("d").retry_in == CONFIRM_WINDOW


def test_one_with_a_lease_shorter_than_the_window_looks_more_often_or_it_would_sleep_through_its_turns(
    lock: LockUnderTest,
) -> None:
    lock.enter("a")
    assert lock.enter("b", lease=SECOND).retry_in == SECOND // 2 < sleep_span(0)
    assert lock.enter("c", lease=SECOND).retry_in == SECOND < sleep_span(1)


def test_retry_in_is_never_zero(lock: LockUnderTest) -> None:
    lock.enter("a", lease=2 * SECOND)
    lock.enter("b", lease=0)
    lock.enter("c")
    lock.pass_time(2)
    assert lock.enter("c") == Queued(0, 2, 1)  # b is inside now, and its time is over already


# -- tombstones, tickets and leases


def test_a_late_enter_after_its_own_leave_puts_no_ghost_inside(lock: LockUnderTest) -> None:
    lock.leave("a", leave_tombstone=True)
    lock.pass_time(59)
    assert lock.enter("a") == Revoked(Why("left"))
    assert (lock.holders, lock.queue) == ([], [])


@pytest.mark.parametrize("where", ["holders", "in queue", "expired"])
def test_a_tombstone_lasts_as_long_as_the_lease_if_that_is_longer_than_a_minute(
    lock: LockUnderTest, where: str
) -> None:
    if where == "in queue":
        lock.enter("holder")
    lock.enter("a", lease=600 * SECOND)
    if where == "expired":
        lock.pass_time(601)
    lock.leave("a", leave_tombstone=True)
    assert lock.tombstone("a").until == lock.now + 600 * SECOND


def test_a_tombstone_lasts_a_minute_at_least(lock: LockUnderTest) -> None:
    lock.enter("a", lease=SECOND)
    lock.leave("a", leave_tombstone=True)
    assert lock.tombstone("a").until == lock.now + 60 * SECOND


def test_a_tombstone_outlasts_the_lease_of_one_evicted(lock: LockUnderTest) -> None:
    lock.enter("a", lease=600 * SECOND)
    lock.evict("a")
    lock.pass_time(599)
    assert isinstance(lock.enter("a"), Revoked)


def test_a_leave_that_is_sent_twice_does_not_lengthen_the_tombstone(lock: LockUnderTest) -> None:
    lock.leave("a", leave_tombstone=True)
    until = lock.tombstone("a").until
    lock.pass_time(30)
    lock.leave("a", leave_tombstone=True)
    assert lock.tombstone("a").until == until


def test_without_a_tombstone_the_same_ticket_may_come_again(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.leave("a")
    assert isinstance(lock.enter("a"), Granted)


def test_one_evicted_does_not_come_back_when_tombstone_and_lease_have_both_run_out(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    lock.evict("a")
    lock.pass_time(3600)  # nobody has made a step since
    assert lock.renew("a", fence) == NotHolder(None)
    assert lock.holders == []


def test_the_lease_belongs_to_the_ticket_and_a_poll_brings_no_other(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("a", lease=SECOND)
    assert lock.grant("a").expires == lock.now + LEASE
    lock.enter("b")
    lock.enter("b", lease=SECOND)
    lock.leave("a")
    assert lock.renew("b").left == LEASE


def test_replies_carry_durations(lock: LockUnderTest) -> None:
    assert lock.enter("a").left == LEASE
    lock.pass_time(10)
    assert lock.enter("b").retry_in == LEASE - 10 * SECOND
    assert lock.renew("a").left == LEASE


def test_an_unknown_outcome_is_answered_by_saying_the_same_again(lock: LockUnderTest) -> None:
    lock.enter("a")
    sayings: list[Callable[[], Any]] = [
        lambda: lock.enter("a"),
        lambda: lock.enter("b"),
        lambda: lock.renew("a"),
        lambda: lock.leave("b"),
        lambda: lock.keep("a", LEASE),
        lambda: lock.ask("a"),
        lambda: lock.evict("a"),
        lambda: lock.resize(7),
    ]
    for say in sayings:
        first, record = say(), lock.record
        assert say() == first or first == Released(True)
        assert lock.record == record


def test_after_a_downgrade_the_old_enter_does_not_raise_the_weight_again(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    lock.renew("a", fence, weight=1)
    lock.enter("a", weight=EXCLUSIVE)
    assert lock.grant("a").weight == 1

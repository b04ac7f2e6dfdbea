"""Unreachable, dead and silent waiters: which are passed over in the queue, which are swept, and how they come back."""

import pytest

from fairlock.rules.locks import CONFIRM_WINDOW, EXCLUSIVE, Granted, NotHolder, Queued, Refused, Released, Revoked, Why
from fairlock.rules.locks.step import poll_ttl
from tests.lock_rules.resource import LEASE, SECOND, LockUnderTest

WINDOW_S = CONFIRM_WINDOW / SECOND

# -- unreachable


def test_an_unreachable_one_is_passed_over_and_keeps_its_place(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("unreachable")
    lock.enter("b")
    place = lock.place("unreachable").place
    lock.unreachable = {"unreachable"}
    lock.leave("a")
    assert (lock.holders, lock.queue) == (["b"], ["unreachable"])
    assert lock.place("unreachable").place == place


def test_when_all_are_unreachable_the_head_is_admitted(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.enter("c")
    lock.unreachable = {"b", "c"}
    lock.leave("a")
    assert (lock.holders, lock.queue) == (["b"], ["c"])


def test_the_unreachable_are_not_admitted_past_a_heavy_one_who_listens(lock: LockUnderTest) -> None:
    lock.slot("a", 1, of=2)
    lock.slot("b", 1, of=2)
    lock.slot("unreachable", 1, of=2)
    lock.slot("heavy", 2, of=2)
    lock.unreachable = {"unreachable"}
    lock.leave("a")
    assert (lock.holders, lock.queue) == (["b"], ["unreachable", "heavy"])


def test_the_sender_is_never_unreachable(lock: LockUnderTest) -> None:
    lock.enter("a", lease=2 * SECOND)
    lock.enter("b")
    lock.enter("c")
    lock.unreachable = {"b"}
    lock.pass_time(2)
    assert isinstance(lock.enter("b"), Granted)
    assert lock.holders == ["b"]


def test_one_that_polled_after_being_passed_over_is_not_passed_over_again(lock: LockUnderTest) -> None:
    lock.enter("a")
    for ticket in ("unreachable", "b", "c"):
        lock.enter(ticket)
    lock.unreachable = {"unreachable"}
    lock.leave("a")
    assert lock.holders == ["b"]
    lock.enter("unreachable")
    lock.leave("b")
    assert (lock.holders, lock.queue) == (["unreachable"], ["c"])


def test_one_that_polled_before_being_passed_over_is_passed_over(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("unreachable")
    lock.enter("b")
    lock.unreachable = {"unreachable"}
    lock.enter("unreachable")
    lock.leave("a")
    assert lock.holders == ["b"]


def test_an_unreachable_one_that_hears_again_is_admitted_in_its_turn(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("unreachable")
    lock.enter("b")
    lock.enter("c")
    lock.unreachable = {"unreachable"}
    lock.leave("a")
    lock.unreachable = set()
    lock.leave("b")
    assert (lock.holders, lock.queue) == (["unreachable"], ["c"])


def test_an_unreachable_one_is_never_dropped_before_its_poll_ttl_ends(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("unreachable")
    lock.unreachable = {"unreachable"}
    lock.pass_time(2.9)
    lock.tick()
    assert lock.queue == ["unreachable"]
    lock.pass_time(0.1)
    lock.tick()
    assert lock.queue == []


def test_a_newcomer_passes_the_unreachable_whether_it_would_wait_or_not(lock: LockUnderTest) -> None:
    for wait in (True, False):
        fresh = LockUnderTest(lock.apply)
        fresh.slot("a", 1, of=2)
        fresh.slot("unreachable", 2, of=2)
        fresh.unreachable = {"unreachable"}
        assert isinstance(fresh.slot("b", 1, of=2, wait=wait), Granted)
        assert fresh.queue == ["unreachable"]


# -- dead


def test_a_dead_holder_is_swept_at_once(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.dead = {"a"}
    assert isinstance(lock.enter("b"), Granted)
    assert lock.holders == ["b"]


def test_a_dead_waiter_is_swept_at_once(lock: LockUnderTest) -> None:
    for ticket in "abcd":
        lock.enter(ticket)
    lock.dead = {"b", "c"}
    lock.leave("a")
    assert (lock.holders, lock.queue) == (["d"], [])


def test_a_dead_unconfirmed_one_does_not_go_back_to_the_line(lock: LockUnderTest) -> None:
    for ticket in "abc":
        lock.enter(ticket)
    lock.leave("a")
    lock.dead = {"b"}
    lock.tick()
    assert (lock.holders, lock.queue) == (["c"], [])


@pytest.mark.parametrize("before", ["unknown", "in queue", "holders"])
def test_enter_of_a_dead_ticket_is_gone(lock: LockUnderTest, before: str) -> None:
    if before == "in queue":
        lock.enter("holder")
    if before != "unknown":
        lock.enter("a")
    lock.dead = {"a"}
    assert lock.enter("a") == Revoked(Why("dead"))
    assert "a" not in lock.holders + lock.queue


def test_a_dead_ones_renewal_is_too_late(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    lock.dead = {"a"}
    assert lock.renew("a", fence) == NotHolder(None)
    assert lock.holders == []


def test_a_dead_one_does_not_count_as_waiting(lock: LockUnderTest) -> None:
    fence = lock.enter("a", lease=2 * SECOND).fence
    lock.enter("b")
    lock.dead = {"b"}
    lock.pass_time(2)
    assert isinstance(lock.renew("a", fence), Granted)


def test_dead_is_asked_at_every_step_and_leaves_no_mark(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.dead = {"a"}
    lock.tick()
    lock.dead = set()
    assert isinstance(lock.enter("a"), Granted)


def test_one_without_a_process_is_never_dead(lock: LockUnderTest) -> None:
    lock.enter("a", listener="")
    lock.enter("b", listener="")
    lock.dead = {"a", "b"}
    assert isinstance(lock.enter("a", listener=""), Granted)
    lock.pass_time(2)
    lock.enter("b", listener="")
    lock.pass_time(2)
    assert isinstance(lock.enter("b", listener=""), Queued)  # its polls count, too
    assert (lock.holders, lock.queue) == (["a"], ["b"])


def test_a_kept_grant_outlives_its_process(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.keep("a", 3600 * SECOND)
    lock.dead = {"a"}
    lock.tick()
    assert lock.holders == ["a"]
    assert isinstance(lock.renew("a"), Granted)


# -- silent: had its turn and was not heard in time


def silent_head(lock: LockUnderTest) -> None:
    """`late` had its turn and let the window run out; `b` has it now; `c` waits."""
    lock.enter("a")
    lock.enter("late")
    lock.enter("b")
    lock.enter("c")
    lock.leave("a")
    assert lock.holders == ["late"]
    lock.pass_time(WINDOW_S)
    lock.enter("c")
    assert (lock.holders, lock.queue) == (["b"], ["late", "c"])


def test_an_unconfirmed_one_whose_window_ran_out_goes_back_to_the_head_and_the_next_gets_its_turn(
    lock: LockUnderTest,
) -> None:
    silent_head(lock)


def test_one_put_back_has_a_new_place_number_and_no_fence(lock: LockUnderTest) -> None:
    lock.enter("a")
    first = lock.enter("late")
    lock.enter("b")
    lock.leave("a")
    lock.pass_time(WINDOW_S)
    lock.tick()
    assert lock.place("late").place > first.place
    assert (lock.place("late").fence, lock.place("late").confirmed) == (0, False)


def test_one_put_back_is_passed_over_until_it_polls(lock: LockUnderTest) -> None:
    silent_head(lock)
    lock.leave("b")
    assert (lock.holders, lock.queue) == (["c"], ["late"])


def test_one_put_back_that_polls_is_first_again(lock: LockUnderTest) -> None:
    silent_head(lock)
    assert lock.enter("late").ahead == 0
    lock.leave("b")
    assert (lock.holders, lock.queue) == (["late"], ["c"])


def test_one_put_back_that_polled_is_not_passed_over_as_unreachable(lock: LockUnderTest) -> None:
    silent_head(lock)
    lock.enter("late")
    lock.unreachable = {"late"}
    lock.leave("b")
    assert lock.holders == ["late"]


def test_one_put_back_lasts_only_as_long_as_its_poll_ttl_would_have(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("late")
    until = lock.place("late").expires
    lock.enter("b")
    lock.pass_time(0.5)
    lock.enter("b")
    lock.leave("a")
    lock.pass_time(WINDOW_S)
    lock.tick()
    assert lock.place("late").expires == until
    lock.pass_time(0.5)
    lock.tick()
    assert lock.queue == []


def test_an_unconfirmed_one_whose_poll_ttl_ran_out_too_is_dropped(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("late")
    lock.enter("b")
    lock.pass_time(2)
    lock.enter("b")
    lock.leave("a")
    lock.pass_time(WINDOW_S)
    lock.tick()
    assert (lock.holders, lock.queue) == (["b"], [])


def test_an_unconfirmed_one_whose_poll_ttl_ran_out_too_joins_at_the_tail_when_it_comes(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("late")
    lock.enter("b")
    lock.enter("c")
    lock.pass_time(2)
    lock.leave("a")
    lock.pass_time(WINDOW_S)
    assert isinstance(lock.enter("late"), Queued)
    assert (lock.holders, lock.queue) == (["b"], ["c", "late"])


def test_several_put_back_keep_their_order(lock: LockUnderTest) -> None:
    lock.slot("a", 2)
    for ticket in ("one", "two", "three", "four"):
        lock.slot(ticket)
    lock.leave("a")
    assert lock.holders == ["one", "two"]
    lock.pass_time(WINDOW_S)
    lock.tick()
    assert (lock.holders, lock.queue) == (["three", "four"], ["one", "two"])


def test_a_line_of_nothing_but_silent_ones_leaves_the_grant_empty(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("late")
    lock.leave("a")
    lock.pass_time(WINDOW_S)
    lock.tick()
    assert (lock.holders, lock.queue) == ([], ["late"])
    assert isinstance(lock.enter("late"), Granted)


@pytest.mark.parametrize("wait", [True, False])
def test_a_newcomer_passes_the_silent_whether_it_would_wait_or_not(lock: LockUnderTest, wait: bool) -> None:
    lock.enter("a")
    lock.enter("late")
    lock.leave("a")
    lock.pass_time(WINDOW_S)
    assert isinstance(lock.enter("b", wait=wait), Granted)
    assert (lock.holders, lock.queue) == (["b"], ["late"])


def test_one_who_only_tries_does_not_pass_anybody_who_listens(lock: LockUnderTest) -> None:
    lock.slot("a", 1, of=2)
    lock.slot("unreachable", 2, of=2)
    lock.slot("b", 2, of=2)
    lock.unreachable = {"unreachable"}
    assert lock.slot("c", 1, of=2, wait=False) == Refused()
    assert lock.queue == ["unreachable", "b"]


def test_an_unconfirmed_one_that_polls_too_late_is_let_in_again_if_the_grant_is_free(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("late")
    lock.leave("a")
    fence = lock.grant("late").fence
    lock.pass_time(WINDOW_S)
    assert lock.enter("late") == Granted(fence, LEASE)  # nobody wanted the grant


def test_an_unconfirmed_one_that_polls_too_late_gets_a_new_fence_if_others_wait(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("late")
    lock.enter("b")
    lock.leave("a")
    fence = lock.grant("late").fence
    lock.pass_time(WINDOW_S)
    reply = lock.enter("late")
    assert isinstance(reply, Granted)
    assert reply.fence > fence
    assert lock.queue == ["b"]


def test_a_lost_wake_up_costs_a_turn_and_not_the_place(lock: LockUnderTest) -> None:
    silent_head(lock)
    lock.enter("late")
    lock.enter("late")
    assert lock.leave("b") == Released(True)
    assert isinstance(lock.enter("late"), Granted)


def test_an_evicted_unconfirmed_one_does_not_go_back_to_the_line(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.leave("a")
    lock.evict("b")
    lock.pass_time(WINDOW_S)
    lock.tick()
    assert (lock.holders, lock.queue) == ([], [])


def test_an_unconfirmed_one_that_a_resize_made_too_heavy_does_not_bar_the_line(lock: LockUnderTest) -> None:
    lock.slot("a", 2)
    lock.slot("heavy", 2)
    lock.leave("a")
    lock.resize(1)
    lock.pass_time(WINDOW_S)
    assert isinstance(lock.slot("b", of=1), Granted)
    assert lock.queue == []


def test_poll_ttl_grows_with_the_place_and_goes_along_into_the_window(lock: LockUnderTest) -> None:
    lock.enter("a")
    for ticket in ("b", "c", "d"):
        lock.enter(ticket)
    for ticket in ("a", "b", "c"):
        lock.leave(ticket)
    assert lock.grant("d").poll_ttl == poll_ttl(2)
    lock.pass_time(WINDOW_S)
    lock.tick()
    assert lock.place("d").expires == lock.now + poll_ttl(2) - CONFIRM_WINDOW


def test_a_reader_is_passed_over_as_a_writer_is(lock: LockUnderTest) -> None:
    lock.enter("writer")
    lock.read("unreachable reader")
    lock.read("reader")
    lock.enter("next writer", weight=EXCLUSIVE)
    lock.unreachable = {"unreachable reader"}
    lock.leave("writer")
    assert (lock.holders, lock.queue) == (["reader"], ["unreachable reader", "next writer"])

"""The deaf, the dead and the silent: who is passed over in line, who is swept, and how they come back."""

import pytest

from holdfast.doorman import ALL, WINDOW, Admitted, Gone, Left, NotInside, Refused, Waiting, Why
from holdfast.doorman.rules import patience
from tests.doorman.door import LEASE, SECOND, Door

WINDOW_S = WINDOW / SECOND

# -- deaf


def test_a_deaf_one_is_passed_over_and_keeps_its_place(door: Door) -> None:
    door.enter("a")
    door.enter("deaf")
    door.enter("b")
    place = door.place("deaf").place
    door.deaf = {"deaf"}
    door.leave("a")
    assert (door.inside, door.line) == (["b"], ["deaf"])
    assert door.place("deaf").place == place


def test_when_all_are_deaf_the_head_is_admitted(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.enter("c")
    door.deaf = {"b", "c"}
    door.leave("a")
    assert (door.inside, door.line) == (["b"], ["c"])


def test_the_deaf_are_not_admitted_past_a_heavy_one_who_listens(door: Door) -> None:
    door.slot("a", 1, of=2)
    door.slot("b", 1, of=2)
    door.slot("deaf", 1, of=2)
    door.slot("heavy", 2, of=2)
    door.deaf = {"deaf"}
    door.leave("a")
    assert (door.inside, door.line) == (["b"], ["deaf", "heavy"])


def test_the_asker_is_never_deaf(door: Door) -> None:
    door.enter("a", lease=2 * SECOND)
    door.enter("b")
    door.enter("c")
    door.deaf = {"b"}
    door.pass_time(2)
    assert isinstance(door.enter("b"), Admitted)
    assert door.inside == ["b"]


def test_one_that_polled_after_being_passed_over_is_not_passed_over_again(door: Door) -> None:
    door.enter("a")
    for ticket in ("deaf", "b", "c"):
        door.enter(ticket)
    door.deaf = {"deaf"}
    door.leave("a")
    assert door.inside == ["b"]
    door.enter("deaf")
    door.leave("b")
    assert (door.inside, door.line) == (["deaf"], ["c"])


def test_one_that_polled_before_being_passed_over_is_passed_over(door: Door) -> None:
    door.enter("a")
    door.enter("deaf")
    door.enter("b")
    door.deaf = {"deaf"}
    door.enter("deaf")
    door.leave("a")
    assert door.inside == ["b"]


def test_a_deaf_one_that_hears_again_is_admitted_in_its_turn(door: Door) -> None:
    door.enter("a")
    door.enter("deaf")
    door.enter("b")
    door.enter("c")
    door.deaf = {"deaf"}
    door.leave("a")
    door.deaf = set()
    door.leave("b")
    assert (door.inside, door.line) == (["deaf"], ["c"])


def test_a_deaf_one_is_never_dropped_before_its_patience_ends(door: Door) -> None:
    door.enter("a")
    door.enter("deaf")
    door.deaf = {"deaf"}
    door.pass_time(2.9)
    door.tick()
    assert door.line == ["deaf"]
    door.pass_time(0.1)
    door.tick()
    assert door.line == []


def test_a_newcomer_passes_the_deaf_whether_it_would_wait_or_not(door: Door) -> None:
    for wait in (True, False):
        fresh = Door(door.apply)
        fresh.slot("a", 1, of=2)
        fresh.slot("deaf", 2, of=2)
        fresh.deaf = {"deaf"}
        assert isinstance(fresh.slot("b", 1, of=2, wait=wait), Admitted)
        assert fresh.line == ["deaf"]


# -- dead


def test_a_dead_holder_is_swept_at_once(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.dead = {"a"}
    assert isinstance(door.enter("b"), Admitted)
    assert door.inside == ["b"]


def test_a_dead_waiter_is_swept_at_once(door: Door) -> None:
    for ticket in "abcd":
        door.enter(ticket)
    door.dead = {"b", "c"}
    door.leave("a")
    assert (door.inside, door.line) == (["d"], [])


def test_a_dead_unsure_one_does_not_go_back_to_the_line(door: Door) -> None:
    for ticket in "abc":
        door.enter(ticket)
    door.leave("a")
    door.dead = {"b"}
    door.tick()
    assert (door.inside, door.line) == (["c"], [])


@pytest.mark.parametrize("before", ["unknown", "in line", "inside"])
def test_enter_of_a_dead_ticket_is_gone(door: Door, before: str) -> None:
    if before == "in line":
        door.enter("holder")
    if before != "unknown":
        door.enter("a")
    door.dead = {"a"}
    assert door.enter("a") == Gone(Why("dead"))
    assert "a" not in door.inside + door.line


def test_a_dead_ones_renewal_is_too_late(door: Door) -> None:
    fence = door.enter("a").fence
    door.dead = {"a"}
    assert door.renew("a", fence) == NotInside(None)
    assert door.inside == []


def test_a_dead_one_does_not_count_as_waiting(door: Door) -> None:
    fence = door.enter("a", lease=2 * SECOND).fence
    door.enter("b")
    door.dead = {"b"}
    door.pass_time(2)
    assert isinstance(door.renew("a", fence), Admitted)


def test_dead_is_asked_at_every_step_and_leaves_no_mark(door: Door) -> None:
    door.enter("a")
    door.dead = {"a"}
    door.tick()
    door.dead = set()
    assert isinstance(door.enter("a"), Admitted)


def test_one_without_a_process_is_never_dead(door: Door) -> None:
    door.enter("a", ear="")
    door.enter("b", ear="")
    door.dead = {"a", "b"}
    assert isinstance(door.enter("a", ear=""), Admitted)
    door.pass_time(2)
    door.enter("b", ear="")
    door.pass_time(2)
    assert isinstance(door.enter("b", ear=""), Waiting)  # its polls count, too
    assert (door.inside, door.line) == (["a"], ["b"])


def test_a_kept_seat_outlives_its_process(door: Door) -> None:
    door.enter("a")
    door.keep("a", 3600 * SECOND)
    door.dead = {"a"}
    door.tick()
    assert door.inside == ["a"]
    assert isinstance(door.renew("a"), Admitted)


# -- silent: had its turn and was not heard in time


def silent_head(door: Door) -> None:
    """`late` had its turn and let the window run out; `b` has it now; `c` waits."""
    door.enter("a")
    door.enter("late")
    door.enter("b")
    door.enter("c")
    door.leave("a")
    assert door.inside == ["late"]
    door.pass_time(WINDOW_S)
    door.enter("c")
    assert (door.inside, door.line) == (["b"], ["late", "c"])


def test_an_unsure_one_whose_window_ran_out_goes_back_to_the_head_and_the_next_gets_its_turn(door: Door) -> None:
    silent_head(door)


def test_one_put_back_has_a_new_place_number_and_no_fence(door: Door) -> None:
    door.enter("a")
    first = door.enter("late")
    door.enter("b")
    door.leave("a")
    door.pass_time(WINDOW_S)
    door.tick()
    assert door.place("late").place > first.place
    assert (door.place("late").fence, door.place("late").sure) == (0, False)


def test_one_put_back_is_passed_over_until_it_polls(door: Door) -> None:
    silent_head(door)
    door.leave("b")
    assert (door.inside, door.line) == (["c"], ["late"])


def test_one_put_back_that_polls_is_first_again(door: Door) -> None:
    silent_head(door)
    assert door.enter("late").ahead == 0
    door.leave("b")
    assert (door.inside, door.line) == (["late"], ["c"])


def test_one_put_back_that_polled_is_not_passed_over_as_deaf(door: Door) -> None:
    silent_head(door)
    door.enter("late")
    door.deaf = {"late"}
    door.leave("b")
    assert door.inside == ["late"]


def test_one_put_back_lasts_only_as_long_as_its_patience_would_have(door: Door) -> None:
    door.enter("a")
    door.enter("late")
    until = door.place("late").expires
    door.enter("b")
    door.pass_time(0.5)
    door.enter("b")
    door.leave("a")
    door.pass_time(WINDOW_S)
    door.tick()
    assert door.place("late").expires == until
    door.pass_time(0.5)
    door.tick()
    assert door.line == []


def test_an_unsure_one_whose_patience_ran_out_too_is_dropped(door: Door) -> None:
    door.enter("a")
    door.enter("late")
    door.enter("b")
    door.pass_time(2)
    door.enter("b")
    door.leave("a")
    door.pass_time(WINDOW_S)
    door.tick()
    assert (door.inside, door.line) == (["b"], [])


def test_an_unsure_one_whose_patience_ran_out_too_joins_at_the_tail_when_it_comes(door: Door) -> None:
    door.enter("a")
    door.enter("late")
    door.enter("b")
    door.enter("c")
    door.pass_time(2)
    door.leave("a")
    door.pass_time(WINDOW_S)
    assert isinstance(door.enter("late"), Waiting)
    assert (door.inside, door.line) == (["b"], ["c", "late"])


def test_several_put_back_keep_their_order(door: Door) -> None:
    door.slot("a", 2)
    for ticket in ("one", "two", "three", "four"):
        door.slot(ticket)
    door.leave("a")
    assert door.inside == ["one", "two"]
    door.pass_time(WINDOW_S)
    door.tick()
    assert (door.inside, door.line) == (["three", "four"], ["one", "two"])


def test_a_line_of_nothing_but_silent_ones_leaves_the_seat_empty(door: Door) -> None:
    door.enter("a")
    door.enter("late")
    door.leave("a")
    door.pass_time(WINDOW_S)
    door.tick()
    assert (door.inside, door.line) == ([], ["late"])
    assert isinstance(door.enter("late"), Admitted)


@pytest.mark.parametrize("wait", [True, False])
def test_a_newcomer_passes_the_silent_whether_it_would_wait_or_not(door: Door, wait: bool) -> None:
    door.enter("a")
    door.enter("late")
    door.leave("a")
    door.pass_time(WINDOW_S)
    assert isinstance(door.enter("b", wait=wait), Admitted)
    assert (door.inside, door.line) == (["b"], ["late"])


def test_one_who_only_tries_does_not_pass_anybody_who_listens(door: Door) -> None:
    door.slot("a", 1, of=2)
    door.slot("deaf", 2, of=2)
    door.slot("b", 2, of=2)
    door.deaf = {"deaf"}
    assert door.slot("c", 1, of=2, wait=False) == Refused()
    assert door.line == ["deaf", "b"]


def test_an_unsure_one_that_polls_too_late_is_let_in_again_if_the_seat_is_free(door: Door) -> None:
    door.enter("a")
    door.enter("late")
    door.leave("a")
    fence = door.seat("late").fence
    door.pass_time(WINDOW_S)
    assert door.enter("late") == Admitted(fence, LEASE)  # nobody wanted the seat


def test_an_unsure_one_that_polls_too_late_gets_a_new_fence_if_others_wait(door: Door) -> None:
    door.enter("a")
    door.enter("late")
    door.enter("b")
    door.leave("a")
    fence = door.seat("late").fence
    door.pass_time(WINDOW_S)
    reply = door.enter("late")
    assert isinstance(reply, Admitted)
    assert reply.fence > fence
    assert door.line == ["b"]


def test_a_lost_wake_up_costs_a_turn_and_not_the_place(door: Door) -> None:
    silent_head(door)
    door.enter("late")
    door.enter("late")
    assert door.leave("b") == Left(True)
    assert isinstance(door.enter("late"), Admitted)


def test_an_evicted_unsure_one_does_not_go_back_to_the_line(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.leave("a")
    door.evict("b")
    door.pass_time(WINDOW_S)
    door.tick()
    assert (door.inside, door.line) == ([], [])


def test_an_unsure_one_that_a_resize_made_too_heavy_does_not_bar_the_line(door: Door) -> None:
    door.slot("a", 2)
    door.slot("heavy", 2)
    door.leave("a")
    door.resize(1)
    door.pass_time(WINDOW_S)
    assert isinstance(door.slot("b", of=1), Admitted)
    assert door.line == []


def test_patience_grows_with_the_place_and_goes_along_into_the_window(door: Door) -> None:
    door.enter("a")
    for ticket in ("b", "c", "d"):
        door.enter(ticket)
    for ticket in ("a", "b", "c"):
        door.leave(ticket)
    assert door.seat("d").patience == patience(2)
    door.pass_time(WINDOW_S)
    door.tick()
    assert door.place("d").expires == door.now + patience(2) - WINDOW


def test_a_reader_is_passed_over_as_a_writer_is(door: Door) -> None:
    door.enter("writer")
    door.read("deaf reader")
    door.read("reader")
    door.enter("next writer", weight=ALL)
    door.deaf = {"deaf reader"}
    door.leave("writer")
    assert (door.inside, door.line) == (["reader"], ["deaf reader", "next writer"])

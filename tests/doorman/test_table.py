"""What each command does to a ticket in each condition: the table of the rules, a test for every cell.

The conditions: unknown, in line, inside, expired but still in the record, left and buried, evicted.
"""

from holdfast.doorman import (
    ALL,
    Admitted,
    Done,
    Gone,
    Leave,
    Left,
    Mismatch,
    NotInside,
    Refused,
    Renew,
    Waiting,
    Wake,
    Why,
)
from tests.doorman.door import LEASE, SECOND, Door

EVICTED = Why("evicted", "ops", "stuck")
LEFT = Why("left")

# -- Enter


def test_enter_unknown_into_an_empty_room_is_admitted_and_sure(door: Door) -> None:
    reply = door.enter("a")
    assert reply == Admitted(door.seat("a").fence, LEASE)
    assert door.seat("a").sure
    assert door.seat("a").expires == door.now + LEASE
    assert door.woken == ()  # it has its answer


def test_enter_unknown_that_fits_beside_others_is_admitted(door: Door) -> None:
    door.read("a")
    assert isinstance(door.read("b"), Admitted)
    assert door.inside == ["a", "b"]


def test_enter_unknown_that_does_not_fit_goes_to_the_tail(door: Door) -> None:
    door.enter("a")
    assert door.enter("b") == Waiting(0, 1, LEASE)
    assert door.enter("c").ahead == 1
    assert door.line == ["b", "c"]


def test_enter_unknown_that_fits_but_finds_a_line_goes_to_the_tail(door: Door) -> None:
    door.read("a")
    door.enter("writer")
    assert door.read("b").ahead == 1
    assert door.line == ["writer", "b"]


def test_enter_unknown_with_fair_false_passes_the_line_if_it_fits(door: Door) -> None:
    door.read("a")
    door.enter("writer")
    assert isinstance(door.read("b", fair=False), Admitted)
    assert door.line == ["writer"]


def test_enter_unknown_with_fair_false_stands_in_line_like_all_others_if_it_does_not_fit(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    assert door.enter("c", fair=False).ahead == 1


def test_enter_unknown_without_waiting_is_refused_and_leaves_nothing(door: Door) -> None:
    door.enter("a")
    before = door.record
    assert door.enter("b", wait=False) == Refused()
    assert door.record == before


def test_enter_unknown_without_waiting_is_refused_when_it_fits_but_a_line_stands(door: Door) -> None:
    door.read("a")
    door.enter("writer")
    assert door.read("b", wait=False) == Refused()


def test_enter_unknown_heavier_than_the_capacity_is_a_mismatch(door: Door) -> None:
    assert door.slot("a", weight=3, of=2) == Mismatch(2)
    assert door.slot("a", weight=0, of=2) == Mismatch(2)
    assert door.slot("a", weight=-1, of=2) == Mismatch(2)
    assert (door.inside, door.line) == ([], [])


def test_enter_unknown_with_another_capacity_is_a_mismatch_that_says_the_true_one(door: Door) -> None:
    door.slot("a", of=2)
    assert door.slot("b", of=3) == Mismatch(2)
    assert door.inside == ["a"]


def test_enter_unknown_with_another_capacity_counts_when_nobody_is_inside_or_in_line(door: Door) -> None:
    door.slot("a", of=2)
    door.leave("a")
    assert isinstance(door.slot("b", of=3), Admitted)
    assert door.record.capacity == 3


def test_enter_unknown_with_another_capacity_counts_when_all_inside_have_expired(door: Door) -> None:
    door.slot("a", of=2)
    door.pass_time(31)
    assert isinstance(door.slot("b", of=3), Admitted)


def test_enter_with_capacity_zero_takes_what_is_stored(door: Door) -> None:
    door.slot("a", of=2)
    assert isinstance(door.slot("b", of=0), Admitted)
    assert isinstance(door.slot("c", of=0), Waiting)
    assert door.record.capacity == 2


def test_enter_with_capacity_zero_where_nothing_is_stored_is_a_mismatch(door: Door) -> None:
    assert door.slot("a", of=0) == Mismatch(0)


def test_enter_in_line_keeps_the_place(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.enter("c")
    first = door.enter("b")
    door.pass_time(1)
    again = door.enter("b")
    assert (again.ahead, again.place) == (first.ahead, first.place) == (0, 1)
    assert door.line == ["b", "c"]


def test_enter_in_line_keeps_the_place_even_if_it_would_not_wait(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    assert isinstance(door.enter("b", wait=False), Waiting)
    assert door.line == ["b"]


def test_enter_in_line_is_admitted_and_sure_when_the_seat_before_it_has_expired(door: Door) -> None:
    door.enter("a", lease=2 * SECOND)
    door.enter("b")
    door.pass_time(2)
    assert door.enter("b") == Admitted(door.seat("b").fence, LEASE)
    assert door.seat("b").sure
    assert door.woken == ()


def test_enter_inside_says_the_same_fence_again_and_starts_the_lease_anew(door: Door) -> None:
    first = door.enter("a")
    door.pass_time(10)
    assert door.enter("a") == first
    assert door.seat("a").expires == door.now + LEASE


def test_enter_inside_and_unsure_makes_it_sure_for_the_whole_lease(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.leave("a")
    assert not door.seat("b").sure
    fence = door.seat("b").fence
    door.pass_time(1)
    assert door.enter("b") == Admitted(fence, LEASE)
    assert door.seat("b").sure


def test_enter_expired_is_as_inside_when_nobody_waits(door: Door) -> None:
    first = door.enter("a")
    door.pass_time(3600)
    assert door.enter("a") == first


def test_enter_expired_is_as_unknown_when_somebody_waits(door: Door) -> None:
    door.enter("a", lease=2 * SECOND)
    door.enter("b")
    door.pass_time(2)
    assert isinstance(door.enter("a"), Waiting)
    assert (door.inside, door.line) == (["b"], ["a"])


def test_enter_left_and_buried_is_gone(door: Door) -> None:
    door.enter("a")
    door.leave("a", bury=True)
    assert door.enter("a") == Gone(LEFT)
    assert door.inside == []


def test_enter_evicted_is_gone_and_says_by_whom_and_why(door: Door) -> None:
    door.enter("a")
    expires = door.seat("a").expires
    door.pass_time(1)
    door.evict("a")
    assert door.enter("a") == Gone(EVICTED)
    assert door.seat("a").expires == expires  # not a microsecond longer


# -- Renew


def test_renew_unknown_is_not_inside_and_creates_nothing(door: Door) -> None:
    assert door.renew("a") == NotInside(None)
    assert door.renew("a", fence=7) == NotInside(None)
    assert (door.inside, door.line) == ([], [])


def test_renew_in_line_is_not_inside_and_changes_nothing(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    before = door.record
    assert door.renew("b") == NotInside(None)
    assert door.record == before


def test_renew_in_line_by_ticket_alone_is_as_inside_if_this_step_let_it_in(door: Door) -> None:
    """As it would be if it were sent again."""
    door.enter("a", lease=2 * SECOND)
    door.enter("b")
    door.pass_time(2)
    assert door.renew("b") == Admitted(door.seat("b").fence, LEASE) == door.renew("b")


def test_renew_inside_with_its_fence_starts_the_lease_anew(door: Door) -> None:
    fence = door.enter("a").fence
    door.pass_time(10)
    assert door.renew("a", fence) == Admitted(fence, LEASE)
    assert door.seat("a").expires == door.now + LEASE


def test_renew_inside_by_one_who_knows_just_the_ticket_is_enough(door: Door) -> None:
    fence = door.enter("a").fence
    assert door.renew("a") == Admitted(fence, LEASE)


def test_renew_inside_makes_an_unsure_one_sure(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.leave("a")
    fence = door.woken[0].fence
    assert door.renew("b", fence) == Admitted(fence, LEASE)
    assert door.seat("b").sure


def test_renew_inside_with_another_fence_is_not_inside(door: Door) -> None:
    fence = door.enter("a").fence
    door.pass_time(1)
    before = door.seat("a")
    assert door.renew("a", fence - 1) == NotInside(None)
    assert door.renew("a", fence + 1) == NotInside(None)
    assert door.seat("a") == before


def test_renew_names_the_first_fence_of_the_block_and_no_other(door: Door) -> None:
    fence = door.enter("a", block=32).fence
    assert door.renew("a", fence + 1) == NotInside(None)
    assert isinstance(door.renew("a", fence), Admitted)


def test_renew_may_lower_the_weight_and_then_others_fit(door: Door) -> None:
    fence = door.enter("writer").fence
    door.read("reader")
    door.renew("writer", fence, weight=1)
    assert door.inside == ["writer", "reader"]
    assert door.hints == ["reader"]


def test_renew_never_raises_the_weight(door: Door) -> None:
    fence = door.slot("a", weight=1, of=3).fence
    assert isinstance(door.renew("a", fence, weight=3), Admitted)
    assert door.seat("a").weight == 1
    door.renew("a", fence, weight=0)
    assert door.seat("a").weight == 1


def test_renew_expired_is_not_inside_when_somebody_waits(door: Door) -> None:
    fence = door.enter("a", lease=2 * SECOND).fence
    door.enter("b")
    door.pass_time(2)
    assert door.renew("a", fence) == NotInside(None)
    assert (door.inside, door.line, door.hints) == (["b"], [], ["b"])


def test_renew_expired_is_as_inside_when_nobody_waits(door: Door) -> None:
    fence = door.enter("a").fence
    door.pass_time(3600)
    assert door.renew("a", fence) == Admitted(fence, LEASE)


def test_renew_expired_is_as_inside_when_those_who_waited_are_gone_too(door: Door) -> None:
    fence = door.enter("a").fence
    door.enter("b")
    door.pass_time(3600)
    assert door.renew("a", fence) == Admitted(fence, LEASE)
    assert door.line == []


def test_renew_expired_with_another_fence_leaves_nothing_behind(door: Door) -> None:
    fence = door.enter("a").fence
    door.pass_time(31)
    assert door.renew("a", fence + 1) == NotInside(None)
    assert door.inside == []


def test_renew_left_and_buried_is_not_inside(door: Door) -> None:
    fence = door.enter("a").fence
    door.leave("a", bury=True)
    assert door.renew("a", fence) == NotInside(LEFT)


def test_renew_evicted_is_not_inside_and_says_by_whom_and_why(door: Door) -> None:
    fence = door.enter("a").fence
    door.pass_time(1)
    door.evict("a")
    before = door.seat("a")
    assert door.renew("a", fence) == NotInside(EVICTED)
    assert door.seat("a") == before


def test_renew_makes_a_lease_longer_and_never_shorter(door: Door) -> None:
    fence = door.enter("a", lease=3 * SECOND).fence
    assert door.say(Renew("a", fence, lease=10 * SECOND)) == Admitted(fence, 10 * SECOND)
    door.pass_time(1)
    assert door.say(Renew("a", fence, lease=2 * SECOND)) == Admitted(fence, 10 * SECOND)
    assert door.renew("a", fence) == Admitted(fence, 10 * SECOND)


# -- Leave


def test_leave_unknown_held_nothing(door: Door) -> None:
    assert door.leave("a") == Left(False)
    assert door.record.graves == ()


def test_leave_unknown_is_buried_if_asked_so_that_its_late_enter_finds_the_grave(door: Door) -> None:
    assert door.leave("a", bury=True) == Left(False)
    assert door.enter("a") == Gone(LEFT)


def test_leave_in_line_gives_up_the_place(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    door.enter("c")
    assert door.leave("b") == Left(False)
    assert door.line == ["c"]


def test_leave_in_line_with_any_fence_gives_up_the_place_even_if_this_step_let_it_in(door: Door) -> None:
    door.enter("a", lease=2 * SECOND)
    door.enter("b")
    door.pass_time(2)
    assert door.leave("b", fence=7) == Left(False)
    assert (door.inside, door.line) == ([], [])


def test_leave_with_a_lease_spares_what_another_client_has_extended(door: Door) -> None:
    fence = door.enter("a", lease=3 * SECOND).fence
    door.say(Renew("a", fence, lease=10 * SECOND))
    assert door.say(Leave("a", True, fence, lease=3 * SECOND)) == Left(False)
    assert (door.inside, door.record.graves) == (["a"], ())
    assert door.say(Leave("a", lease=10 * SECOND)) == Left(True)
    assert door.inside == []


def test_leave_inside_makes_room_for_the_next(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    assert door.leave("a") == Left(True)
    assert (door.inside, door.line, door.hints) == (["b"], [], ["b"])


def test_leave_inside_takes_any_fence_of_the_block(door: Door) -> None:
    fence = door.enter("a", block=32).fence
    assert door.leave("a", fence=fence + 31) == Left(True)
    assert door.inside == []


def test_leave_inside_takes_any_fence_of_the_block_while_others_are_there(door: Door) -> None:
    for again in range(2):
        fence = door.enter(f"a{again}", block=32).fence
        door.enter(f"b{again}")
        assert door.leave(f"a{again}", fence=fence + 31) == Left(True)
        assert door.inside == [f"b{again}"]
        door.leave(f"b{again}", bury=True)  # with a grave there is no short cut


def test_leave_inside_with_a_fence_that_is_not_its_own_is_not_honoured(door: Door) -> None:
    fence = door.enter("a", block=32).fence
    assert door.leave("a", fence=fence - 1) == Left(False)
    assert door.leave("a", fence=fence + 32) == Left(False)
    assert door.inside == ["a"]


def test_leave_expired_tells_the_holder_that_the_lease_had_been_lost(door: Door) -> None:
    door.enter("a")
    door.pass_time(31)
    assert door.leave("a") == Left(False)
    assert door.inside == []


def test_leave_left_and_buried_again_changes_nothing(door: Door) -> None:
    door.leave("a", bury=True)
    before = door.record
    assert door.leave("a", bury=True) == Left(False)
    assert door.record == before


def test_leave_evicted_gives_up_the_seat_and_keeps_the_grave(door: Door) -> None:
    door.enter("a")
    door.evict("a")
    assert door.leave("a") == Left(False)
    assert door.inside == []
    assert door.enter("a") == Gone(EVICTED)


# -- Keep


def test_keep_unknown_is_not_inside(door: Door) -> None:
    assert door.keep("a", LEASE) == NotInside(None)
    assert door.inside == []


def test_keep_in_line_is_not_inside(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    before = door.record
    assert door.keep("b", 10 * LEASE) == NotInside(None)
    assert door.record == before


def test_keep_inside_sets_the_lease_and_cuts_the_tie_to_the_process(door: Door) -> None:
    fence = door.enter("a").fence
    assert door.keep("a", 3600 * SECOND, fence) == Admitted(fence, 3600 * SECOND)
    seat = door.seat("a")
    assert (seat.lease, seat.expires, seat.ear) == (3600 * SECOND, door.now + 3600 * SECOND, "")


def test_keep_inside_may_shorten_the_lease(door: Door) -> None:
    door.enter("a")
    door.keep("a", 5 * SECOND)
    assert door.seat("a").expires == door.now + 5 * SECOND


def test_keep_inside_with_another_fence_is_not_inside(door: Door) -> None:
    fence = door.enter("a").fence
    assert door.keep("a", 3600 * SECOND, fence + 1) == NotInside(None)
    assert door.seat("a").lease == LEASE


def test_keep_expired_is_as_renew(door: Door) -> None:
    fence = door.enter("a", lease=2 * SECOND).fence
    door.pass_time(2)
    assert door.keep("a", LEASE, fence) == Admitted(fence, LEASE)
    door.enter("b")
    door.pass_time(30)
    door.enter("b", wait=False)  # polls, and so it lives
    assert door.keep("a", LEASE, fence) == NotInside(None)
    assert door.inside == ["b"]


def test_keep_left_and_buried_is_not_inside(door: Door) -> None:
    door.leave("a", bury=True)
    assert door.keep("a", LEASE) == NotInside(LEFT)


def test_keep_evicted_is_not_inside(door: Door) -> None:
    door.enter("a")
    door.evict("a")
    before = door.seat("a")
    assert door.keep("a", 3600 * SECOND) == NotInside(EVICTED)
    assert door.seat("a") == before


def test_keep_closed_leaves_no_owner(door: Door) -> None:
    door.slot("a", owner="web-1")
    door.slot("b", owner="web-2")
    door.keep("a", 4 * SECOND, closed=True)
    door.keep("b", 4 * SECOND)
    assert [(e.owner, e.ear) for e in door.record.inside] == [("", ""), ("web-2", "")]


# -- seats without a process: nobody leaves them, so nobody lets in the next


def test_keep_wakes_the_head_of_the_line_which_learns_when_to_look(door: Door) -> None:
    for ticket in "abcd":
        door.slot(ticket)
    assert door.slot("c").retry_in == LEASE
    door.keep("a", 4 * SECOND)
    assert door.woken == (Wake("ear of c", "c"),)
    assert door.slot("c").retry_in == 4 * SECOND


def test_keep_wakes_nobody_if_it_is_repeated_and_changes_nothing(door: Door) -> None:
    for ticket in "abc":
        door.slot(ticket)
    door.keep("a", 4 * SECOND)
    door.keep("a", 4 * SECOND)
    assert door.woken == ()
    door.keep("a", 5 * SECOND)
    assert door.hints == ["c"]


def test_one_that_becomes_the_head_beside_a_kept_seat_is_woken(door: Door) -> None:
    for ticket in "abcd":
        door.slot(ticket)
    door.keep("a", 4 * SECOND)
    door.leave("b")
    assert [(w.ticket, w.fence > 0) for w in door.woken] == [("c", True), ("d", False)]
    assert door.slot("d").retry_in == 2 * SECOND  # c has not been heard yet
    door.slot("c")
    assert door.slot("d").retry_in == 4 * SECOND
    door.tick()
    assert door.woken == ()


def test_one_that_becomes_the_head_when_a_kept_seat_is_left_to_another_is_woken(door: Door) -> None:
    door.enter("a", ear="")
    door.enter("b", ear="")
    door.enter("c")
    door.leave("a")
    assert door.hints == ["b", "c"]


def test_one_that_becomes_the_head_by_its_own_poll_is_told_by_the_answer(door: Door) -> None:
    for ticket in "abcd":
        door.slot(ticket)
    door.keep("a", 60 * SECOND)
    door.pass_time(20)  # c is silent for too long
    assert door.slot("d").ahead == 0
    assert door.woken == ()


def test_one_that_becomes_the_head_beside_those_who_live_is_not_woken(door: Door) -> None:
    for ticket in "abcd":
        door.slot(ticket)
    door.leave("b")
    assert door.hints == ["c"]


# -- Evict


def test_evict_unknown_is_buried_before_it_comes(door: Door) -> None:
    assert door.evict("a") == Done(())
    assert door.enter("a") == Gone(EVICTED)


def test_evict_in_line_removes_buries_and_wakes(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    assert door.evict("b") == Done(("b",))
    assert (door.line, door.hints) == ([], ["b"])
    assert door.enter("b") == Gone(EVICTED)


def test_evict_inside_ends_the_renewals_and_leaves_the_seat_until_the_lease_ends(door: Door) -> None:
    fence = door.enter("a").fence
    door.enter("b")
    assert door.evict("a") == Done(("a",))
    assert (door.inside, door.hints) == (["a"], ["a"])
    for _ in range(29):
        door.pass_time(1)
        assert isinstance(door.enter("b"), Waiting)
        assert door.renew("a", fence) == NotInside(EVICTED)
    door.pass_time(1)
    assert isinstance(door.enter("b"), Admitted)


def test_evict_inside_at_once_lets_the_next_one_in(door: Door) -> None:
    door.enter("a")
    door.enter("b")
    assert door.evict("a", at_once=True) == Done(("a",))
    assert (door.inside, door.line) == (["b"], [])
    assert sorted(door.hints) == ["a", "b"]
    assert door.enter("a") == Gone(EVICTED)


def test_evict_expired_is_dropped_and_buried(door: Door) -> None:
    door.enter("a")
    door.pass_time(31)
    assert door.evict("a") == Done(())
    assert door.inside == []
    assert door.enter("a") == Gone(EVICTED)


def test_evict_left_and_buried_stays_buried(door: Door) -> None:
    door.leave("a", bury=True)
    before = door.record
    door.evict("a")
    assert door.record == before


def test_evict_evicted_changes_nothing(door: Door) -> None:
    door.enter("a")
    door.evict("a")
    before = door.record
    door.evict("a")
    assert door.record == before


def test_evict_at_once_of_one_who_was_evicted_mildly_takes_the_seat_away(door: Door) -> None:
    door.enter("a")
    door.evict("a")
    door.evict("a", at_once=True)
    assert door.inside == []


def test_evict_without_a_ticket_means_all_inside_and_nobody_in_line(door: Door) -> None:
    door.slot("a")
    door.slot("b")
    door.slot("c")
    assert door.evict(None) == Done(("a", "b"))
    assert (door.inside, door.line) == (["a", "b"], ["c"])
    assert [door.enter(t) for t in ("a", "b")] == [Gone(EVICTED)] * 2
    assert isinstance(door.slot("c"), Waiting)


# -- Resize, which is about no ticket


def test_resize_leaves_those_inside_alone(door: Door) -> None:
    door.slot("a", weight=3, of=4)
    door.slot("b", of=4)
    before = door.record.inside
    assert door.resize(2) == Done(())
    assert door.record.inside == before
    assert isinstance(door.renew("a"), Admitted)
    assert isinstance(door.slot("a", weight=3, of=4), Admitted)


def test_resize_drops_and_wakes_those_in_line_who_are_too_heavy_now(door: Door) -> None:
    door.slot("a", weight=4, of=4)
    door.slot("heavy", weight=3, of=4)
    door.slot("light", weight=2, of=4)
    assert door.resize(2) == Done(("heavy",))
    assert (door.line, door.hints) == (["light"], ["heavy"])
    assert door.slot("heavy", weight=3, of=4) == Mismatch(2)


def test_resize_upwards_admits_whoever_fits_now(door: Door) -> None:
    door.slot("a", of=1)
    door.slot("b", of=1)
    door.resize(2)
    assert (door.inside, door.hints) == (["a", "b"], ["b"])


def test_resize_downwards_admits_nobody_until_enough_have_left(door: Door) -> None:
    for ticket in "abc":
        door.slot(ticket, of=3)
    door.slot("d", of=3)
    door.resize(1)
    door.leave("a")
    door.leave("b")
    assert (door.inside, door.line) == (["c"], ["d"])
    door.leave("c")
    assert door.inside == ["d"]


def test_a_capacity_set_by_resize_holds_when_nobody_is_there(door: Door) -> None:
    door.resize(2)
    assert isinstance(door.slot("a", of=3), Admitted)
    door.leave("a")
    assert isinstance(door.slot("b", of=5), Admitted)
    assert door.record.capacity == 2


def test_after_a_resize_another_number_in_an_enter_is_ignored(door: Door) -> None:
    door.slot("a", of=1)
    door.resize(2)
    assert isinstance(door.slot("b", of=1), Admitted)
    assert isinstance(door.slot("c", of=3), Waiting)
    assert isinstance(door.slot("d", of=1), Waiting)
    assert (door.inside, door.line, door.record.capacity) == (["a", "b"], ["c", "d"], 2)


def test_after_a_resize_only_a_weight_that_can_never_fit_is_a_mismatch(door: Door) -> None:
    door.resize(2)
    assert door.slot("a", weight=3, of=3) == Mismatch(2)
    door.slot("b", of=3)
    assert door.slot("a", weight=3, of=3) == Mismatch(2)
    assert door.enter("lock") == Mismatch(2)


def test_a_resize_without_a_number_gives_the_size_back_to_the_programs(door: Door) -> None:
    door.slot("a", of=2)
    door.resize(3)
    assert door.resize(None) == Done(())
    assert door.slot("b", of=2) == Mismatch(3)  # until all have left, as ever
    assert isinstance(door.slot("b", of=3), Admitted)
    door.leave("a")
    door.leave("b")
    assert isinstance(door.slot("b", of=2), Admitted)
    assert door.record.capacity == 2


def test_a_resize_without_a_number_changes_nothing_else(door: Door) -> None:
    door.slot("a", weight=2, of=2)
    door.slot("b", weight=2, of=2)
    before = door.record
    assert door.resize(None) == Done(())
    assert (door.record, door.woken) == (before, ())


def test_a_lock_is_what_weighs_everything(door: Door) -> None:
    door.enter("writer")
    assert isinstance(door.read("reader"), Waiting)
    assert door.record.capacity == ALL

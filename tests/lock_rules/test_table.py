"""What each command does to a ticket in each condition: the table of the rules, a test for every cell.

The conditions: unknown, in the queue, a holder, expired but still in the record, left with a tombstone, evicted.
"""

from fairlock.rules.locks import (
    EXCLUSIVE,
    Done,
    Granted,
    Mismatch,
    NotHolder,
    Queued,
    Refused,
    Release,
    Released,
    Renew,
    Revoked,
    Wakeup,
    Why,
)
from tests.lock_rules.resource import LEASE, SECOND, LockUnderTest

EVICTED = Why("evicted", "ops", "stuck")
LEFT = Why("left")
ASKED = Why("asked", "ops", "please")

# -- Acquire


def test_enter_unknown_into_an_empty_room_is_admitted_and_sure(lock: LockUnderTest) -> None:
    reply = lock.enter("a")
    assert reply == Granted(lock.grant("a").fence, LEASE)
    assert lock.grant("a").confirmed
    assert lock.grant("a").expires == lock.now + LEASE
    assert lock.woken == ()  # it has its answer


def test_enter_unknown_that_fits_beside_others_is_admitted(lock: LockUnderTest) -> None:
    lock.read("a")
    assert isinstance(lock.read("b"), Granted)
    assert lock.holders == ["a", "b"]


def test_enter_unknown_that_does_not_fit_goes_to_the_tail(lock: LockUnderTest) -> None:
    lock.enter("a")
    assert lock.enter("b") == Queued(0, 1, LEASE)
    assert lock.enter("c").ahead == 1
    assert lock.queue == ["b", "c"]


def test_enter_unknown_that_fits_but_finds_a_line_goes_to_the_tail(lock: LockUnderTest) -> None:
    lock.read("a")
    lock.enter("writer")
    assert lock.read("b").ahead == 1
    assert lock.queue == ["writer", "b"]


def test_enter_unknown_with_fair_false_passes_the_line_if_it_fits(lock: LockUnderTest) -> None:
    lock.read("a")
    lock.enter("writer")
    assert isinstance(lock.read("b", fair=False), Granted)
    assert lock.queue == ["writer"]


def test_enter_unknown_with_fair_false_stands_in_line_like_all_others_if_it_does_not_fit(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    assert lock.enter("c", fair=False).ahead == 1


def test_enter_unknown_without_waiting_is_refused_and_leaves_nothing(lock: LockUnderTest) -> None:
    lock.enter("a")
    before = lock.record
    assert lock.enter("b", wait=False) == Refused()
    assert lock.record == before


def test_enter_unknown_without_waiting_is_refused_when_it_fits_but_a_line_stands(lock: LockUnderTest) -> None:
    lock.read("a")
    lock.enter("writer")
    assert lock.read("b", wait=False) == Refused()


def test_enter_unknown_heavier_than_the_capacity_is_a_mismatch(lock: LockUnderTest) -> None:
    assert lock.slot("a", weight=3, of=2) == Mismatch(2)
    assert lock.slot("a", weight=0, of=2) == Mismatch(2)
    assert lock.slot("a", weight=-1, of=2) == Mismatch(2)
    assert (lock.holders, lock.queue) == ([], [])


def test_enter_unknown_with_another_capacity_is_a_mismatch_that_says_the_true_one(lock: LockUnderTest) -> None:
    lock.slot("a", of=2)
    assert lock.slot("b", of=3) == Mismatch(2)
    assert lock.holders == ["a"]


def test_enter_unknown_with_another_capacity_counts_when_nobody_is_inside_or_in_line(lock: LockUnderTest) -> None:
    lock.slot("a", of=2)
    lock.leave("a")
    assert isinstance(lock.slot("b", of=3), Granted)
    assert lock.record.capacity == 3


def test_enter_unknown_with_another_capacity_counts_when_all_inside_have_expired(lock: LockUnderTest) -> None:
    lock.slot("a", of=2)
    lock.pass_time(31)
    assert isinstance(lock.slot("b", of=3), Granted)


def test_enter_with_capacity_zero_takes_what_is_stored(lock: LockUnderTest) -> None:
    lock.slot("a", of=2)
    assert isinstance(lock.slot("b", of=0), Granted)
    assert isinstance(lock.slot("c", of=0), Queued)
    assert lock.record.capacity == 2


def test_enter_with_capacity_zero_where_nothing_is_stored_is_a_mismatch(lock: LockUnderTest) -> None:
    assert lock.slot("a", of=0) == Mismatch(0)


def test_enter_in_line_keeps_the_place(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.enter("c")
    first = lock.enter("b")
    lock.pass_time(1)
    again = lock.enter("b")
    assert (again.ahead, again.place) == (first.ahead, first.place) == (0, 1)
    assert lock.queue == ["b", "c"]


def test_enter_in_line_keeps_the_place_even_if_it_would_not_wait(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    assert isinstance(lock.enter("b", wait=False), Queued)
    assert lock.queue == ["b"]


def test_enter_in_line_is_admitted_and_sure_when_the_grant_before_it_has_expired(lock: LockUnderTest) -> None:
    lock.enter("a", lease=2 * SECOND)
    lock.enter("b")
    lock.pass_time(2)
    assert lock.enter("b") == Granted(lock.grant("b").fence, LEASE)
    assert lock.grant("b").confirmed
    assert lock.woken == ()


def test_enter_inside_says_the_same_fence_again_and_starts_the_lease_anew(lock: LockUnderTest) -> None:
    first = lock.enter("a")
    lock.pass_time(10)
    assert lock.enter("a") == first
    assert lock.grant("a").expires == lock.now + LEASE


def test_enter_inside_and_unconfirmed_makes_it_sure_for_the_whole_lease(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.leave("a")
    assert not lock.grant("b").confirmed
    fence = lock.grant("b").fence
    lock.pass_time(1)
    assert lock.enter("b") == Granted(fence, LEASE)
    assert lock.grant("b").confirmed


def test_enter_expired_is_as_inside_when_nobody_waits(lock: LockUnderTest) -> None:
    first = lock.enter("a")
    lock.pass_time(3600)
    assert lock.enter("a") == first


def test_enter_expired_is_as_unknown_when_somebody_waits(lock: LockUnderTest) -> None:
    lock.enter("a", lease=2 * SECOND)
    lock.enter("b")
    lock.pass_time(2)
    assert isinstance(lock.enter("a"), Queued)
    assert (lock.holders, lock.queue) == (["b"], ["a"])


def test_enter_left_with_a_tombstone_is_gone(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.leave("a", leave_tombstone=True)
    assert lock.enter("a") == Revoked(LEFT)
    assert lock.holders == []


def test_enter_evicted_is_gone_and_names_the_operator_and_why(lock: LockUnderTest) -> None:
    lock.enter("a")
    expires = lock.grant("a").expires
    lock.pass_time(1)
    lock.evict("a")
    assert lock.enter("a") == Revoked(EVICTED)
    assert lock.grant("a").expires == expires  # not a microsecond longer


# -- Renew


def test_renew_unknown_is_not_inside_and_creates_nothing(lock: LockUnderTest) -> None:
    assert lock.renew("a") == NotHolder(None)
    assert lock.renew("a", fence=7) == NotHolder(None)
    assert (lock.holders, lock.queue) == ([], [])


def test_renew_in_line_is_not_inside_and_changes_nothing(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    before = lock.record
    assert lock.renew("b") == NotHolder(None)
    assert lock.record == before


def test_renew_in_line_by_ticket_alone_is_as_inside_if_this_step_let_it_in(lock: LockUnderTest) -> None:
    """As it would be if it were sent again."""
    lock.enter("a", lease=2 * SECOND)
    lock.enter("b")
    lock.pass_time(2)
    assert lock.renew("b") == Granted(lock.grant("b").fence, LEASE) == lock.renew("b")


def test_renew_inside_with_its_fence_starts_the_lease_anew(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    lock.pass_time(10)
    assert lock.renew("a", fence) == Granted(fence, LEASE)
    assert lock.grant("a").expires == lock.now + LEASE


def test_renew_inside_by_one_who_knows_just_the_ticket_is_enough(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    assert lock.renew("a") == Granted(fence, LEASE)


def test_renew_inside_makes_an_unconfirmed_one_sure(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.leave("a")
    fence = lock.woken[0].fence
    assert lock.renew("b", fence) == Granted(fence, LEASE)
    assert lock.grant("b").confirmed


def test_renew_inside_with_another_fence_is_not_inside(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    lock.pass_time(1)
    before = lock.grant("a")
    assert lock.renew("a", fence - 1) == NotHolder(None)
    assert lock.renew("a", fence + 1) == NotHolder(None)
    assert lock.grant("a") == before


def test_renew_names_the_first_fence_of_the_block_and_no_other(lock: LockUnderTest) -> None:
    fence = lock.enter("a", block=32).fence
    assert lock.renew("a", fence + 1) == NotHolder(None)
    assert isinstance(lock.renew("a", fence), Granted)


def test_renew_may_lower_the_weight_and_then_others_fit(lock: LockUnderTest) -> None:
    fence = lock.enter("writer").fence
    lock.read("reader")
    lock.renew("writer", fence, weight=1)
    assert lock.holders == ["writer", "reader"]
    assert lock.hints == ["reader"]


def test_renew_never_raises_the_weight(lock: LockUnderTest) -> None:
    fence = lock.slot("a", weight=1, of=3).fence
    assert isinstance(lock.renew("a", fence, weight=3), Granted)
    assert lock.grant("a").weight == 1
    lock.renew("a", fence, weight=0)
    assert lock.grant("a").weight == 1


def test_renew_expired_is_not_inside_when_somebody_waits(lock: LockUnderTest) -> None:
    fence = lock.enter("a", lease=2 * SECOND).fence
    lock.enter("b")
    lock.pass_time(2)
    assert lock.renew("a", fence) == NotHolder(None)
    assert (lock.holders, lock.queue, lock.hints) == (["b"], [], ["b"])


def test_renew_expired_is_as_inside_when_nobody_waits(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    lock.pass_time(3600)
    assert lock.renew("a", fence) == Granted(fence, LEASE)


def test_renew_expired_is_as_inside_when_those_who_waited_are_gone_too(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    lock.enter("b")
    lock.pass_time(3600)
    assert lock.renew("a", fence) == Granted(fence, LEASE)
    assert lock.queue == []


def test_renew_expired_with_another_fence_leaves_nothing_behind(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    lock.pass_time(31)
    assert lock.renew("a", fence + 1) == NotHolder(None)
    assert lock.holders == []


def test_renew_left_with_a_tombstone_is_not_inside(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    lock.leave("a", leave_tombstone=True)
    assert lock.renew("a", fence) == NotHolder(LEFT)


def test_renew_evicted_is_not_inside_and_names_the_operator_and_why(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    lock.pass_time(1)
    lock.evict("a")
    before = lock.grant("a")
    assert lock.renew("a", fence) == NotHolder(EVICTED)
    assert lock.grant("a") == before


def test_renew_makes_a_lease_longer_and_never_shorter(lock: LockUnderTest) -> None:
    fence = lock.enter("a", lease=3 * SECOND).fence
    assert lock.say(Renew("a", fence, lease=10 * SECOND)) == Granted(fence, 10 * SECOND)
    lock.pass_time(1)
    assert lock.say(Renew("a", fence, lease=2 * SECOND)) == Granted(fence, 10 * SECOND)
    assert lock.renew("a", fence) == Granted(fence, 10 * SECOND)


# -- Release


def test_leave_unknown_held_nothing(lock: LockUnderTest) -> None:
    assert lock.leave("a") == Released(False)
    assert lock.record.tombstones == ()


def test_leave_unknown_makes_a_tombstone_if_asked_so_that_its_late_enter_finds_it(lock: LockUnderTest) -> None:
    assert lock.leave("a", leave_tombstone=True) == Released(False)
    assert lock.enter("a") == Revoked(LEFT)


def test_leave_in_line_gives_up_the_place(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    lock.enter("c")
    assert lock.leave("b") == Released(False)
    assert lock.queue == ["c"]


def test_leave_in_line_with_any_fence_gives_up_the_place_even_if_this_step_let_it_in(lock: LockUnderTest) -> None:
    lock.enter("a", lease=2 * SECOND)
    lock.enter("b")
    lock.pass_time(2)
    assert lock.leave("b", fence=7) == Released(False)
    assert (lock.holders, lock.queue) == ([], [])


def test_leave_with_a_lease_spares_what_another_client_has_extended(lock: LockUnderTest) -> None:
    fence = lock.enter("a", lease=3 * SECOND).fence
    lock.say(Renew("a", fence, lease=10 * SECOND))
    assert lock.say(Release("a", True, fence, lease=3 * SECOND)) == Released(False)
    assert (lock.holders, lock.record.tombstones) == (["a"], ())
    assert lock.say(Release("a", lease=10 * SECOND)) == Released(True)
    assert lock.holders == []


def test_leave_inside_makes_room_for_the_next(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    assert lock.leave("a") == Released(True)
    assert (lock.holders, lock.queue, lock.hints) == (["b"], [], ["b"])


def test_leave_inside_takes_any_fence_of_the_block(lock: LockUnderTest) -> None:
    fence = lock.enter("a", block=32).fence
    assert lock.leave("a", fence=fence + 31) == Released(True)
    assert lock.holders == []


def test_leave_inside_takes_any_fence_of_the_block_while_others_are_there(lock: LockUnderTest) -> None:
    for again in range(2):
        fence = lock.enter(f"a{again}", block=32).fence
        lock.enter(f"b{again}")
        assert lock.leave(f"a{again}", fence=fence + 31) == Released(True)
        assert lock.holders == [f"b{again}"]
        lock.leave(f"b{again}", leave_tombstone=True)  # with a tombstone there is no short cut


def test_leave_inside_with_a_fence_that_is_not_its_own_is_not_honoured(lock: LockUnderTest) -> None:
    fence = lock.enter("a", block=32).fence
    assert lock.leave("a", fence=fence - 1) == Released(False)
    assert lock.leave("a", fence=fence + 32) == Released(False)
    assert lock.holders == ["a"]


def test_leave_expired_tells_the_holder_that_the_lease_had_been_lost(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.pass_time(31)
    assert lock.leave("a") == Released(False)
    assert lock.holders == []


def test_leave_left_with_a_tombstone_again_changes_nothing(lock: LockUnderTest) -> None:
    lock.leave("a", leave_tombstone=True)
    before = lock.record
    assert lock.leave("a", leave_tombstone=True) == Released(False)
    assert lock.record == before


def test_leave_evicted_gives_up_the_grant_and_keeps_the_tombstone(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.evict("a")
    assert lock.leave("a") == Released(False)
    assert lock.holders == []
    assert lock.enter("a") == Revoked(EVICTED)


# -- Detach


def test_keep_unknown_is_not_inside(lock: LockUnderTest) -> None:
    assert lock.keep("a", LEASE) == NotHolder(None)
    assert lock.holders == []


def test_keep_in_line_is_not_inside(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    before = lock.record
    assert lock.keep("b", 10 * LEASE) == NotHolder(None)
    assert lock.record == before


def test_keep_inside_sets_the_lease_and_cuts_the_tie_to_the_process(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    assert lock.keep("a", 3600 * SECOND, fence) == Granted(fence, 3600 * SECOND)
    grant = lock.grant("a")
    assert (grant.lease, grant.expires, grant.listener) == (3600 * SECOND, lock.now + 3600 * SECOND, "")


def test_keep_inside_may_shorten_the_lease(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.keep("a", 5 * SECOND)
    assert lock.grant("a").expires == lock.now + 5 * SECOND


def test_keep_inside_with_another_fence_is_not_inside(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    assert lock.keep("a", 3600 * SECOND, fence + 1) == NotHolder(None)
    assert lock.grant("a").lease == LEASE


def test_keep_expired_is_as_renew(lock: LockUnderTest) -> None:
    fence = lock.enter("a", lease=2 * SECOND).fence
    lock.pass_time(2)
    assert lock.keep("a", LEASE, fence) == Granted(fence, LEASE)
    lock.enter("b")
    lock.pass_time(30)
    lock.enter("b", wait=False)  # polls, and so it lives
    assert lock.keep("a", LEASE, fence) == NotHolder(None)
    assert lock.holders == ["b"]


def test_keep_left_with_a_tombstone_is_not_inside(lock: LockUnderTest) -> None:
    lock.leave("a", leave_tombstone=True)
    assert lock.keep("a", LEASE) == NotHolder(LEFT)


def test_keep_evicted_is_not_inside(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.evict("a")
    before = lock.grant("a")
    assert lock.keep("a", 3600 * SECOND) == NotHolder(EVICTED)
    assert lock.grant("a") == before


def test_keep_closed_leaves_no_owner(lock: LockUnderTest) -> None:
    lock.slot("a", owner="web-1")
    lock.slot("b", owner="web-2")
    lock.keep("a", 4 * SECOND, closed=True)
    lock.keep("b", 4 * SECOND)
    assert [(e.owner, e.listener) for e in lock.record.holders] == [("", ""), ("web-2", "")]


def test_keep_closed_counts_from_the_grant(lock: LockUnderTest) -> None:
    """It may be repeated, and the time until it is sent is not added."""
    lock.slot("a")
    lock.slot("b")
    lock.pass_time(3)
    for _ in range(2):
        assert lock.keep("a", 5 * SECOND, closed=True).left == 2 * SECOND
    assert lock.keep("b", 5 * SECOND).left == 5 * SECOND
    assert lock.keep("b", 2 * SECOND, closed=True).left == 1, "it has been held for longer: it opens at once"


# -- grants without a process: nobody leaves them, so nobody lets in the next


def test_keep_wakes_the_head_of_the_line_which_learns_when_to_look(lock: LockUnderTest) -> None:
    for ticket in "abcd":
        lock.slot(ticket)
    assert lock.slot("c").retry_in == LEASE
    lock.keep("a", 4 * SECOND)
    assert lock.woken == (Wakeup("listener of c", "c"),)
    assert lock.slot("c").retry_in == 4 * SECOND


def test_keep_wakes_nobody_if_it_is_repeated_and_changes_nothing(lock: LockUnderTest) -> None:
    for ticket in "abc":
        lock.slot(ticket)
    lock.keep("a", 4 * SECOND)
    lock.keep("a", 4 * SECOND)
    assert lock.woken == ()
    lock.keep("a", 5 * SECOND)
    assert lock.hints == ["c"]


def test_one_that_becomes_the_head_beside_a_kept_grant_is_woken(lock: LockUnderTest) -> None:
    for ticket in "abcd":
        lock.slot(ticket)
    lock.keep("a", 4 * SECOND)
    lock.leave("b")
    assert [(w.ticket, w.fence > 0) for w in lock.woken] == [("c", True), ("d", False)]
    assert lock.slot("d").retry_in == 2 * SECOND  # c has not been heard yet
    lock.slot("c")
    assert lock.slot("d").retry_in == 4 * SECOND
    lock.tick()
    assert lock.woken == ()


def test_one_that_becomes_the_head_when_a_kept_grant_is_left_to_another_is_woken(lock: LockUnderTest) -> None:
    lock.enter("a", listener="")
    lock.enter("b", listener="")
    lock.enter("c")
    lock.leave("a")
    assert lock.hints == ["b", "c"]


def test_one_that_becomes_the_head_by_its_own_poll_is_told_by_the_answer(lock: LockUnderTest) -> None:
    for ticket in "abcd":
        lock.slot(ticket)
    lock.keep("a", 60 * SECOND)
    lock.pass_time(20)  # c is silent for too long
    assert lock.slot("d").ahead == 0
    assert lock.woken == ()


def test_one_that_becomes_the_head_beside_those_who_live_is_not_woken(lock: LockUnderTest) -> None:
    for ticket in "abcd":
        lock.slot(ticket)
    lock.leave("b")
    assert lock.hints == ["c"]


# -- Evict


def test_evict_unknown_makes_a_tombstone_before_it_comes(lock: LockUnderTest) -> None:
    assert lock.evict("a") == Done(())
    assert lock.enter("a") == Revoked(EVICTED)


def test_evict_in_line_removes_buries_and_wakes(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    assert lock.evict("b") == Done(("b",))
    assert (lock.queue, lock.hints) == ([], ["b"])
    assert lock.enter("b") == Revoked(EVICTED)


def test_evict_inside_ends_the_renewals_and_leaves_the_grant_until_the_lease_ends(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    lock.enter("b")
    assert lock.evict("a") == Done(("a",))
    assert (lock.holders, lock.hints) == (["a"], ["a"])
    for _ in range(29):
        lock.pass_time(1)
        assert isinstance(lock.enter("b"), Queued)
        assert lock.renew("a", fence) == NotHolder(EVICTED)
    lock.pass_time(1)
    assert isinstance(lock.enter("b"), Granted)


def test_evict_inside_at_once_lets_the_next_one_in(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    assert lock.evict("a", at_once=True) == Done(("a",))
    assert (lock.holders, lock.queue) == (["b"], [])
    assert sorted(lock.hints) == ["a", "b"]
    assert lock.enter("a") == Revoked(EVICTED)


def test_evict_expired_is_dropped_and_gets_a_tombstone(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.pass_time(31)
    assert lock.evict("a") == Done(())
    assert lock.holders == []
    assert lock.enter("a") == Revoked(EVICTED)


def test_evict_left_with_a_tombstone_keeps_it(lock: LockUnderTest) -> None:
    lock.leave("a", leave_tombstone=True)
    before = lock.record
    lock.evict("a")
    assert lock.record == before


def test_evict_evicted_changes_nothing(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.evict("a")
    before = lock.record
    lock.evict("a")
    assert lock.record == before


def test_evict_at_once_of_one_who_was_evicted_mildly_takes_the_grant_away(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.evict("a")
    lock.evict("a", at_once=True)
    assert lock.holders == []


def test_evict_without_a_ticket_means_all_inside_and_nobody_in_line(lock: LockUnderTest) -> None:
    lock.slot("a")
    lock.slot("b")
    lock.slot("c")
    assert lock.evict(None) == Done(("a", "b"))
    assert (lock.holders, lock.queue) == (["a", "b"], ["c"])
    assert [lock.enter(t) for t in ("a", "b")] == [Revoked(EVICTED)] * 2
    assert isinstance(lock.slot("c"), Queued)


# -- Ask


def test_ask_unknown_changes_nothing(lock: LockUnderTest) -> None:
    assert lock.ask("a") == Done(())
    assert (lock.record.tombstones, lock.woken) == ((), ())


def test_ask_in_line_changes_nothing(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.enter("b")
    assert lock.ask("b") == Done(())
    assert (lock.record.tombstones, lock.woken) == ((), ())


def test_ask_inside_wakes_the_holder_and_is_in_every_grant_until_it_leaves(lock: LockUnderTest) -> None:
    fence = lock.enter("a").fence
    lock.enter("b")
    before = lock.record.holders
    assert lock.ask("a") == Done(("a",))
    assert lock.woken == (Wakeup("listener of a", "a"),)
    assert lock.record.holders == before
    assert lock.renew("a", fence) == Granted(fence, LEASE, ASKED)
    assert lock.enter("a") == Granted(fence, LEASE, ASKED)
    lock.pass_time(2)
    assert lock.renew("a", fence).asked == ASKED
    assert lock.keep("a", LEASE) == Granted(fence, LEASE, ASKED)
    assert lock.leave("a", fence=fence) == Released(True)
    assert lock.holders == ["b"]
    assert lock.enter("b").asked is None
    assert lock.record.tombstones == ()


def test_ask_means_one_holder_of_a_semaphore(lock: LockUnderTest) -> None:
    lock.slot("a")
    lock.slot("b")
    lock.ask("a")
    assert (lock.renew("a").asked, lock.renew("b").asked) == (ASKED, None)


def test_ask_again_replaces_the_reason(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.ask("a")
    assert lock.ask("a", "now, please") == Done(("a",))
    assert lock.renew("a").asked == Why("asked", "ops", "now, please")
    assert len(lock.record.tombstones) == 1


def test_ask_expired_changes_nothing(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.pass_time(31)
    assert lock.ask("a") == Done(())
    assert lock.record.tombstones == ()


def test_ask_one_who_lets_the_lease_run_out_ends_with_the_grant(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.ask("a")
    lock.pass_time(31)
    assert isinstance(lock.enter("b"), Granted)
    assert lock.record.tombstones == ()


def test_ask_one_whose_lease_ran_out_and_nobody_wanted_it_still_counts(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.ask("a")
    lock.pass_time(31)
    assert lock.renew("a").asked == ASKED


def test_ask_left_or_evicted_keeps_the_tombstone(lock: LockUnderTest) -> None:
    lock.leave("a", leave_tombstone=True)
    lock.enter("b")
    lock.evict("b")
    before = lock.record
    assert [lock.ask(ticket) for ticket in "ab"] == [Done(()), Done(())]
    assert lock.record == before


def test_a_tombstone_replaces_a_request(lock: LockUnderTest) -> None:
    lock.enter("a")
    lock.ask("a")
    lock.evict("a")
    assert lock.renew("a") == NotHolder(EVICTED)
    lock.leave("a")
    lock.pass_time(61)
    lock.enter("b")
    lock.ask("b")
    lock.leave("b", leave_tombstone=True)
    assert lock.enter("b") == Revoked(LEFT)


def test_ask_one_that_does_not_confirm_ends_with_its_turn(lock: LockUnderTest) -> None:
    for ticket in "abc":
        lock.enter(ticket)
    lock.leave("a")
    assert lock.ask("b") == Done(("b",))
    lock.pass_time(2)
    assert lock.enter("b").asked is None  # it is granted again, by its own poll


# -- Resize, which is about no ticket


def test_resize_leaves_those_inside_alone(lock: LockUnderTest) -> None:
    lock.slot("a", weight=3, of=4)
    lock.slot("b", of=4)
    before = lock.record.holders
    assert lock.resize(2) == Done(())
    assert lock.record.holders == before
    assert isinstance(lock.renew("a"), Granted)
    assert isinstance(lock.slot("a", weight=3, of=4), Granted)


def test_resize_drops_and_wakes_those_in_line_who_are_too_heavy_now(lock: LockUnderTest) -> None:
    lock.slot("a", weight=4, of=4)
    lock.slot("heavy", weight=3, of=4)
    lock.slot("light", weight=2, of=4)
    assert lock.resize(2) == Done(("heavy",))
    assert (lock.queue, lock.hints) == (["light"], ["heavy"])
    assert lock.slot("heavy", weight=3, of=4) == Mismatch(2)


def test_resize_upwards_admits_each_waiter_that_fits_now(lock: LockUnderTest) -> None:
    lock.slot("a", of=1)
    lock.slot("b", of=1)
    lock.resize(2)
    assert (lock.holders, lock.hints) == (["a", "b"], ["b"])


def test_resize_downwards_admits_nobody_until_enough_have_left(lock: LockUnderTest) -> None:
    for ticket in "abc":
        lock.slot(ticket, of=3)
    lock.slot("d", of=3)
    lock.resize(1)
    lock.leave("a")
    lock.leave("b")
    assert (lock.holders, lock.queue) == (["c"], ["d"])
    lock.leave("c")
    assert lock.holders == ["d"]


def test_a_capacity_set_by_resize_holds_when_nobody_is_there(lock: LockUnderTest) -> None:
    lock.resize(2)
    assert isinstance(lock.slot("a", of=3), Granted)
    lock.leave("a")
    assert isinstance(lock.slot("b", of=5), Granted)
    assert lock.record.capacity == 2


def test_after_a_resize_another_number_in_an_enter_is_ignored(lock: LockUnderTest) -> None:
    lock.slot("a", of=1)
    lock.resize(2)
    assert isinstance(lock.slot("b", of=1), Granted)
    assert isinstance(lock.slot("c", of=3), Queued)
    assert isinstance(lock.slot("d", of=1), Queued)
    assert (lock.holders, lock.queue, lock.record.capacity) == (["a", "b"], ["c", "d"], 2)


def test_after_a_resize_only_a_weight_that_can_never_fit_is_a_mismatch(lock: LockUnderTest) -> None:
    lock.resize(2)
    assert lock.slot("a", weight=3, of=3) == Mismatch(2)
    lock.slot("b", of=3)
    assert lock.slot("a", weight=3, of=3) == Mismatch(2)
    assert lock.enter("lock") == Mismatch(2)


def test_a_resize_without_a_number_gives_the_size_back_to_the_programs(lock: LockUnderTest) -> None:
    lock.slot("a", of=2)
    lock.resize(3)
    assert lock.resize(None) == Done(())
    assert lock.slot("b", of=2) == Mismatch(3)  # until all have left, as ever
    assert isinstance(lock.slot("b", of=3), Granted)
    lock.leave("a")
    lock.leave("b")
    assert isinstance(lock.slot("b", of=2), Granted)
    assert lock.record.capacity == 2


def test_a_resize_without_a_number_changes_nothing_else(lock: LockUnderTest) -> None:
    lock.slot("a", weight=2, of=2)
    lock.slot("b", weight=2, of=2)
    before = lock.record
    assert lock.resize(None) == Done(())
    assert (lock.record, lock.woken) == (before, ())


def test_a_lock_is_what_weighs_everything(lock: LockUnderTest) -> None:
    lock.enter("writer")
    assert isinstance(lock.read("reader"), Queued)
    assert lock.record.capacity == EXCLUSIVE

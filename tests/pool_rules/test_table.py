"""What each command does to an item in each condition: the table of the rules, a test for every cell.

The conditions: absent, free, resting, taken, expired, done.
"""

import pytest

from fairlock.rules.pools import (
    AGO,
    DONE,
    Absent,
    Add,
    Added,
    Busy,
    Exists,
    Finish,
    Finished,
    Give,
    Given,
    Look,
    Looked,
    Lost,
    Remove,
    Removed,
    Take,
    Taken,
    Touch,
    Touched,
)
from tests.pool_rules import walkthrough as conditions
from tests.pool_rules.walkthrough import LEASE, SECOND, Bench

PRESENT = [conditions.free, conditions.given, conditions.resting, conditions.taken, conditions.expired, conditions.done]


def condition(function: object) -> str:
    return getattr(function, "__name__", "?")


# -- Add


def test_add_absent_is_due_since_long_ago_and_belongs_to_nobody(bench: Bench) -> None:
    assert bench.on("x", Add('{"n": 1}')) == Added()
    x = bench.item("x")
    assert (x.key, x.score, x.fence, x.ticket, x.body) == ("x", bench.now - AGO, 0, "", '{"n": 1}')
    assert bench.state("x") == "free"


def test_add_keeps_the_order_of_those_added_in_one_step(bench: Bench) -> None:
    bench.on("x", Add(nth=0))
    bench.on("y", Add(nth=1))
    assert bench.item("y").score == bench.item("x").score + 1


def test_add_by_a_clock_that_knows_no_long_ago_is_still_due(bench: Bench) -> None:
    bench.now = 5 * SECOND
    bench.on("x", Add())
    assert bench.item("x").score == 0


def test_add_what_is_there_changes_nothing(bench: Bench) -> None:
    for there in PRESENT:
        bench = Bench(bench.rules)
        there(bench)
        before = bench.item("x")
        assert bench.on("x", Add('"another"')) == Exists(), there.__name__
        assert bench.item("x") == before


# -- Take


def test_take_absent(bench: Bench) -> None:
    assert bench.on("x", Take("a", LEASE)) == Absent()


def test_take_free_is_taken_with_a_fence_from_the_clock(bench: Bench) -> None:
    bench.add("x", body='{"n": 1}')
    assert bench.on("x", Take("a", LEASE, "worker", "why")) == Taken(bench.now, LEASE, '{"n": 1}')
    x = bench.item("x")
    assert (x.ticket, x.fence, x.score, x.lease, x.owner, x.note) == (
        "a", bench.now, bench.now + LEASE, LEASE, "worker", "why",
    )  # fmt: skip
    assert bench.state("x") == "taken"


def test_take_free_again_gets_a_greater_fence_even_if_the_clock_went_back(bench: Bench) -> None:
    conditions.given(bench)
    last = bench.fence("x")
    bench.pass_time(-10)
    bench.rack.put(bench.item("x")._replace(score=0))
    assert bench.on("x", Take("b", LEASE)).fence == last + 1


def test_take_resting_is_busy_until_the_rest_is_over(bench: Bench) -> None:
    conditions.resting(bench)
    bench.pass_time(4)
    assert bench.on("x", Take("b", LEASE)) == Busy(6 * SECOND)
    bench.pass_time(6)
    assert isinstance(bench.on("x", Take("b", LEASE)), Taken)


def test_take_taken_by_another_is_busy(bench: Bench) -> None:
    conditions.taken(bench)
    before = bench.item("x")
    bench.pass_time(20)
    assert bench.on("x", Take("b", LEASE)) == Busy(40 * SECOND)
    assert bench.item("x") == before


def test_take_taken_by_the_same_ticket_is_the_same_take_refreshed(bench: Bench) -> None:
    conditions.taken(bench)
    fence = bench.fence("x")
    bench.pass_time(20)
    assert bench.on("x", Take("a", LEASE)) == Taken(fence, LEASE, '"first"')
    assert bench.item("x").score == bench.now + LEASE


def test_take_for_a_window_lasts_no_longer(bench: Bench) -> None:
    bench.add("x")
    assert bench.on("x", Take("a", LEASE, window=2 * SECOND)).left == 2 * SECOND
    assert bench.item("x").lease == LEASE
    assert bench.on("x", Take("a", LEASE)).left == LEASE


def test_take_for_a_window_lasts_no_longer_than_the_lease(bench: Bench) -> None:
    bench.add("x")
    assert bench.on("x", Take("a", SECOND, window=2 * SECOND)).left == SECOND


def test_take_for_a_window_said_late_shortens_nothing(bench: Bench) -> None:
    conditions.taken(bench)
    assert bench.on("x", Take("a", LEASE, window=2 * SECOND)).left == LEASE


def test_take_expired_by_another_is_a_new_take(bench: Bench) -> None:
    conditions.expired(bench)
    last = bench.fence("x")
    assert bench.state("x") == "expired"
    reply = bench.on("x", Take("b", LEASE))
    assert reply == Taken(bench.now, LEASE, '"first"')
    assert reply.fence > last
    assert bench.item("x").ticket == "b"


def test_take_expired_at_the_very_end_of_the_lease(bench: Bench) -> None:
    conditions.taken(bench)
    bench.pass_time(60)
    assert isinstance(bench.on("x", Take("b", LEASE)), Taken)


def test_take_expired_by_the_same_ticket_is_the_same_take(bench: Bench) -> None:
    conditions.expired(bench)
    fence = bench.fence("x")
    assert bench.on("x", Take("a", LEASE)) == Taken(fence, LEASE, '"first"')


def test_take_done(bench: Bench) -> None:
    conditions.done(bench)
    assert bench.on("x", Take("b", LEASE)) == Finished()
    assert bench.on("x", Take("a", LEASE)) == Finished()


# -- Touch


def test_touch_with_a_lease_makes_it_longer_and_never_shorter(bench: Bench) -> None:
    conditions.taken(bench)
    fence = bench.fence("x")
    assert bench.on("x", Touch("a", fence, lease=LEASE + 5)) == Touched(LEASE + 5)
    assert bench.on("x", Touch("a", fence, lease=1)) == Touched(LEASE + 5)
    assert bench.on("x", Touch("a", fence)) == Touched(LEASE + 5)


@pytest.mark.parametrize("there", [conditions.absent, *PRESENT[:3], conditions.done], ids=condition)
def test_touch_what_is_not_taken_is_lost(bench: Bench, there: object) -> None:
    there(bench)  # type: ignore[operator]
    assert bench.on("x", Touch("a", bench.fence("x"))) == Lost()


@pytest.mark.parametrize("there", [conditions.taken, conditions.expired], ids=condition)
def test_touch_mine_lasts_a_whole_lease_again(bench: Bench, there: object) -> None:
    there(bench)  # type: ignore[operator]
    fence = bench.fence("x")
    bench.pass_time(7)
    assert bench.on("x", Touch("a", fence)) == Touched(LEASE)
    assert (bench.item("x").score, bench.item("x").fence) == (bench.now + LEASE, fence)


def test_touch_mine_with_a_body_keeps_it(bench: Bench) -> None:
    conditions.taken(bench)
    bench.on("x", Touch("a", bench.fence("x"), '"half"'))
    assert bench.item("x").body == '"half"'
    bench.on("x", Touch("a", bench.fence("x")))
    assert bench.item("x").body == '"half"'


def test_touch_with_another_fence_or_ticket_is_lost(bench: Bench) -> None:
    conditions.taken(bench)
    before = bench.item("x")
    assert bench.on("x", Touch("a", before.fence - 1, '"half"')) == Lost()
    assert bench.on("x", Touch("b", before.fence, '"half"')) == Lost()
    assert bench.item("x") == before


def test_touch_what_another_has_taken_over_is_lost(bench: Bench) -> None:
    conditions.expired(bench)
    old = bench.fence("x")
    bench.on("x", Take("b", LEASE))
    assert bench.on("x", Touch("a", old)) == Lost()


# -- Give


def test_give_mine_is_nobodys_and_due_now(bench: Bench) -> None:
    conditions.taken(bench)
    fence = bench.fence("x")
    assert bench.on("x", Give("a", fence, body='"half"')) == Given()
    x = bench.item("x")
    assert (x.score, x.ticket, x.fence, x.owner, x.note, x.body) == (bench.now, "", fence, "", "", '"half"')
    assert bench.state("x") == "free"


def test_give_mine_rests_as_long_as_is_said(bench: Bench) -> None:
    conditions.taken(bench)
    assert bench.on("x", Give("a", bench.fence("x"), 5 * SECOND)) == Given()
    assert bench.item("x").score == bench.now + 5 * SECOND
    assert bench.state("x") == "resting"
    bench.pass_time(5)
    assert bench.state("x") == "free"


def test_give_mine_after_its_end(bench: Bench) -> None:
    conditions.expired(bench)
    assert bench.on("x", Give("a", bench.fence("x"))) == Given()
    assert bench.state("x") == "free"


@pytest.mark.parametrize("there", [conditions.given, conditions.resting], ids=condition)
def test_give_again_is_given_and_changes_nothing(bench: Bench, there: object) -> None:
    there(bench)  # type: ignore[operator]
    before = bench.item("x")
    bench.pass_time(1)
    assert bench.on("x", Give("a", bench.fence("x"), 30 * SECOND, '"again"')) == Given()
    assert bench.item("x") == before


@pytest.mark.parametrize("there", [conditions.absent, conditions.done], ids=condition)
def test_give_what_is_no_longer_there_is_lost(bench: Bench, there: object) -> None:
    there(bench)  # type: ignore[operator]
    assert bench.on("x", Give("a", bench.fence("x"))) == Lost()


@pytest.mark.parametrize("there", [*PRESENT[:5]], ids=condition)
def test_give_with_another_fence_is_lost(bench: Bench, there: object) -> None:
    there(bench)  # type: ignore[operator]
    before = bench.item("x")
    assert bench.on("x", Give("a", before.fence + 1)) == Lost()
    assert bench.on("x", Give("a", before.fence - 1)) == Lost()
    assert bench.item("x") == before


def test_give_by_another_is_lost(bench: Bench) -> None:
    conditions.taken(bench)
    assert bench.on("x", Give("b", bench.fence("x"))) == Lost()
    assert bench.state("x") == "taken"


# -- Finish


@pytest.mark.parametrize("there", [conditions.taken, conditions.expired], ids=condition)
def test_finish_mine_is_done(bench: Bench, there: object) -> None:
    there(bench)  # type: ignore[operator]
    assert bench.on("x", Finish("a", bench.fence("x"), '"result"')) == Finished()
    x = bench.item("x")
    assert (x.score, x.ticket, x.body, x.owner) == (DONE, "", '"result"', "worker")
    assert bench.state("x") == "done"


def test_finish_again_is_finished_and_changes_nothing(bench: Bench) -> None:
    conditions.done(bench)
    before = bench.item("x")
    assert before.ticket == ""
    assert bench.on("x", Finish("a", bench.fence("x"), '"again"')) == Finished()
    assert bench.item("x") == before


@pytest.mark.parametrize("there", [conditions.absent, *PRESENT[:3]], ids=condition)
def test_finish_what_is_not_taken_is_lost(bench: Bench, there: object) -> None:
    there(bench)  # type: ignore[operator]
    assert bench.on("x", Finish("a", bench.fence("x"))) == Lost()


@pytest.mark.parametrize("there", [conditions.taken, conditions.expired, conditions.done], ids=condition)
def test_finish_with_another_fence_is_lost(bench: Bench, there: object) -> None:
    there(bench)  # type: ignore[operator]
    before = bench.item("x")
    assert bench.on("x", Finish("a", before.fence - 1)) == Lost()
    assert bench.item("x") == before


def test_finish_by_another_is_lost(bench: Bench) -> None:
    conditions.taken(bench)
    assert bench.on("x", Finish("b", bench.fence("x"))) == Lost()


# -- Remove


def test_remove_absent(bench: Bench) -> None:
    assert bench.on("x", Remove()) == Removed(False)


@pytest.mark.parametrize("there", [p for p in PRESENT if p is not conditions.taken], ids=condition)
def test_remove_what_nobody_has(bench: Bench, there: object) -> None:
    there(bench)  # type: ignore[operator]
    assert bench.on("x", Remove()) == Removed(True)
    assert bench.rack.items == {}


def test_remove_taken_by_another_is_busy(bench: Bench) -> None:
    conditions.taken(bench)
    bench.pass_time(10)
    assert bench.on("x", Remove()) == Busy(50 * SECOND)
    assert bench.on("x", Remove("b", bench.fence("x"))) == Busy(50 * SECOND)
    assert bench.on("x", Remove("a", bench.fence("x") - 1)) == Busy(50 * SECOND)
    assert bench.state("x") == "taken"


def test_remove_taken_by_its_owner_or_by_force(bench: Bench) -> None:
    conditions.taken(bench)
    assert bench.on("x", Remove("a", bench.fence("x"))) == Removed(True)
    conditions.taken(bench)
    assert bench.on("x", Remove(force=True)) == Removed(True)
    assert bench.rack.items == {}


# -- Look, and the clock


def test_look_shows_and_changes_nothing(bench: Bench) -> None:
    assert bench.on("x", Look()) == Looked(None)
    conditions.taken(bench)
    before = bench.item("x")
    assert bench.on("x", Look()) == Looked(before)
    assert bench.item("x") == before


def test_a_clock_that_went_back_leaves_a_taken_item_its_lease_and_no_more(bench: Bench) -> None:
    conditions.taken(bench)
    bench.pass_time(-3600)
    assert bench.on("x", Take("b", LEASE)) == Busy(LEASE)
    assert bench.item("x").score == bench.now + LEASE
    bench.pass_time(60)
    assert isinstance(bench.on("x", Take("b", LEASE)), Taken)


def test_a_clock_that_went_back_leaves_a_resting_item_its_rest_and_no_more(bench: Bench) -> None:
    conditions.resting(bench)
    bench.pass_time(-3600)
    assert bench.on("x", Take("b", LEASE)) == Busy(10 * SECOND)


def test_a_done_item_stays_done_whatever_the_clock_does(bench: Bench) -> None:
    conditions.done(bench)
    bench.pass_time(-3600)
    assert bench.on("x", Take("b", LEASE)) == Finished()


def test_a_repeated_touch_adds_nothing(bench: Bench) -> None:
    conditions.taken(bench)
    for _ in range(3):
        bench.on("x", Touch("a", bench.fence("x")))
    assert bench.item("x").score == bench.now + LEASE

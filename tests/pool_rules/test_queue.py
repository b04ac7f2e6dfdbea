"""Workers who wait, and how items reach them: an example for each sentence of queue.py and counter.py."""

from fairlock.rules.pools import (
    CONFIRM_WINDOW,
    Absent,
    Added,
    Busy,
    Finished,
    Give,
    Given,
    Lost,
    Nothing,
    Queued,
    Removed,
    Revoked,
    Taken,
    Touched,
)
from tests.pool_rules.walkthrough import LEASE, SECOND, Bench

# -- taking any


def test_what_came_first_is_taken_first(bench: Bench) -> None:
    bench.add("c")
    bench.pass_time(0.001)
    bench.add("a", "b")
    assert [bench.seek(t).key for t in "123"] == ["c", "a", "b"]


def test_a_take_says_what_it_took(bench: Bench) -> None:
    bench.add("x", body='{"n": 1}')
    assert bench.seek("a") == Taken(bench.now, LEASE, '{"n": 1}', "x")
    assert bench.item("x").ticket == "a"


def test_added_in_one_step_says_how_many_were_new(bench: Bench) -> None:
    assert bench.add("a", "b") == Added(2)
    assert bench.add("b", "c", "c") == Added(1)
    assert bench.add("b") == Added(0)


def test_given_back_goes_behind_everything_that_waits(bench: Bench) -> None:
    bench.add("poison", "good", "better")
    bench.seek("a")
    bench.give("poison", "a")
    bench.pass_time(1)
    assert [bench.seek(t).key for t in "123"] == ["good", "better", "poison"]


def test_what_has_expired_is_taken_over_before_what_was_given_back_later(bench: Bench) -> None:
    bench.add("x", "y")
    bench.seek("a")
    bench.seek("b")
    bench.pass_time(61)
    bench.give("y", "b")
    assert bench.seek("c").key == "x"


def test_nothing_for_one_who_does_not_wait(bench: Bench) -> None:
    assert bench.seek("a", wait=False) == Nothing()
    assert bench.waiting == []


def test_a_repeated_seek_finds_what_it_took(bench: Bench) -> None:
    bench.add("x", "y")
    first = bench.seek("a")
    bench.pass_time(5)
    assert bench.seek("a") == first
    assert bench.item("x").score == bench.now + LEASE
    assert bench.state("y") == "free"


def test_what_is_done_or_rests_is_not_taken(bench: Bench) -> None:
    bench.add("x", "y")
    bench.seek("a")
    bench.finish("x", "a")
    bench.seek("b")
    bench.give("y", "b", after=5)
    assert bench.seek("c", wait=False) == Nothing()
    bench.pass_time(5)
    assert bench.seek("c", wait=False).key == "y"


# -- the line


def test_who_finds_nothing_stands_in_line(bench: Bench) -> None:
    assert bench.seek("a") == Queued(0, 1, SECOND)
    assert bench.seek("b") == Queued(1, 2, 2 * SECOND)
    assert bench.seek("a") == Queued(0, 1, SECOND)
    assert bench.waiting == ["a", "b"]


def test_what_is_added_goes_to_the_first_in_the_queue_and_wakes_it(bench: Bench) -> None:
    bench.seek("a")
    bench.seek("b")
    bench.add("x")
    assert bench.item("x").ticket == "a"
    assert bench.woken == ["a", "b"]  # one was given something, the other is first now
    assert bench.waiting == ["b"]
    assert bench.seek("a").key == "x"


def test_what_is_handed_over_lasts_for_the_window_until_its_owner_is_heard(bench: Bench) -> None:
    bench.seek("a")
    bench.add("x")
    assert bench.item("x").score == bench.now + CONFIRM_WINDOW
    bench.pass_time(1)
    assert bench.seek("a").left == LEASE
    assert bench.item("x").score == bench.now + LEASE


def test_what_is_handed_to_one_who_never_comes_is_due_again_after_the_window(bench: Bench) -> None:
    bench.seek("a")
    bench.seek("b")
    bench.add("x")
    bench.pass_time(1.9)
    assert isinstance(bench.seek("b"), Queued)
    bench.pass_time(0.1)
    assert bench.seek("b").key == "x"
    assert isinstance(bench.seek("a"), Queued)


def test_many_added_at_once_go_to_the_line_in_its_order(bench: Bench) -> None:
    for ticket in "abcd":
        bench.seek(ticket)
    bench.add("x", "y", "z")
    assert [bench.item(k).ticket for k in "xyz"] == ["a", "b", "c"]
    assert bench.waiting == ["d"]
    assert bench.woken == ["a", "b", "c", "d"]


def test_what_is_given_back_goes_to_the_first_in_line(bench: Bench) -> None:
    bench.add("x")
    bench.seek("a")
    bench.seek("b")
    assert bench.give("x", "a") == Given()
    assert bench.item("x").ticket == "b"
    assert bench.woken == ["b"]
    assert bench.touch("x", "a") == Lost()


def test_a_newcomer_takes_only_if_nobody_stands_in_line(bench: Bench) -> None:
    bench.add("x")
    bench.seek("a", lease=SECOND)
    bench.seek("b")
    bench.pass_time(1)
    assert bench.seek("new", wait=False) == Nothing()
    assert bench.item("x").ticket == "b"


def test_the_head_sleeps_until_the_earliest_is_due(bench: Bench) -> None:
    bench.add("x", "y")
    bench.seek("a", lease=SECOND // 2)
    bench.seek("b", lease=SECOND // 4)
    assert bench.seek("c").retry_in == SECOND // 4
    bench.pass_time(0.25)
    assert bench.seek("c").key == "y"


def test_the_head_is_woken_when_something_rests_that_may_be_due_before_it_looks(bench: Bench) -> None:
    bench.add("x")
    bench.seek("a")
    bench.seek("b")
    bench.seek("c")
    bench.give("x", "a", after=0.3)
    assert bench.woken == ["b"]
    assert bench.seek("b").retry_in == 300_000


def test_nobody_sleeps_for_nothing_or_for_ever(bench: Bench) -> None:
    for n in range(30):
        assert 1 <= bench.seek(f"w{n}").retry_in <= 10 * SECOND


def test_the_head_takes_what_has_expired_for_those_behind_it_too(bench: Bench) -> None:
    bench.add("x", "y")
    bench.seek("a", lease=SECOND)
    bench.seek("b", lease=SECOND)
    bench.seek("c")
    bench.seek("d")
    bench.pass_time(1)
    assert bench.seek("c").key == "x"
    assert bench.item("y").ticket == "d"
    assert bench.item("y").score == bench.now + CONFIRM_WINDOW
    assert bench.woken == ["d"]


# -- silence


def test_a_place_lasts_three_times_as_long_as_its_owner_may_sleep(bench: Bench) -> None:
    bench.seek("a")
    bench.seek("b")
    assert [w.expires - bench.now for w in bench.queue.workers] == [3 * SECOND, 6 * SECOND]
    bench.pass_time(3)
    assert bench.seek("b").ahead == 0
    assert bench.waiting == ["b"]


def test_a_poll_refreshes_the_place_even_in_the_last_moment(bench: Bench) -> None:
    bench.seek("a")
    bench.seek("b")
    bench.pass_time(3)
    assert bench.seek("a") == Queued(0, 1, SECOND)
    assert bench.waiting == ["a", "b"]


def test_one_who_was_silent_for_too_long_stands_at_the_tail(bench: Bench) -> None:
    bench.seek("a")
    bench.seek("b")
    bench.pass_time(3)
    bench.seek("b")
    assert bench.seek("a") == Queued(1, 3, 2 * SECOND)


def test_the_dead_are_passed_over_at_once(bench: Bench) -> None:
    bench.seek("a")
    bench.seek("b")
    bench.dead = {"a"}
    bench.add("x")
    assert bench.item("x").ticket == "b"


def test_when_the_head_is_gone_the_next_is_notified_that_it_is_first(bench: Bench) -> None:
    bench.seek("a")
    bench.seek("b")
    bench.seek("c")
    bench.quit("a")
    assert bench.woken == ["b"]
    bench.quit("c")
    assert bench.woken == []


def test_a_clock_that_went_back_leaves_the_line_its_poll_ttl_and_no_more(bench: Bench) -> None:
    bench.seek("a")
    bench.pass_time(-100)
    bench.seek("b")
    bench.pass_time(3)
    bench.seek("b")
    assert bench.waiting == ["b"]


def test_a_clock_that_went_back_leaves_no_item_stuck(bench: Bench) -> None:
    bench.add("x", "y")
    bench.seek("a")
    bench.seek("b")
    bench.give("y", "b")
    bench.pass_time(-3600)
    assert bench.seek("c").key == "y"
    bench.pass_time(60)
    assert bench.seek("d").key == "x"


# -- quitting


def test_who_quits_leaves_the_line(bench: Bench) -> None:
    bench.seek("a")
    assert bench.quit("a") == Revoked()
    assert bench.waiting == []
    assert bench.quit("a") == Revoked()


def test_one_that_quits_gives_back_what_was_handed_to_it(bench: Bench) -> None:
    bench.seek("a")
    bench.seek("b")
    bench.add("x")
    assert bench.item("x").ticket == "a"
    assert bench.quit("a") == Revoked()
    assert bench.item("x").ticket == "b"
    assert bench.woken == ["b"]


def test_who_quits_leaves_alone_what_others_have(bench: Bench) -> None:
    bench.add("x")
    bench.seek("a")
    bench.quit("b")
    assert bench.touch("x", "a") == Touched(LEASE)


# -- named items


def test_a_named_item_is_taken_past_the_line(bench: Bench) -> None:
    bench.add("x", "y")
    bench.seek("a", key="y")
    assert bench.item("y").ticket == "a"
    assert bench.state("x") == "free"


def test_a_named_item_that_is_busy_is_watched_and_not_stood_in_line_for(bench: Bench) -> None:
    bench.add("x")
    bench.seek("a")
    assert bench.seek("b", key="x") == Busy(LEASE)
    assert bench.waiting == []
    assert [w.ticket for w in bench.queue.watchers] == ["b"]
    bench.give("x", "a", after=1)
    assert bench.woken == ["b"]


def test_a_named_item_is_waited_for_before_it_is_there(bench: Bench) -> None:
    assert bench.seek("a", key="x") == Absent()
    bench.add("y")
    assert bench.woken == []
    bench.add("x")
    assert bench.woken == ["a"]
    assert bench.seek("a", key="x").key == "x"
    assert bench.queue.watchers == ()


def test_a_named_item_that_is_done_is_not_waited_for(bench: Bench) -> None:
    bench.add("x")
    bench.seek("a")
    bench.seek("b", key="x")
    bench.finish("x", "a")
    assert bench.woken == ["b"]
    assert bench.seek("b", key="x") == Finished()
    assert bench.queue.watchers == ()


def test_a_named_item_that_is_removed_wakes_who_waits_for_it(bench: Bench) -> None:
    bench.add("x")
    bench.seek("a")
    bench.seek("b", key="x")
    assert bench.remove("x", force=True) == Removed(True)
    assert bench.woken == ["b"]


def test_a_named_item_is_not_waited_for_by_one_who_only_tries(bench: Bench) -> None:
    bench.add("x")
    bench.seek("a")
    assert bench.seek("b", key="x", wait=False) == Busy(LEASE)
    assert bench.queue.watchers == ()


def test_one_that_watches_is_forgotten_after_its_poll_ttl(bench: Bench) -> None:
    bench.seek("a", key="x")
    bench.pass_time(3)
    bench.add("y")
    assert bench.queue.watchers == ()


def test_a_touch_wakes_nobody(bench: Bench) -> None:
    bench.add("x")
    bench.seek("a")
    bench.seek("b", key="x")
    bench.seek("c")
    bench.touch("x", "a")
    assert bench.woken == []


def test_one_without_an_listener_is_served_and_not_woken(bench: Bench) -> None:
    bench.seek("a", listener="")
    bench.add("x")
    assert bench.item("x").ticket == "a"
    assert bench.hints == []


def test_rules_of_one_item_know_no_line(bench: Bench) -> None:
    """Unless the queue's rules are called, no waiter is served."""
    bench.add("x")
    bench.seek("a")
    bench.seek("b")
    bench.on("x", Give("a", bench.fence("x")))
    assert bench.state("x") == "free"

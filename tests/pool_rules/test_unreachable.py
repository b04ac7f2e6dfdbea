"""Waiters that no wake-up would reach: they are passed over, and keep their place."""

from tests.pool_rules.walkthrough import SECOND, Bench


def test_an_unreachable_waiter_is_passed_over_and_keeps_its_place(bench: Bench) -> None:
    for ticket in "abc":
        bench.seek(ticket)
    bench.unreachable = {"a"}
    bench.add("x")
    assert (bench.item("x").ticket, bench.waiting, bench.woken) == ("b", ["a", "c"], ["b"])
    bench.unreachable = set()
    bench.add("y")
    assert bench.item("y").ticket == "a"


def test_a_newcomer_has_it_before_unreachable_waiters(bench: Bench) -> None:
    bench.add("x")
    bench.seek("gone", lease=SECOND)
    bench.seek("a")
    bench.unreachable = {"a"}
    bench.pass_time(1)
    assert bench.seek("new").key == "x"
    assert bench.waiting == ["a"]


def test_if_nobody_hears_the_first_has_it_all_the_same(bench: Bench) -> None:
    for ticket in "abc":
        bench.seek(ticket)
    bench.unreachable = {"a", "b", "c"}
    bench.add("x", "y")
    assert (bench.item("x").ticket, bench.item("y").ticket, bench.waiting) == ("a", "b", ["c"])


def test_one_that_asks_is_reachable(bench: Bench) -> None:
    bench.add("x")
    bench.seek("gone", lease=SECOND)
    for ticket in "ab":
        bench.seek(ticket)
    bench.unreachable = {"a"}
    bench.pass_time(1)
    bench.seek("a")
    assert bench.item("x").ticket == "a"

"""Those in line whom nobody would hear of what they are given: passed over, and their place kept."""

from tests.pool.bench import SECOND, Bench


def test_whom_nobody_would_hear_is_passed_over_and_keeps_his_place(bench: Bench) -> None:
    for ticket in "abc":
        bench.seek(ticket)
    bench.deaf = {"a"}
    bench.add("x")
    assert (bench.item("x").ticket, bench.waiting, bench.woken) == ("b", ["a", "c"], ["b"])
    bench.deaf = set()
    bench.add("y")
    assert bench.item("y").ticket == "a"


def test_a_newcomer_has_it_before_those_whom_nobody_would_hear(bench: Bench) -> None:
    bench.add("x")
    bench.seek("gone", lease=SECOND)
    bench.seek("a")
    bench.deaf = {"a"}
    bench.pass_time(1)
    assert bench.seek("new").key == "x"
    assert bench.waiting == ["a"]


def test_if_nobody_hears_the_first_has_it_all_the_same(bench: Bench) -> None:
    for ticket in "abc":
        bench.seek(ticket)
    bench.deaf = {"a", "b", "c"}
    bench.add("x", "y")
    assert (bench.item("x").ticket, bench.item("y").ticket, bench.waiting) == ("a", "b", ["c"])


def test_who_asks_is_heard(bench: Bench) -> None:
    bench.add("x")
    bench.seek("gone", lease=SECOND)
    for ticket in "ab":
        bench.seek(ticket)
    bench.deaf = {"a"}
    bench.pass_time(1)
    bench.seek("a")
    assert bench.item("x").ticket == "a"

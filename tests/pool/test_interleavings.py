"""Where one order is several writes: whatever mingles with it, and wherever somebody dies, nothing is lost or stuck."""

from collections.abc import Coroutine
from typing import Any

import pytest

from holdfast.backends import cas_pool
from holdfast.pool import WINDOW, Give, On, Put, Quit, Seek, Taken, Waiting
from tests.pool.bench import LEASE
from tests.pool.interleave import House, every_order

Scene = tuple[House, list[Coroutine[Any, Any, None]]]


def seek(house: House, name: str, again: bool = False) -> Seek:
    return Seek(name, LEASE, True, house.ear(name), name, again=again)


def one(*keys: str) -> Put:
    return Put(tuple((key, "null") for key in keys))


def nobody_sleeps_past_something(house: House) -> None:
    """If something can be had, whoever stands first has been told, or has it."""
    items = house.items()
    free = [i for i in items.values() if 0 <= i.score <= house.now]
    line = house.line()
    if free and line:
        assert line[0] in house.hints, f"{line[0]} sleeps, and {free[0].key} can be had"
    for name, reply in house.replies.items():
        if isinstance(reply, Waiting):
            has = any(i.ticket == name for i in items.values())
            assert name in line or name in house.hints or has, f"{name} waits, and nobody knows of it"
        if isinstance(reply, Taken):
            assert items[reply.key].ticket == name or items[reply.key].fence != reply.fence


def each_has_his_own(house: House) -> None:
    got = [(name, r.key) for name, r in house.replies.items() if isinstance(r, Taken)]
    assert len({key for _, key in got}) == len(got), f"two have the same: {got}"


def test_nothing_is_added_past_one_who_comes_to_wait() -> None:
    def scene() -> Scene:
        house = House()
        return house, [house.begin("a", seek(house, "a")), house.begin("adder", one("x"))]

    assert every_order(scene, nobody_sleeps_past_something) > 5


def test_nothing_is_given_back_past_one_who_comes_to_wait() -> None:
    def scene() -> Scene:
        house = House()
        house.say("adder", one("x"))
        taken = house.say("b", seek(house, "b"))
        return house, [house.begin("a", seek(house, "a")), house.begin("b", On("x", Give("b", taken.fence)))]

    assert every_order(scene, nobody_sleeps_past_something) > 5


def test_two_who_come_at_once_do_not_take_the_same() -> None:
    def scene() -> Scene:
        house = House()
        house.say("adder", one("x"))
        return house, [house.begin("a", seek(house, "a")), house.begin("b", seek(house, "b"))]

    def check(house: House) -> None:
        nobody_sleeps_past_something(house)
        each_has_his_own(house)
        assert house.items()["x"].ticket in ("a", "b")

    assert every_order(scene, check) > 50


def waiting(house: House, *names: str) -> None:
    for name in names:
        assert isinstance(house.say(name, seek(house, name)), Waiting)


def test_the_first_in_line_serves_the_second_while_that_one_polls() -> None:
    def scene() -> Scene:
        house = House()
        waiting(house, "a", "b")
        house.say("adder", one("x", "y"))
        return house, [house.begin("a", seek(house, "a", True)), house.begin("b", seek(house, "b", True))]

    def check(house: House) -> None:
        nobody_sleeps_past_something(house)
        each_has_his_own(house)
        tickets = sorted(i.ticket for i in house.items().values())
        assert tickets in (["a", "b"], ["", "a"]), tickets

    assert every_order(scene, check) > 100


def test_the_first_may_die_anywhere_while_he_serves_and_it_costs_the_window() -> None:
    def scene() -> Scene:
        house = House()
        waiting(house, "a", "b")
        house.say("adder", one("x", "y"))
        return house, [house.begin("a", seek(house, "a", True))]

    def check(house: House) -> None:
        if isinstance(house.replies.get("a"), Taken):
            return
        assert set(house.items()) == {"x", "y"}, "something is lost"
        house.now += WINDOW + 1_000_000
        got = house.say("b", seek(house, "b", True))
        if isinstance(got, Waiting):  # the dead one still stands before him, for what is left of his patience
            house.now += 2 * WINDOW
            got = house.say("b", seek(house, "b", True))
        assert isinstance(got, Taken), got
        house.now += LEASE
        others = {house.say("c", seek(house, "c")).key, got.key}
        assert others == {"x", "y"}

    assert every_order(scene, check, mortal=0) > 5


def test_one_who_quits_while_he_is_served_leaves_nothing_for_longer_than_the_window() -> None:
    def scene() -> Scene:
        house = House()
        waiting(house, "a", "b")
        house.say("adder", one("x", "y"))
        return house, [house.begin("a", seek(house, "a", True)), house.begin("b", Quit("b", LEASE))]

    def check(house: House) -> None:
        assert house.line() == []
        items = house.items()
        assert [i.key for i in items.values() if i.ticket == "a"], "the first has something"
        for item in items.values():
            if item.ticket == "b":
                assert item.score <= house.now + WINDOW, "what was meant for one who quit is kept too long"

    assert every_order(scene, check) > 50


def test_a_named_item_is_not_added_past_one_who_waits_for_it() -> None:
    def scene() -> Scene:
        house = House()
        wish = seek(house, "a")._replace(key="x")
        return house, [house.begin("a", wish), house.begin("adder", one("x"))]

    def check(house: House) -> None:
        has = house.items()["x"].ticket == "a"
        assert has or "a" in house.hints, "it is there, and he sleeps"

    assert every_order(scene, check) > 5


def test_an_engine_that_does_not_look_again_after_joining_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or this file would show nothing."""
    source = cas_pool.__file__
    with open(source, encoding="utf-8") as file:
        text = file.read()
    words = "                    if stands or not lines.is_first(stood, seek.ticket):\n"
    assert text.count(words) == 1
    broken = text.replace(words, "                    if True:\n")
    names: dict[str, Any] = {"__name__": "holdfast.backends.cas_pool", "__package__": "holdfast.backends"}
    exec(compile(broken, source, "exec"), names)
    monkeypatch.setattr(cas_pool, "pools_of", names["pools_of"])
    with pytest.raises(AssertionError, match="sleeps"):
        test_nothing_is_added_past_one_who_comes_to_wait()

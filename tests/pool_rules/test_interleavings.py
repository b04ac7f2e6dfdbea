"""Where one order is several writes: whatever mingles with it, and wherever somebody dies, nothing is lost or stuck."""

from collections.abc import Coroutine
from typing import Any

import pytest

from fairlock.rules.pools import CONFIRM_WINDOW, Give, On, Put, Queued, Quit, Seek, Taken
from fairlock.stores import cas_pools
from tests.pool_rules.interleave import Stage, every_order
from tests.pool_rules.walkthrough import LEASE

Scene = tuple[Stage, list[Coroutine[Any, Any, None]]]


def seek(stage: Stage, name: str, again: bool = False) -> Seek:
    return Seek(name, LEASE, True, stage.listener(name), name, again=again)


def one(*keys: str) -> Put:
    return Put(tuple((key, "null") for key in keys))


def nobody_sleeps_past_something(stage: Stage) -> None:
    """If an item is free, the head of the queue has been notified or has it."""
    items = stage.items()
    free = [i for i in items.values() if 0 <= i.score <= stage.now]
    queue = stage.queue()
    if free and queue:
        assert queue[0] in stage.hints, f"{queue[0]} sleeps, and {free[0].key} can be had"
    for name, reply in stage.replies.items():
        if isinstance(reply, Queued):
            has = any(i.ticket == name for i in items.values())
            assert name in queue or name in stage.hints or has, f"{name} waits, and nobody knows of it"
        if isinstance(reply, Taken):
            assert items[reply.key].ticket == name or items[reply.key].fence != reply.fence


def each_has_its_own(stage: Stage) -> None:
    got = [(name, r.key) for name, r in stage.replies.items() if isinstance(r, Taken)]
    assert len({key for _, key in got}) == len(got), f"two have the same: {got}"


def test_nothing_is_added_past_one_who_comes_to_wait() -> None:
    def scene() -> Scene:
        stage = Stage()
        return stage, [stage.begin("a", seek(stage, "a")), stage.begin("adder", one("x"))]

    assert every_order(scene, nobody_sleeps_past_something) > 5


def test_nothing_is_given_back_past_one_who_comes_to_wait() -> None:
    def scene() -> Scene:
        stage = Stage()
        stage.say("adder", one("x"))
        taken = stage.say("b", seek(stage, "b"))
        return stage, [stage.begin("a", seek(stage, "a")), stage.begin("b", On("x", Give("b", taken.fence)))]

    assert every_order(scene, nobody_sleeps_past_something) > 5


def test_two_who_come_at_once_do_not_take_the_same() -> None:
    def scene() -> Scene:
        stage = Stage()
        stage.say("adder", one("x"))
        return stage, [stage.begin("a", seek(stage, "a")), stage.begin("b", seek(stage, "b"))]

    def check(stage: Stage) -> None:
        nobody_sleeps_past_something(stage)
        each_has_its_own(stage)
        assert stage.items()["x"].ticket in ("a", "b")

    assert every_order(scene, check) > 50


def waiting(stage: Stage, *names: str) -> None:
    for name in names:
        assert isinstance(stage.say(name, seek(stage, name)), Queued)


def test_the_first_in_line_serves_the_second_while_that_one_polls() -> None:
    def scene() -> Scene:
        stage = Stage()
        waiting(stage, "a", "b")
        stage.say("adder", one("x", "y"))
        return stage, [stage.begin("a", seek(stage, "a", True)), stage.begin("b", seek(stage, "b", True))]

    def check(stage: Stage) -> None:
        nobody_sleeps_past_something(stage)
        each_has_its_own(stage)
        tickets = sorted(i.ticket for i in stage.items().values())
        assert tickets in (["a", "b"], ["", "a"]), tickets

    assert every_order(scene, check) > 100


def test_the_first_may_die_anywhere_while_it_serves_and_it_costs_the_window() -> None:
    def scene() -> Scene:
        stage = Stage()
        waiting(stage, "a", "b")
        stage.say("adder", one("x", "y"))
        return stage, [stage.begin("a", seek(stage, "a", True))]

    def check(stage: Stage) -> None:
        if isinstance(stage.replies.get("a"), Taken):
            return
        assert set(stage.items()) == {"x", "y"}, "something is lost"
        stage.now += CONFIRM_WINDOW + 1_000_000
        got = stage.say("b", seek(stage, "b", True))
        if isinstance(got, Queued):  # the dead one still is before it, for the rest of its poll_ttl
            stage.now += 2 * CONFIRM_WINDOW
            got = stage.say("b", seek(stage, "b", True))
        assert isinstance(got, Taken), got
        stage.now += LEASE
        others = {stage.say("c", seek(stage, "c")).key, got.key}
        assert others == {"x", "y"}

    assert every_order(scene, check, mortal=0) > 5


def test_one_that_quits_while_it_is_served_leaves_nothing_for_longer_than_the_window() -> None:
    def scene() -> Scene:
        stage = Stage()
        waiting(stage, "a", "b")
        stage.say("adder", one("x", "y"))
        return stage, [stage.begin("a", seek(stage, "a", True)), stage.begin("b", Quit("b", LEASE))]

    def check(stage: Stage) -> None:
        assert stage.queue() == []
        items = stage.items()
        assert [i.key for i in items.values() if i.ticket == "a"], "the first has something"
        for item in items.values():
            if item.ticket == "b":
                assert item.score <= stage.now + CONFIRM_WINDOW, "what was meant for one who quit is kept too long"

    assert every_order(scene, check) > 50


def test_a_named_item_is_not_added_past_one_who_waits_for_it() -> None:
    def scene() -> Scene:
        stage = Stage()
        request = seek(stage, "a")._replace(key="x")
        return stage, [stage.begin("a", request), stage.begin("adder", one("x"))]

    def check(stage: Stage) -> None:
        has = stage.items()["x"].ticket == "a"
        assert has or "a" in stage.hints, "it is there, and he sleeps"

    assert every_order(scene, check) > 5


def test_an_engine_that_does_not_look_again_after_joining_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or this file would show nothing."""
    source = cas_pools.__file__
    with open(source, encoding="utf-8") as file:
        text = file.read()
    words = "                    if stands or not queues.is_first(stood, seek.ticket):\n"
    assert text.count(words) == 1
    broken = text.replace(words, "                    if True:\n")
    names: dict[str, Any] = {"__name__": "fairlock.stores.cas_pools", "__package__": "fairlock.stores"}
    exec(compile(broken, source, "exec"), names)
    monkeypatch.setattr(cas_pools, "CasPools", names["CasPools"])
    with pytest.raises(AssertionError, match="sleeps"):
        test_nothing_is_added_past_one_who_comes_to_wait()

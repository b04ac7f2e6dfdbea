"""What the checks say about made-up histories: nothing about a good one, and one sentence about each that is not."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.faults import checks, plan
from tests.faults.holds import Event


class Story:
    """A history, made by hand. Each hold is asked for, entered, written twice and ended."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, what: str, at: float, **facts: Any) -> None:
        if what == "write":
            facts = {"accepted": True, "held": True, **facts}
        self.events.append({"what": what, "at": at, "pid": 1, **facts})

    def hold(self, hold: str, asked: float, start: float, last: float, fence: int, name: str = "lock") -> None:
        self.call(hold, asked, name)
        self.add("in", start, hold=hold, name=name, fence=fence)
        for at in (start, last):
            self.add("write", at, hold=hold, name=name, fence=fence)
        self.add("ended", last, hold=hold, how="")

    def call(self, hold: str, asked: float, name: str = "lock", timeout: float = 4.0) -> None:
        self.add("asked", asked, hold=hold, name=name, weight=1, timeout=timeout, queued=True, owner="o", fresh=False)

    def wrong(self) -> list[str]:
        return checks.all_of(sorted(self.events, key=lambda event: event["at"]))


def two(second_asks: float = 10.2, second_starts: float = 11.1, second_fence: int = 8, name: str = "lock") -> Story:
    """One hold from 10.1 to 11, and another one that comes meanwhile."""
    story = Story()
    story.hold("a", 10.0, 10.1, 11.0, 7, name)
    story.hold("b", second_asks, second_starts, 12.0, second_fence, name)
    return story


def late_write() -> Story:
    """The fences fall, so what comes too late is accepted."""
    story = two(11.05, 11.1, 6)
    story.add("write", 11.5, hold="a", name="lock", fence=7, held=False)
    return story


def refused() -> Story:
    story = two()
    story.events[2]["accepted"] = False
    return story


def passed_over() -> Story:
    story = Story()
    story.hold("holder", 9.0, 9.1, 13.0, 7)
    story.call("first", 10.0)
    story.hold("later", 12.0, 13.1, 13.2, 8)
    story.hold("first", 10.0, 13.3, 13.4, 9)
    return story


def ended(how: str, **facts: Any) -> Story:
    story = two()
    story.add("ended", 12.5, hold="b", how=how, **facts)
    return story


def done_twice() -> Story:
    story = Story()
    for at in (10.0, 11.0):
        story.add("done", at, key="k", fence=int(at), hold="a")
    return story


def hangs() -> Story:
    story = Story()
    story.call("a", 10.0)
    story.add("end", 10.0 + 4 + checks.SLOW + 1)
    return story


BAD: list[tuple[Callable[[], Story], str]] = [
    (lambda: two(second_starts=10.5), "too many believe"),
    (lambda: two(second_asks=10.2, second_fence=7), "a fence did not rise"),
    (lambda: two(second_asks=10.05, second_fence=7), "a fence was given twice"),
    (refused, "a write was refused"),
    (late_write, "a late write was accepted"),
    (passed_over, "passed by one that came later"),
    (done_twice, "was done twice"),
    (lambda: ended("KeyError"), "undocumented: KeyError"),
    (lambda: ended("ConfigError"), "undocumented: ConfigError"),
    (lambda: ended("LeaseLost"), "lost, although nothing had happened"),
    (hangs, "it took 13.0 s, with a timeout of 4 s"),
]


@pytest.mark.parametrize("bad, said", BAD, ids=[said for _, said in BAD])
def test_what_is_wrong_is_named(bad: Callable[[], Story], said: str) -> None:
    assert any(said in each for each in bad().wrong())


def test_nothing_is_said_about_a_good_history() -> None:
    assert two().wrong() == []
    assert two(second_starts=10.5, name="sem").wrong() == []
    assert ended("ConfigError", closed=True).wrong() == []


def test_a_fault_excuses_what_it_explains() -> None:
    for story in (passed_over(), ended("LeaseLost")):
        story.add("fault", 9.5, kind="server stopped", number=0, pid=None)
        story.add("healed", 10.5, kind="server stopped", number=0)
        story.events[-2]["pid"] = None
        assert story.wrong() == []


def test_a_client_that_connects_first_is_excused() -> None:
    for story in (passed_over(), ended("LeaseLost")):
        for event in story.events:
            event["fresh"] = True
        assert story.wrong() == []


def test_a_store_that_was_slow_for_everybody_is_an_excuse_for_that_time_only() -> None:
    for bad in (passed_over, lambda: ended("LeaseLost")):
        for until, said in ((10.5, 0), (5.0, 1)):
            story = bad()
            story.add("stalled", until, since=until - 1.0)
            story.events[-1]["pid"] = None
            assert len(story.wrong()) == said


@pytest.mark.parametrize("name, at, said", [("lock", 10.2, 0), ("other", 10.2, 1), ("lock", 1.0, 1)])
def test_a_late_eviction_excuses_a_loss_of_this_name_in_its_time(name: str, at: float, said: int) -> None:
    story = ended("LeaseLost")
    story.add("evicting", at, name=name, at_once=False)
    story.add("evicted", at + 0.1, name=name, done=True)
    assert len(story.wrong()) == said


@pytest.mark.parametrize("name, until, said", [("lock", 10.9, 0), ("lock", 15.0, 1), ("other", 10.9, 1)])
def test_an_eviction_at_once_excuses_an_overlap_until_its_holder_must_know(name: str, until: float, said: int) -> None:
    story = Story()
    story.hold("a", 10.0, 10.1, until, 7)
    story.add("evicting", 10.2, name=name, at_once=True)
    story.add("evicted", 10.3, name=name, done=True)
    story.hold("b", 10.2, 10.4, 16.0, 8)
    assert len(story.wrong()) == said


def test_a_smaller_semaphore_counts_from_when_it_was_made_smaller() -> None:
    story = two(second_starts=10.5, name="sem")
    story.add("resizing", 9.0, slots=1)
    story.add("resized", 9.5, slots=1)
    assert len(story.wrong()) == 1


def test_a_plan_is_made_from_its_seed_and_lets_every_kind_come() -> None:
    kinds = ("kill", "pause", "close"), ("server killed", "wire severed")
    made = plan.make(7, *kinds, processes=3, seconds=20)
    assert made == plan.make(7, *kinds, processes=3, seconds=20) != plan.make(8, *kinds, processes=3, seconds=20)
    assert {fault.kind for fault in made.faults} == {*kinds[0], *kinds[1]}

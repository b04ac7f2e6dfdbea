"""What one client writes into the index of busy names, and when: with a clock and a server of its own."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from fairlock.engine.busy_name_index import FRESH, HeldNames
from fairlock.engine.grant import Grant
from fairlock.engine.request import LockRequest
from fairlock.engine.run_sync import run
from fairlock.errors import StoreError
from fairlock.stores.redis.busy_name_index import GRACE, LASTS, LOCK, POOL, NameIndex


class Place:
    """The backend and its runtime."""

    blocking = True
    namespace = ""

    def __init__(self) -> None:
        self.runtime = self
        self.now = 1000.0
        self.down = False
        self.index = NameIndex(self)  # type: ignore[arg-type]
        self.sent: list[tuple[list[str], list[str]]] = []

    def clock(self) -> float:
        return self.now

    def mutex(self) -> Any:
        return threading.Lock()

    async def send(self, command: Any) -> list[Any]:
        words = command.command.split(b"\r\n")[2::2][4:]
        count = int(words[0])
        drop, put = words[1 : 1 + count], words[2 + count :: 2]
        self.sent.append(([_name(each) for each in put if each], [_name(each) for each in drop]))
        self.while_sending()
        if self.down:
            raise StoreError("down")
        return [0]

    def while_sending(self) -> None:
        pass

    def keep(self, locks: dict[str, float], pools: dict[str, float] | None = None) -> list[tuple[list[str], list[str]]]:
        """Return what is put and dropped."""
        self.sent.clear()
        run(self.index.keep(locks, {} if pools is None else pools))
        return list(self.sent)


def _name(member: bytes) -> str:
    kind, _, name, _ = member.decode().split("\x1f")
    return f"{kind} {name}"


@pytest.fixture
def place() -> Place:
    return Place()


def test_names_are_written_once(place: Place) -> None:
    held, taken = {"a": 30.0, "b": 30.0}, {"p": 60.0}
    assert place.keep(held, taken) == [(["l a", "l b", "p p"], [])]
    place.now += 1
    assert place.keep(held, taken) == []
    assert place.keep(dict(held), dict(taken)) == []
    assert place.keep({**held, "c": 30.0}, taken) == [(["l c"], [])]


def test_a_member_is_written_again_long_before_it_counts_no_more(place: Place) -> None:
    place.keep({"a": 30.0})
    place.now += LASTS / 2 - 1
    assert place.keep({"a": 30.0}) == []
    place.now += 2
    assert place.keep({"a": 30.0}) == [(["l a"], [])]


def test_a_longer_lease_counts_for_longer(place: Place) -> None:
    place.keep({"a": 30.0})
    assert place.keep({"a": 3600.0}) == [(["l a"], [])]
    assert place.keep({"a": 3600.0}) == []


def test_a_write_that_fails_is_tried_again_with_the_same_names(place: Place) -> None:
    held: dict[str, float] = {"a": 30.0}
    place.down = True
    assert place.keep(held) == [(["l a"], [])]
    assert place.keep(held) == [(["l a"], [])]
    place.down = False
    assert place.keep(held) == [(["l a"], [])]
    assert place.keep(held) == []


def test_a_name_that_is_held_no_more_is_removed_after_a_moment(place: Place) -> None:
    held: dict[str, float] = {"b": 30.0}
    place.keep({"a": 30.0, **held})
    assert place.keep(held) == []
    place.now += GRACE / 2
    assert place.keep(held) == []
    place.now += GRACE
    place.down = True
    assert place.keep(held) == [([], ["l a"])]
    place.down = False
    assert place.keep(held) == [([], ["l a"])], "a removal that fails is tried again"
    assert place.keep(held) == []


def test_what_may_have_been_written_is_removed(place: Place) -> None:
    place.down = True
    place.keep({"a": 30.0})
    place.down = False
    place.keep({})
    place.now += 2 * GRACE
    assert place.keep({}) == [([], ["l a"])]
    run(place.index.clear())
    assert place.sent == [([], ["l a"])], "and nothing is left to be cleared"


def test_a_name_that_is_held_again_in_time_is_not_removed(place: Place) -> None:
    place.keep({"a": 30.0})
    place.keep({})
    place.now += GRACE / 2
    assert place.keep({"a": 30.0}) == []
    place.now += 2 * GRACE
    assert place.keep({"a": 30.0}) == []


def test_a_name_that_is_held_again_while_it_is_removed_is_listed_again(place: Place) -> None:
    held: dict[str, float] = {"a": 30.0}
    place.keep(held)
    place.keep({})
    place.now += 2 * GRACE
    place.while_sending = lambda: place.index._held.update({LOCK: held})  # type: ignore[method-assign]
    assert place.keep({}) == [([], ["l a"])]
    assert place.keep(held) == [(["l a"], [])]


def test_what_is_waited_for_stays_until_the_wait_is_over(place: Place) -> None:
    run(place.index.wait(POOL, "p", 5.0))
    assert place.sent == [(["p p"], [])]
    place.now += 5.0
    assert place.keep({}) == []
    place.now += GRACE
    assert place.keep({}) == [([], ["p p"])]


def test_what_is_held_after_a_wait_stays(place: Place) -> None:
    held: dict[str, float] = {"a": 30.0}
    run(place.index.wait(LOCK, "a", 5.0))
    place.keep(held)
    place.now += 60.0
    assert place.keep(held) == []
    assert not place.index._ends, "nothing of the wait is left"
    place.keep({})
    place.now += GRACE
    assert place.keep({}) == [([], ["l a"])]


def test_all_is_cleared(place: Place) -> None:
    place.keep({"a": 30.0}, {"p": 30.0})
    place.down = True
    place.keep({"a": 30.0, "b": 30.0}, {"p": 30.0})
    place.down = False
    place.sent.clear()
    run(place.index.clear())
    assert place.sent == [([], ["l a", "l b", "p p"])], "also what may have been written"


def test_the_same_grants_have_the_same_names() -> None:
    def grant(name: str, lease: float = 30.0, pool: bool = False) -> Grant:
        found = Grant(LockRequest(name, 1, 1, lease), "t")
        found.request.pool = pool
        return found

    names = HeldNames()
    a, long, b = grant("a"), grant("a", 90.0), grant("b")
    names.collect([long, a, b], 0.0)
    assert (names.locks, names.pools) == ({"a": 90.0, "b": 30.0}, {})
    first = names.locks
    names.collect([long, a, b], 1.0)
    assert names.locks is first
    b.lease = 600.0
    names.collect([long, a, b], FRESH)
    assert names.locks == {"a": 90.0, "b": 600.0}, "a lease that was extended"
    names.collect([a, grant("p", pool=True)], FRESH)
    assert (names.locks, names.pools) == ({"a": 30.0}, {"p": 30.0})

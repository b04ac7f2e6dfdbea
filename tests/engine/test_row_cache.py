"""The last seen rows of a client, and what a row shows to a waiter."""

import pytest

from fairlock.engine.run_sync import run
from fairlock.rules.locks import EMPTY, EXCLUSIVE, Acquire, LockState, Release, apply, codec
from fairlock.stores.base import Pushed, Row, RowSnapshot
from fairlock.stores.polling import Ahead, standing
from fairlock.stores.row_cache import CAPACITY, UNDER_WAY, KnownRow, RowCache


def enter(ticket: str) -> Acquire:
    return Acquire(ticket, EXCLUSIVE, EXCLUSIVE, 30_000_000, listener="somewhere")


def after(*commands: Acquire | Release) -> LockState:
    state = EMPTY
    for command in commands:
        state = apply(state, command, 1_000_000)[0]
    return state


QUEUE = after(enter("a"), enter("b"), enter("c"))


def snapshot(state: LockState, version: int, at: float) -> RowSnapshot:
    return RowSnapshot(Row("k", state.fence, "", codec.encode(state)), version, 1_000_000, at)


class Rows:
    """A cache over a store whose every read is counted."""

    def __init__(self) -> None:
        self.cache = RowCache()
        self.now = 100.0
        self.reads = 0

    async def read(self) -> RowSnapshot:
        self.reads += 1
        return snapshot(QUEUE, self.reads, self.now)

    def get(self, age: float) -> KnownRow | None:
        return run(self.cache.read("k", age, lambda: self.now, self.read))


@pytest.fixture
def rows() -> Rows:
    return Rows()


def test_waiters_share_what_one_has_read(rows: Rows) -> None:
    first = rows.get(1.0)
    assert first is not None and first.state == QUEUE
    rows.now += 0.5
    assert rows.get(1.0) is first and rows.reads == 1
    assert rows.get(0.4) is not first and rows.reads == 2


def test_while_one_reads_the_others_look_again_later_but_not_forever(rows: Rows) -> None:
    rows.cache._reading["k"] = rows.now
    assert rows.get(0.0) is None and rows.reads == 0
    rows.now += UNDER_WAY
    assert rows.get(0.0) is not None


def test_a_later_row_is_not_replaced_by_an_earlier_one() -> None:
    cache = RowCache()
    cache.put("k", KnownRow(QUEUE, 2, 20.0))
    cache.put("k", KnownRow(EMPTY, 1, 19.0))
    known = cache.get("k")
    assert known is not None and known.version == 2
    cache.put("k", KnownRow(EMPTY, 3, 20.0))
    known = cache.pop("k", None)
    assert known is not None and known.version == 3 and cache.get("k") is None


def test_a_row_that_the_store_did_not_show_is_not_kept() -> None:
    """It has a version, but its state is unknown: written from it, a lock that is held would be free."""
    cache = RowCache()
    cache.show("k", RowSnapshot(None, 17, 1_000_000, 20.0), EMPTY)
    assert cache.get("k") is None
    cache.show("k", RowSnapshot(None, None, 1_000_000, 20.0), EMPTY)
    assert cache.get("k") is not None, "there is certainly no row"


def test_what_was_seen_before_a_wakeup_is_dropped() -> None:
    cache = RowCache()
    cache.put("k", KnownRow(QUEUE, 2, 20.0))
    cache.drop_older("k", 20.0)
    assert cache.get("k") is not None
    cache.drop_older("k", 20.1)
    assert cache.get("k") is None


def test_it_is_bounded() -> None:
    cache = RowCache()
    for number in range(CAPACITY + 1):
        cache.put(f"k{number}", KnownRow(EMPTY, number, 1.0))
    assert len(cache) <= CAPACITY and cache.get(f"k{CAPACITY}") is not None


def test_a_waiter_learns_how_many_are_ahead() -> None:
    assert standing(KnownRow(QUEUE, 1, 10.0), "c") == Ahead(1)
    assert standing(KnownRow(QUEUE, 1, 10.0, 1_000_000), "b") == Ahead(0, due=30.0), "until the holder's lease ends"
    assert standing(KnownRow(QUEUE, 1, 10.0, 32_000_000), "b") == Pushed("b"), "it has ended"
    assert standing(KnownRow(QUEUE, 1, 10.0), "gone") == Pushed("gone")


def test_a_grant_that_a_row_shows_counts_from_before_the_read() -> None:
    granted = after(enter("a"), enter("b"), Release("a"))
    (grant,) = granted.holders
    shown = standing(KnownRow(granted, 1, 10.0, 1_500_000), "b")
    assert shown == Pushed("b", grant.place, grant.fence, 10.0 + 1.5), "the window of two seconds began at 1.0"
    assert standing(KnownRow(granted, 1, 10.0), "b") == Pushed("b", grant.place, grant.fence), "the time is not known"

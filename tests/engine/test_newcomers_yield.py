"""Where a refused write is expensive, requests that can wait keep out of the way of the others: those of newcomers that
have met a queue, and those that keep a place far back in it."""

from typing import Any

import pytest

from fairlock.engine.run_sync import run
from fairlock.rules.locks import EMPTY, EXCLUSIVE, Acquire, Command, LockState, Release, apply, codec
from fairlock.stores.base import Row, RowSnapshot, Store, Written
from fairlock.stores.cas import GIVES_WAY, LONG, LONG_TTL, WAYS, CasBackend
from fairlock.sync.runtime import ThreadRuntime

NOW = 1_800_000_000_000_000


def enter(ticket: str) -> Acquire:
    return Acquire(ticket, EXCLUSIVE, EXCLUSIVE, 5_000_000, True, True, 1, "", "somebody", "")


def after(*commands: Command) -> LockState:
    record = EMPTY
    for command in commands:
        record, _, _ = apply(record, command, NOW - 1_000_000)
    return record


class Clock(ThreadRuntime):
    def __init__(self) -> None:
        super().__init__()
        self.here, self.naps = 100.0, []  # type: ignore[var-annotated]

    def clock(self) -> float:
        return self.here

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.here += seconds


    def event(self) -> Any:
        return Unset(self)


class Unset:
    """The event of a client whose other threads want nothing."""

    def __init__(self, clock: Clock) -> None:
        self.wait = clock.sleep

    def clear(self) -> None:
        pass


class Crowded(Store):
    """A store in which others write first, `refusals` times; what they have written is `there`."""

    where, scope = "crowded://", "machines"
    backs_off = True
    scan = delete = wait_for_wakeup = None  # type: ignore[assignment]  # not called here

    def __init__(self, runtime: Clock, there: LockState, refusals: int) -> None:
        self.runtime, self.there, self.refusals = runtime, there, refusals
        self.version, self.reads, self.shows, self.late = 1, 0, True, False

    def _seen(self) -> RowSnapshot:
        return RowSnapshot(Row("x", 0, "", codec.encode(self.there)), self.version, NOW, self.runtime.here)

    async def read(self, key: str, settle: bool = False) -> RowSnapshot:
        self.reads += 1
        return self._seen()

    async def write(self, row: Row, expected: Any, now: int, woken: Any) -> Written | RowSnapshot:
        self.runtime.here += 0.01
        self.version += not self.late
        if self.refusals:
            self.refusals -= 1
            return self._seen() if self.shows else RowSnapshot(None, expected, now, self.runtime.here)
        return Written(self.version, now, self.runtime.here)


def told(
    there: LockState,
    command: Command,
    refusals: int = 3,
    backs_off: bool = True,
    shows: bool = True,
    late: bool = False,
    shares: bool = False,
) -> tuple[list[float], int]:
    """Return for how long the sender paused, and how often it read."""
    runtime = Clock()
    store = Crowded(runtime, there, refusals)
    store.backs_off, store.shows, store.late, store.shares_steps = backs_off, shows, late, shares
    run(CasBackend(store, runtime).call("x", command))
    return runtime.naps, store.reads


@pytest.mark.parametrize("shares", [False, True], ids=["each step alone", "steps together"])
def test_who_comes_while_others_stand_in_line_pauses_longer_each_time_and_looks_again(shares: bool) -> None:
    there = after(enter("a"), enter("b"))
    several = [told(there, enter("me"), shares=shares) for _ in range(400)]
    for naps, reads in several:
        assert len(naps) == 3 and reads == 4, "what was shown before the pause is not used"
        assert all(nap <= 0.01 * WAYS * turn + 1e-9 for turn, nap in enumerate(naps, 1))
    means = [sum(naps[turn] for naps, _ in several) / len(several) for turn in range(3)]
    assert means == sorted(means), "longer each time"
    assert len({naps[0] for naps, _ in several}) > 300, "by lot, or all would come back at the same instant"


def test_a_store_that_does_not_show_what_is_there() -> None:
    """Then the client decides by what it read before whether others stand in the queue."""
    assert len(told(after(enter("a"), enter("b")), enter("me"), shows=False)[0]) == 3
    assert told(after(enter("a")), enter("me"), shows=False) == ([], 4)


def test_a_write_that_was_refused_for_its_time_is_made_again_at_once() -> None:
    assert told(after(enter("a"), enter("b")), enter("me"), late=True) == ([], 4)


@pytest.mark.parametrize("shares", [False, True], ids=["each step alone", "steps together"])
def test_a_newcomer_gives_way_for_a_second_and_no_longer(shares: bool) -> None:
    """Those that are in the queue never do: one that went on to pause longer each time would starve beside them."""
    for _ in range(20):
        naps, _ = told(after(enter("a"), enter("b")), enter("me"), refusals=150, shares=shares)
        assert sum(naps) > GIVES_WAY / 2
        assert 0.01 * WAYS * 150 > GIVES_WAY
        assert sum(naps) < GIVES_WAY + 150 * 0.002, "from then on it pauses like all others"


@pytest.mark.parametrize("ticket, pauses", [("holder", 0), ("next", 0), ("second", 0), ("third", 3)])
def test_one_that_keeps_a_place_far_back_gives_way_and_the_next_ones_do_not(ticket: str, pauses: int) -> None:
    """All of the queue polls at the same time. A client that is granted then must get through, or the others wait."""
    there = after(*map(enter, ("holder", "next", "second", "third")))
    assert len(told(there, enter(ticket))[0]) == pauses


def test_while_no_client_is_queued_one_that_pauses_would_never_get_its_turn() -> None:
    assert told(after(enter("a")), enter("me")) == ([], 1)


def test_who_leaves_does_not_wait_for_those_who_come() -> None:
    assert told(after(enter("me"), enter("b")), Release("me")) == ([], 1)


@pytest.mark.parametrize("refusals", [1, 3])
def test_where_a_refusal_costs_nothing_nobody_pauses(refusals: int) -> None:
    assert told(after(enter("a"), enter("b")), enter("me"), refusals, backs_off=False) == ([], 1)


class Remembered(Crowded):
    """A store whose rows may be used for a while after they were read."""

    cache_ttl = 10.0

    def now(self) -> tuple[int, float] | None:
        return NOW, self.runtime.here


@pytest.mark.parametrize(
    "shows, waiters, age, reads",
    [(False, LONG, 2, 1), (False, LONG, 0.5, 0), (False, LONG - 1, 2, 0), (True, LONG, 2, 0)],
)
def test_the_row_of_a_long_queue_is_read_before_a_write_that_would_most_likely_be_refused(
    shows: bool, waiters: int, age: float, reads: int
) -> None:
    """Only where a refusal does not show the row, and not if it was seen a moment ago."""
    runtime = Clock()
    store = Remembered(runtime, after(*[enter(str(number)) for number in range(waiters + 1)]), 0)
    store.shows_conflicts = shows
    backend = CasBackend(store, runtime)
    backend._start("x", store._seen())
    runtime.here += LONG_TTL * age
    run(backend.call("x", Release("0")))
    assert store.reads == reads

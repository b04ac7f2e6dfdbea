"""Long lives of larger doors, by Hypothesis: the laws in every step, and two witnesses who know no rules."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairlock.rules.locks import (
    CONFIRM_WINDOW,
    EMPTY,
    Acquire,
    Ask,
    Command,
    Detach,
    Evict,
    Granted,
    LockState,
    Release,
    Renew,
    Resize,
)
from fairlock.rules.locks import apply as true_apply
from tests.lock_rules.invariants import Holders, Queue
from tests.lock_rules.laws import check
from tests.lock_rules.resource import SECOND, START, Apply, LockUnderTest
from tests.lock_rules.step import Step

CAPACITY = 4
WEIGHTS = {"a": 4, "b": 4, "c": 1, "d": 1, "e": 2, "f": 3, "g": 1, "h": 4}
LEASES = {"a": 30, "b": 3, "c": 1, "d": 30, "e": 10, "f": 3, "g": 70, "h": 2}
TICKETS = sorted(WEIGHTS)
NO_LISTENER = frozenset("d")

CLIENTS = (
    ["enter"] * 8 + ["leave"] * 4 + ["renew"] * 2 + ["try", "barge", "leave_tombstone", "downgrade", "stranger", "keep"]
)
OPERATORS = ["ask", "evict", "evict at once", "evict all", "resize"]
GAPS = [
    0,
    0,
    0,
    1,
    1000,
    SECOND // 2,
    SECOND,
    CONFIRM_WINDOW - 1,
    CONFIRM_WINDOW,
    CONFIRM_WINDOW + 1,
    3 * SECOND,
    6 * SECOND,
    61 * SECOND,
]
BACK = [-1, -SECOND, -CONFIRM_WINDOW, -40 * SECOND]


class Moment(NamedTuple):
    word: str
    ticket: str
    number: int
    gap: int
    unreachable: frozenset[str] = frozenset()
    dead: frozenset[str] = frozenset()


lives = st.binary(min_size=300, max_size=1200)


def life(data: bytes, words: list[str], gaps: list[int], all_is_well: bool = False) -> Iterator[Moment]:
    """Six bytes make a moment: much quicker to draw than structures, and what is cut out of the middle goes whole."""
    for i in range(0, len(data) - 5, 6):
        word, ticket, number, gap, unreachable, dead = data[i : i + 6]
        yield Moment(
            words[word % len(words)], TICKETS[ticket % 8], number % 4, gaps[gap % len(gaps)],
            frozenset()
            if all_is_well or unreachable < 128
            else frozenset(t for n, t in enumerate(TICKETS) if unreachable >> n & 1),
            frozenset() if all_is_well or dead < 220 else frozenset(TICKETS[dead % 8]),
        )  # fmt: skip


def say(word: str, ticket: str, number: int, record: LockState) -> Command:
    """The command for a word; where it needs a fence, one that means something to this record."""
    fence = next((e.fence for e in record.holders if e.ticket == ticket), None)
    enter = Acquire(
        ticket, CAPACITY, WEIGHTS[ticket], LEASES[ticket] * SECOND,
        block=1 + "abc".find(ticket) % 3, listener="" if ticket in NO_LISTENER else "listener",
    )  # fmt: skip
    commands: dict[str, Command] = {
        "enter": enter,
        "try": enter._replace(wait=False),
        "barge": enter._replace(fair=False),
        "leave": Release(ticket, fence=fence),
        "leave_tombstone": Release(ticket, leave_tombstone=True, lease=(None, None, None, 3 * SECOND)[number]),
        "renew": Renew(ticket, fence, lease=(None, None, 2 * SECOND, 40 * SECOND)[number]),
        "downgrade": Renew(ticket, fence, weight=1),
        "stranger": Renew(ticket, (fence or 0) + 1 + number) if number % 2 else Release(ticket, fence=(fence or 5) - 1),
        "keep": Detach(ticket, fence, (1 + number * 10) * SECOND, number % 2 == 1),
        "ask": Ask(ticket, "ops", f"for the {number}. time"),
        "evict": Evict(ticket, "ops", "why"),
        "evict at once": Evict(ticket, "ops", "why", at_once=True),
        "evict all": Evict(None, "ops", "why", at_once=number == 0),
        "resize": Resize((1, 3, 4, None)[number]),
    }
    return commands[word]


def no_law_is_broken(data: bytes) -> None:
    record, now = EMPTY, START
    for m in life(data, CLIENTS + OPERATORS, GAPS + BACK):
        now += m.gap
        step = Step(true_apply, record, say(m.word, m.ticket, m.number, record), now, m.unreachable, m.dead)
        check(step)
        event(type(step.reply).__name__)
        record = step.after


@given(lives)
@settings(max_examples=100)
def test_no_law_is_broken_in_a_long_life(data: bytes) -> None:
    no_law_is_broken(data)


def those_who_believe_to_be_inside_fit(data: bytes, apply: Apply) -> int:
    """Return the number of grants that the clients of this life learned of."""
    holders = Holders(CAPACITY)
    record, time, behind = EMPTY, START, 0
    for m in life(data, [*CLIENTS, "resize"], GAPS + BACK):
        if m.gap < 0:
            behind -= m.gap  # the store's clock goes back, the clients' does not
        else:
            time += m.gap
        command = say(m.word, m.ticket, m.number, record)
        record, reply, woken = apply(record, command, time - behind, m.unreachable, m.dead)
        holders.hear(time, command, reply, woken, m.dead - NO_LISTENER)
    return len(holders.weights)


@given(lives)
@settings(max_examples=300)
def test_those_who_believe_to_be_inside_always_fit(data: bytes) -> None:
    event(f"grants: {those_who_believe_to_be_inside_fit(data, true_apply) // 5 * 5}…")


def the_line_is_a_plain_queue(data: bytes, apply: Apply) -> int:
    queue = Queue(CAPACITY)
    record, now, passed = EMPTY, START, 0
    for m in life(data, ["enter"] * 6 + ["leave"] * 4 + ["try", "barge", "downgrade"], [0, 1, 1000], all_is_well=True):
        now += m.gap
        command = say(m.word, m.ticket, m.number, record)
        record, reply, _ = apply(record, command, now)
        queue.hear(command)
        assert [e.ticket for e in record.queue] == list(queue.queue)
        assert {e.ticket: e.weight for e in record.holders} == queue.holders
        passed += isinstance(reply, Granted)
    return passed


@given(lives)
@settings(max_examples=200)
def test_on_a_quiet_day_the_line_is_a_plain_queue(data: bytes) -> None:
    event(f"grants: {the_line_is_a_plain_queue(data, true_apply) // 10 * 10}…")


@pytest.mark.soak
def test_no_law_is_broken_in_many_long_lives() -> None:
    settings(max_examples=5_000)(given(lives)(no_law_is_broken))()


@pytest.mark.soak
def test_in_many_long_lives_those_who_believe_to_be_inside_fit() -> None:
    def fit(data: bytes) -> None:
        those_who_believe_to_be_inside_fit(data, true_apply)

    settings(max_examples=5_000)(given(lives)(fit))()


def test_a_grant_kept_closed_after_the_clock_was_set_back_wakes_the_head() -> None:
    """The clock goes back by a second and the lease becomes longer by one: its end is at the same time as before."""
    lock = LockUnderTest()
    lock.enter("a", lease=30 * SECOND)
    lock.keep("a", 30 * SECOND)
    lock.enter("b")
    before = lock.record
    step = Step(true_apply, before, Detach("a", before.holders[0].fence, 31 * SECOND, True), before.seen - SECOND)
    assert step.after.holders[0].expires == before.holders[0].expires
    assert [w.ticket for w in step.woken] == ["b"]
    check(step)

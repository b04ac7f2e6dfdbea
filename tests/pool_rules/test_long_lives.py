"""Long lives of larger pools, by Hypothesis: the laws in every step, and a witness who knows no rules."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairlock.rules.pools import (
    CONFIRM_WINDOW,
    NOBODY,
    Finish,
    Finished,
    Give,
    Given,
    ItemState,
    On,
    Order,
    Put,
    Quit,
    Remove,
    Removed,
    Seek,
    Taken,
    Touch,
    Touched,
    WorkerQueue,
)
from tests.pool_rules.laws import check
from tests.pool_rules.step import Step
from tests.pool_rules.walkthrough import SECOND, START, TRUE, Rack

KEYS = [f"item {n}" for n in range(6)]
TICKETS = "abcdefgh"
LEASES = {"a": 1, "b": 2, "c": 3, "d": 10, "e": 30, "f": 30, "g": 70, "h": 1}
NAMED = {"g": KEYS[1], "h": KEYS[2]}
WORDS = ["seek"] * 9 + ["put"] * 4 + ["touch"] * 2 + ["give"] * 3 + ["finish", "rest", "try", "quit", "stranger"]
OPERATORS = ["remove", "remove by force"]
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
    9 * SECOND,
    31 * SECOND,
]
BACK = [-1, -SECOND, -40 * SECOND]

lives = st.binary(min_size=200, max_size=600)


class Moment(NamedTuple):
    word: str
    ticket: str
    key: str
    gap: int
    dead: frozenset[str]


def life(data: bytes, words: list[str], gaps: list[int]) -> Iterator[Moment]:
    """Five bytes make a moment: much quicker to draw than structures."""
    for i in range(0, len(data) - 4, 5):
        word, ticket, key, gap, dead = data[i : i + 5]
        yield Moment(
            words[word % len(words)], TICKETS[ticket % 8], KEYS[key % 6], gaps[gap % len(gaps)],
            frozenset() if dead < 200 else frozenset(TICKETS[dead % 8]),
        )  # fmt: skip


def say(m: Moment, items: dict[str, ItemState]) -> Order:
    """Return the order for a word; an order for an item comes most often from the worker that has it."""
    mine = next((i for i in items.values() if i.ticket == m.ticket), None)
    item = mine or items.get(m.key) or ItemState(m.key, 0)
    lease = LEASES[m.ticket] * SECOND
    seek = Seek(m.ticket, lease, True, f"listener {m.ticket}", f"owner {m.ticket}", "", NAMED.get(m.ticket, ""))
    orders: dict[str, Order] = {
        "seek": seek,
        "try": seek._replace(wait=False),
        "put": Put(((m.key, f'"{m.key}"'), (KEYS[0], '"first"'))),
        "touch": On(item.key, Touch(m.ticket, item.fence, f'"{m.gap}"', (None, None, lease, 9 * SECOND)[m.gap % 4])),
        "give": On(item.key, Give(m.ticket, item.fence)),
        "rest": On(item.key, Give(m.ticket, item.fence, 4 * SECOND, '"tired"')),
        "finish": On(item.key, Finish(m.ticket, item.fence, '"result"')),
        "stranger": On(m.key, Touch(m.ticket, items[m.key].fence - 1 if m.key in items else 5)),
        "quit": Quit(m.ticket, lease),
        "remove": On(m.key, Remove()),
        "remove by force": On(m.key, Remove(force=True)),
    }
    return orders[m.word]


def no_law_is_broken(data: bytes) -> None:
    items: dict[str, ItemState] = {}
    queue: WorkerQueue = NOBODY
    now = START
    for m in life(data, WORDS + OPERATORS, GAPS + BACK):
        now += m.gap
        step = Step(TRUE, items, queue, say(m, items), now, m.dead)
        check(step)
        event(type(step.reply).__name__)
        items, queue = step.items, step.queue


@given(lives)
@settings(max_examples=40)
def test_no_law_is_broken_in_a_long_life(data: bytes) -> None:
    no_law_is_broken(data)


class Workers:
    """All workers together: this sees what they send and receive, never the pool.

    A worker that was given an item believes that it has it until the granted time is over on its own clock. No two
    ever believe it of the same item, an item's fence rises with every take that was reported, and each is done once.
    """

    def __init__(self) -> None:
        self.until: dict[str, tuple[str, int]] = {}  # by key: who believes to have it, and until when
        self.fences: dict[str, int] = {}
        self.done: dict[str, int] = {}

    def hear(self, time: int, order: Order, reply: object) -> None:
        self.until = {key: (t, end) for key, (t, end) in self.until.items() if end > time}
        if isinstance(order, Seek) and isinstance(reply, Taken):
            self._believes(reply.key, order.ticket, time, reply.left)
            assert reply.fence >= self.fences.get(reply.key, 0), "a fence fell"
            self.fences[reply.key] = reply.fence
        elif isinstance(order, Quit):
            self.until = {key: (t, end) for key, (t, end) in self.until.items() if t != order.ticket}
        elif isinstance(order, On):
            if isinstance(reply, Touched) and isinstance(order.command, Touch):
                self._believes(order.key, order.command.ticket, time, reply.left)
                assert order.command.fence >= self.fences.get(order.key, 0), "one with an old fence goes on"
            elif isinstance(reply, Removed):
                self.until.pop(order.key, None)
                self.done.pop(order.key, None)
                self.fences.pop(order.key, None)  # another one of that name begins with the clock, which may go back
            elif isinstance(order.command, Give | Finish) and isinstance(reply, Given | Finished):
                if self.until.get(order.key, ("", 0))[0] == order.command.ticket:
                    del self.until[order.key]
                if isinstance(reply, Finished):
                    assert self.done.setdefault(order.key, order.command.fence) == order.command.fence, "done twice"

    def _believes(self, key: str, ticket: str, time: int, left: int) -> None:
        other, end = self.until.get(key, (ticket, 0))
        assert other == ticket, f"{other} has {key} for another {end - time}, and {ticket} is told that he has it"
        self.until[key] = (ticket, time + left)


def no_two_believe_to_have_it(data: bytes) -> int:
    workers = Workers()
    rack, queue, time, behind = Rack(), NOBODY, START, 0
    for m in life(data, [*WORDS, "remove"], GAPS + BACK[:2]):
        if m.gap < 0:
            behind -= m.gap  # the store's clock goes back, the workers' do not
        else:
            time += m.gap
        order = say(m, rack.items)
        queue, reply, _ = TRUE.step(rack, queue, order, time - behind, m.dead)
        workers.hear(time, order, reply)
    return len(workers.fences)


@given(lives)
@settings(max_examples=100)
def test_no_two_ever_believe_to_have_the_same_item(data: bytes) -> None:
    event(f"items taken: {no_two_believe_to_have_it(data)}")


@pytest.mark.soak
def test_no_law_is_broken_in_many_long_lives() -> None:
    settings(max_examples=3_000)(given(lives)(no_law_is_broken))()


@pytest.mark.soak
def test_in_many_long_lives_no_two_believe_to_have_the_same_item() -> None:
    def none_do(data: bytes) -> None:
        no_two_believe_to_have_it(data)

    settings(max_examples=5_000)(given(lives)(none_do))()

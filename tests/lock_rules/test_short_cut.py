"""The short cut of the rules answers what the long way would, for any record at all, and a step changes no input."""

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlock.rules.locks import Acquire, Entry, LockState, Release, Renew, Tombstone, Why, apply, codec
from fairlock.rules.locks.encoded_queue import EncodedQueue, fresh_until
from tests.lock_rules.resource import SECOND, START
from tests.lock_rules.variant import variant

the_long_way = variant(("    if not (unreachable or dead):\n", "    if False:\n"))

tickets = st.sampled_from("abcde")
instants = st.sampled_from([START + n for n in (-40 * SECOND, -2, -1, 0, 1, 2, 40 * SECOND)])
spans = st.sampled_from([2, SECOND, 30 * SECOND])
weights = st.integers(0, 3)
listeners = st.sampled_from(["", "listener", "listener"])
entries = st.builds(
    Entry, tickets, st.integers(1, 3), spans, spans, st.integers(1, 3),
    st.sampled_from(["", "listener"]), st.just("böb"),
    st.just("\u2028 \x7f"), st.integers(0, 5), instants, instants, instants, st.booleans(), st.integers(0, 3),
)  # fmt: skip
tombstones = st.builds(
    Tombstone, tickets, instants, spans, st.builds(Why, st.sampled_from(["left", "evicted", "asked"]))
)


@st.composite
def records(draw: st.DrawFn) -> LockState:
    """Any state, and mostly one for the shortcuts: few holders or none, alone or with a queue, no tombstones."""
    everybody = draw(st.lists(entries, max_size=5, unique_by=lambda e: e.ticket))
    cut = draw(st.sampled_from([0, 1, 1, 1, 2, 2, 3]))
    holders, queue = everybody[:cut], [e._replace(fence=0, confirmed=False) for e in everybody[cut:]]
    if draw(st.integers(0, 3)):
        queue = [e._replace(passed=0, expires=START + 90 * SECOND) for e in queue]
        holders = [e._replace(expires=START + 90 * SECOND) for e in holders]
    dug = draw(st.lists(tombstones, max_size=1)) if draw(st.integers(0, 3)) == 0 else []
    last = max([draw(instants), *[e.fence + e.block - 1 for e in holders]])
    return LockState(
        draw(weights), draw(st.booleans()), last, 7, draw(instants), tuple(holders), tuple(queue), tuple(dug)
    )


commands = st.one_of(
    st.builds(
        Acquire, tickets, weights, weights, spans, st.booleans(), st.booleans(), st.integers(0, 3),
        st.sampled_from(["", "listener"]),
    ),
    st.builds(Release, tickets, st.booleans(), st.none() | instants, st.none() | spans),
    st.builds(Renew, tickets, st.none() | instants, st.none() | weights),
)  # fmt: skip
some: st.SearchStrategy[frozenset[str]] = st.just(frozenset()) | st.frozensets(tickets, max_size=1)


def same_answer(
    record: LockState, command: Acquire | Release | Renew, now: int, unreachable: frozenset[str], dead: frozenset[str]
) -> None:
    assert apply(record, command, now, unreachable, dead) == the_long_way(record, command, now, unreachable, dead)


@st.composite
def crowds(draw: st.DrawFn) -> tuple[LockState, Acquire | Release]:
    """A lock or semaphore with living holders and waiters, and a step of one of them or of a newcomer."""
    size = draw(st.integers(1, 3))
    everybody = [
        Entry(ticket, draw(st.sampled_from([1, 2])), 30 * SECOND, 6 * SECOND, 1, draw(listeners), "", "", place,
              START, START + draw(st.sampled_from([9, 30])) * SECOND, place, draw(st.booleans()))
        for place, ticket in enumerate("abcde"[: size + draw(st.integers(1, 2))])
    ]  # fmt: skip
    queue = [e._replace(fence=0, confirmed=False) for e in everybody[size:]]
    full = sum(e.weight for e in everybody[:size])
    record = LockState(full, draw(st.booleans()), START, 7, START, tuple(everybody[:size]), tuple(queue))
    ticket = draw(st.sampled_from([*[e.ticket for e in everybody[:size]], "e"]))
    joins = Acquire(ticket, full, 1, 30 * SECOND, True, True, 1, draw(listeners))
    return record, draw(st.sampled_from([joins, Release(ticket)]))


@given(crowds())
@settings(max_examples=400)
def test_in_a_crowd_the_short_cut_answers_what_the_long_way_would(crowd: tuple[LockState, Acquire | Release]) -> None:
    record, command = crowd
    assert apply(record, command, START + 1) == the_long_way(record, command, START + 1)


any_step = given(records(), commands, instants, some, some)
test_the_short_cut_answers_what_the_long_way_would = settings(max_examples=200)(any_step(same_answer))
test_it_does_so_many_times = pytest.mark.soak(settings(max_examples=5000)(any_step(same_answer)))


@given(records(), commands, instants, some, some)
@settings(max_examples=300)
def test_on_a_queue_that_is_still_text_a_step_is_the_same(
    record: LockState, command: Acquire | Release | Renew, now: int, unreachable: frozenset[str], dead: frozenset[str]
) -> None:
    after = apply(codec.decode(codec.encode(record)), command, now, unreachable, dead)
    assert after == the_long_way(record, command, now, unreachable, dead)
    for state in (record, after[0]):
        queue = codec.decode(codec.encode(state)).queue
        assert tuple(queue) == tuple(state.queue)
        fresh = fresh_until(queue)
        assert all(fresh <= e.expires for e in queue)
        assert not fresh or not any(e.passed for e in queue)


@given(records())
@settings(max_examples=200)
def test_a_queue_that_is_text_has_the_same_operations(record: LockState) -> None:
    queue, encoded = record.queue, codec.decode(codec.encode(record)).queue
    assert len(encoded) == len(queue) and list(encoded) == list(queue) and encoded == queue and queue == encoded
    assert [encoded[i] for i in range(len(queue))] == list(queue)
    if not isinstance(encoded, EncodedQueue):
        assert not queue
        return
    assert encoded[1:] == queue[1:] and encoded[:1] == queue[:1] and encoded[1:] != queue
    assert [encoded.has(ticket) for ticket in "abcd"] == [ticket in [e.ticket for e in queue] for ticket in "abcd"]
    passed = queue[0]._replace(passed=1)
    longer = encoded.__add__((passed,))
    assert longer == (*queue, passed) and isinstance(longer, EncodedQueue) and fresh_until(longer) == 0
    assert pickle.loads(pickle.dumps(record._replace(queue=encoded))) == record


def test_a_queue_that_is_text_empties_step_by_step() -> None:
    state = LockState()
    for ticket in "abcd":
        state = codec.decode(codec.encode(apply(state, Acquire(ticket, 1, 1, 30 * SECOND, listener="l"), START)[0]))
    for ticket, left in (("a", "cd"), ("b", "d"), ("c", ""), ("d", "")):
        state, _, woken = apply(state, Release(ticket), START + SECOND)
        assert [e.ticket for e in state.queue] == list(left)
        assert [w.ticket for w in woken] == [e.ticket for e in state.holders]
        assert codec.decode(codec.encode(state)) == state
    assert not state.holders


@given(records(), commands, instants, some, some)
@settings(max_examples=100)
def test_a_step_is_pure(
    record: LockState, command: Acquire | Release | Renew, now: int, unreachable: frozenset[str], dead: frozenset[str]
) -> None:
    before = copy.deepcopy(record)
    first = apply(record, command, now, unreachable, dead)
    assert record == before
    assert apply(record, command, now, unreachable, dead) == first


@given(records())
@settings(max_examples=100)
def test_any_record_survives_the_wire(record: LockState) -> None:
    text = codec.encode(record)
    assert codec.decode(text) == record
    assert "\n" not in text

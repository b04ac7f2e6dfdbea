"""The short cut of the rules answers what the long way would, for any record at all, and a step changes no input."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.doorman import Enter, Entrant, Grave, Leave, Record, Renew, Why, apply, wire
from tests.doorman.door import SECOND, START
from tests.doorman.variant import variant

the_long_way = variant(
    ("    if not (record.line or record.graves or dead):\n", "    if False:\n"),
    ("    elif record.line and not (record.graves or dead or deaf):\n", "    elif False:\n"),
)

tickets = st.sampled_from("abcd")
instants = st.sampled_from([START + n for n in (-40 * SECOND, -2, -1, 0, 1, 2, 40 * SECOND)])
spans = st.sampled_from([2, SECOND, 30 * SECOND])
weights = st.integers(0, 3)
entrants = st.builds(
    Entrant, tickets, st.integers(1, 3), spans, spans, st.integers(1, 3), st.sampled_from(["", "ear"]), st.just("böb"),
    st.just("\u2028 \x7f"), st.integers(0, 5), instants, instants, instants, st.booleans(), st.integers(0, 3),
)  # fmt: skip
graves = st.builds(Grave, tickets, instants, spans, st.builds(Why, st.sampled_from(["left", "evicted"])))


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Any record, and mostly one that the short cuts are for: one inside or none, alone or with a line, no graves."""
    everybody = draw(st.lists(entrants, max_size=4, unique_by=lambda e: e.ticket))
    cut = draw(st.sampled_from([0, 1, 1, 1, 2]))
    inside, line = everybody[:cut], [e._replace(fence=0, sure=False) for e in everybody[cut:]]
    if draw(st.integers(0, 3)):
        line = [e._replace(passed=0, expires=START + 90 * SECOND) for e in line]
        inside = [e._replace(expires=START + 90 * SECOND) for e in inside]
    dug = draw(st.lists(graves, max_size=1)) if draw(st.integers(0, 3)) == 0 else []
    last = max([draw(instants), *[e.fence + e.block - 1 for e in inside]])
    return Record(draw(weights), draw(st.booleans()), last, 7, draw(instants), tuple(inside), tuple(line), tuple(dug))


commands = st.one_of(
    st.builds(
        Enter, tickets, weights, weights, spans, st.booleans(), st.booleans(), st.integers(0, 3),
        st.sampled_from(["", "ear"]),
    ),
    st.builds(Leave, tickets, st.booleans(), st.none() | instants, st.none() | spans),
    st.builds(Renew, tickets, st.none() | instants, st.none() | weights),
)  # fmt: skip
some: st.SearchStrategy[frozenset[str]] = st.just(frozenset()) | st.frozensets(tickets, max_size=1)


@given(records(), commands, instants, some, some)
@settings(max_examples=800)
def test_the_short_cut_answers_what_the_long_way_would(
    record: Record, command: Enter | Leave | Renew, now: int, deaf: frozenset[str], dead: frozenset[str]
) -> None:
    assert apply(record, command, now, deaf, dead) == the_long_way(record, command, now, deaf, dead)


@given(records(), commands, instants, some, some)
@settings(max_examples=100)
def test_a_step_is_pure(
    record: Record, command: Enter | Leave | Renew, now: int, deaf: frozenset[str], dead: frozenset[str]
) -> None:
    before = copy.deepcopy(record)
    first = apply(record, command, now, deaf, dead)
    assert record == before
    assert apply(record, command, now, deaf, dead) == first


@given(records())
@settings(max_examples=100)
def test_any_record_survives_the_wire(record: Record) -> None:
    text = wire.encode(record)
    assert wire.decode(text) == record
    assert "\n" not in text

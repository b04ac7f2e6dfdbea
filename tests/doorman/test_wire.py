"""A record as text: one line of JSON that comes back as it was, and a sentence for whatever is not a record."""

import json
import random
from typing import Any

import pytest

from holdfast.doorman import EMPTY, wire
from holdfast.sealed import seal
from tests.doorman.door import Door


def full(door: Door) -> Door:
    door.enter("a", owner="web-3:4117", note='ship "42"\n\u2028')
    door.enter("b", note="schön")
    door.enter("c")
    door.leave("d", bury=True)
    door.evict("c")
    return door


def test_a_record_comes_back_as_it_was(door: Door) -> None:
    record = full(door).record
    assert record.inside and record.line and len(record.graves) == 2
    assert wire.decode(wire.encode(record)) == record
    assert wire.decode(wire.encode(EMPTY)) == EMPTY


def test_a_decoded_record_is_as_good_as_the_first(door: Door) -> None:
    full(door)
    other = Door()
    other.record = wire.decode(wire.encode(door.record))
    assert other.leave("a") == door.leave("a")
    assert (other.record, other.woken) == (door.record, door.woken)


def test_it_is_one_line_of_plain_json_that_names_its_format_first(door: Door) -> None:
    text = wire.encode(full(door).record)
    assert "\n" not in text
    assert json.loads(text)[0] == wire.FORMAT
    assert "schön" in text  # for whoever reads it with a SELECT


def test_with_or_without_the_encoder_in_c_it_is_the_same_text(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    record = full(door).record
    text = wire.encode(record)
    monkeypatch.setattr(wire, "_pieces", None)
    assert wire.encode(record) == text


def test_a_newer_format_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="format 3; this version of holdfast reads format 2"):
        wire.decode(wire.encode(EMPTY).replace("[2,", "[3,", 1))


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "5", "{}", "[]", "null", "[2]", seal("[2,0,false,0,0,0,[[1]],[],[]]"),
        seal("[2,0,false,0,0,0,5,[],[]]"), seal("[2,0,false,0,0,0,[],[],[[1,2,3]]]"),
        "[2,0,false,0,0,0,[],[],[]]", "[" * 100_000,
    ],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_what_is_not_a_record_is_told_in_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="not a doorman's record"):
        wire.decode(text)


def test_one_changed_character_is_noticed(door: Door) -> None:
    text = wire.encode(full(door).record)
    chance = random.Random(1)
    for place in chance.sample(range(len(text)), 200):
        other = chr(ord(text[place]) ^ 1)
        if text[place] == "\t" or other == "\t":
            continue  # between two in line: it says nothing
        with pytest.raises(ValueError, match=r"not a doorman's record|of format"):
            wire.decode(text[:place] + other + text[place + 1 :])


@pytest.mark.parametrize("value", [None, 5, 1.5, b"[2,0,false,0,0,0,[],[],[]]", ["x"]])
def test_what_is_no_text_is_told_in_a_sentence(value: Any) -> None:
    with pytest.raises(ValueError, match="not a doorman's record"):
        wire.decode(value)


def test_who_is_inside_is_told_for_people(door: Door) -> None:
    door.read("a", owner="one")
    door.read("b", owner="two")
    assert wire.owners(door.record) == "one, two"


def test_a_long_line_comes_back_however_often_it_has_been_seen(door: Door) -> None:
    for number in range(40):
        door.enter(f"t{number}", note=f'a tab\t, a bracket ],[\t and a quote " {number}')
    text = wire.encode(door.record)
    assert json.loads(text)[7][0][7] == door.record.line[0].note
    for _ in range(2):
        assert wire.decode(text) == door.record
        assert wire.encode(wire.decode(text)) == text
    for number in range(20):  # some leave, some poll, some come: what is remembered must not stand for what has changed
        door.leave(f"t{number * 2}")
        door.pass_time(0.1)
        door.enter(f"t{number * 2 + 1}")
        door.enter(f"new{number}")
        assert wire.decode(wire.encode(door.record)) == door.record


def test_what_is_remembered_has_a_limit(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "REMEMBERED", 8)
    wire._texts.clear()
    wire._entrants.clear()
    for number in range(40):
        door.enter(f"t{number}")
        assert wire.decode(wire.encode(door.record)) == door.record
        assert len(wire._texts) <= 8 and len(wire._entrants) <= 8


def test_json_that_was_laid_out_by_somebody_else_is_read_all_the_same(door: Door) -> None:
    full(door)
    for layout in ({}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}):
        text = json.dumps(json.loads(wire.encode(door.record)), **layout)  # type: ignore[arg-type]
        assert wire.decode(text) == door.record


def test_a_line_that_is_torn_is_told_in_a_sentence(door: Door) -> None:
    text = wire.encode(full(door).record)
    assert ",[\t" in text
    for broken in (text.replace("\t],", "],"), text.replace(",[\t", ",[\t1],[2,"), text.replace(",[\t[", ",[\t[1,")):
        with pytest.raises(ValueError, match="not a doorman's record"):
            wire.decode(broken)

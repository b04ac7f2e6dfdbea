"""A record as text: one queue of JSON that comes back as it was, and a sentence for whatever is not a record."""

import json
import random
import subprocess
import sys
from importlib.util import find_spec, module_from_spec
from typing import Any

import pytest

from fairlock.rules import json_text
from fairlock.rules.checksum import seal
from fairlock.rules.locks import EMPTY, codec, encoded_queue
from tests.lock_rules.resource import LockUnderTest


def full(lock: LockUnderTest) -> LockUnderTest:
    lock.enter("a", owner="web-3:4117", note='ship "42"\n\u2028')
    lock.enter("b", note="schön")
    lock.enter("c")
    lock.leave("d", leave_tombstone=True)
    lock.evict("c")
    return lock


def test_a_record_comes_back_as_it_was(lock: LockUnderTest) -> None:
    record = full(lock).record
    assert record.holders and record.queue and len(record.tombstones) == 2
    assert codec.decode(codec.encode(record)) == record
    assert codec.decode(codec.encode(EMPTY)) == EMPTY


def test_a_decoded_record_is_as_good_as_the_first(lock: LockUnderTest) -> None:
    full(lock)
    other = LockUnderTest()
    other.record = codec.decode(codec.encode(lock.record))
    assert other.leave("a") == lock.leave("a")
    assert (other.record, other.woken) == (lock.record, lock.woken)


def test_it_is_one_line_of_plain_json_that_names_its_format_first(lock: LockUnderTest) -> None:
    text = codec.encode(full(lock).record)
    assert "\n" not in text
    assert json.loads(text)[0] == codec.FORMAT
    assert "schön" in text  # for a person that reads it with a SELECT


def test_with_or_without_the_encoder_in_c_it_is_the_same_text(
    lock: LockUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = full(lock).record
    text = codec.encode(record)
    plain = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)
    monkeypatch.setattr(json_text, "_pieces", plain.iterencode)
    assert codec.encode(record) == text


def test_a_newer_format_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="format 4; this version of fairlock reads format 3"):
        codec.decode(codec.encode(EMPTY).replace("[3,", "[4,", 1))


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "5", "{}", "[]", "null", "[3]", seal("[3,0,false,0,0,0,[[1]],[],[]]"),
        seal("[3,0,false,0,0,0,5,[],[]]"), seal("[3,0,false,0,0,0,[],[],[[1,2,3]]]"),
        "[3,0,false,0,0,0,[],[],[]]", "[" * 100_000,
    ],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_what_is_not_a_record_is_told_in_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="not the state of a lock"):
        codec.decode(text)


def test_what_is_not_json_is_told_where_nothing_has_imported_json() -> None:
    """The scanner in C then has no error to raise; the command is such a process, and `ls` failed as a whole."""
    program = """
import sys
from importlib.util import find_spec, module_from_spec
from fairlock.rules.locks import codec
for text in sys.argv[1:]:
    assert "json" not in sys.modules
    try:
        codec.decode(text)
    except ValueError as bad:
        print(bad)
    for module in [m for m in sys.modules if m.partition(".")[0] == "json"]:
        del sys.modules[module]
"""
    texts = ["{nope", '[3,"a', "[3", "[3 2]", '["\\u12', "{1:2}", '["\x01"]', "[" * 9999]
    done = subprocess.run([sys.executable, "-c", program, *texts], capture_output=True, text=True)
    assert done.stderr == ""
    told = done.stdout.splitlines()
    assert len(told) == len(texts)
    assert all(line.startswith("not the state of a lock: ") for line in told)


def test_what_is_nested_too_deep_is_not_json() -> None:
    with pytest.raises(ValueError, match="nested too deep"):
        json_text.parse("[" * 9999)


def test_one_changed_character_is_noticed(lock: LockUnderTest) -> None:
    text = codec.encode(full(lock).record)
    rng = random.Random(1)
    for place in rng.sample(range(len(text)), 200):
        other = chr(ord(text[place]) ^ 1)
        if text[place] == "\t" or other == "\t":
            continue  # between two in line: it says nothing
        with pytest.raises(ValueError, match=r"not the state of a lock|of format"):
            codec.decode(text[:place] + other + text[place + 1 :])


@pytest.mark.parametrize("value", [None, 5, 1.5, b"[3,0,false,0,0,0,[],[],[]]", ["x"]])
def test_what_is_no_text_is_told_in_a_sentence(value: Any) -> None:
    with pytest.raises(ValueError, match="not the state of a lock"):
        codec.decode(value)


def test_who_is_inside_is_told_for_people(lock: LockUnderTest) -> None:
    lock.read("a", owner="one")
    lock.read("b", owner="two")
    assert codec.owners(lock.record) == "one, two"


def test_a_long_line_comes_back_however_often_it_has_been_seen(lock: LockUnderTest) -> None:
    for number in range(40):
        lock.enter(f"t{number}", note=f'a tab\t, a bracket ],[\t and a quote " {number}')
    text = codec.encode(lock.record)
    assert json.loads(text)[7][1][7] == lock.record.queue[0].note
    for _ in range(2):
        assert codec.decode(text) == lock.record
        assert codec.encode(codec.decode(text)) == text
    for number in range(20):  # some leave, some poll, some come: what is remembered must not stand for what has changed
        lock.leave(f"t{number * 2}")
        lock.pass_time(0.1)
        lock.enter(f"t{number * 2 + 1}")
        lock.enter(f"new{number}")
        assert codec.decode(codec.encode(lock.record)) == lock.record


def test_what_is_remembered_has_a_limit(lock: LockUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded_queue, "REMEMBERED", 8)
    encoded_queue._texts.clear()
    encoded_queue._entries.clear()
    for number in range(40):
        lock.enter(f"t{number}")
        assert codec.decode(codec.encode(lock.record)) == lock.record
        assert len(encoded_queue._texts) <= 8 and len(encoded_queue._entries) <= 8


def test_json_that_was_laid_out_by_somebody_else_is_read_all_the_same(lock: LockUnderTest) -> None:
    full(lock)
    for layout in ({}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}):
        text = json.dumps(json.loads(codec.encode(lock.record)), **layout)  # type: ignore[arg-type]
        assert codec.decode(text) == lock.record


def test_a_line_that_is_torn_is_told_in_a_sentence(lock: LockUnderTest) -> None:
    text = codec.encode(full(lock).record)
    assert ",\t[" in text
    for broken in (text.replace("\t],", "],"), text.replace(",\t[", ",\t[1],[2,"), text.replace(",\t[", ",\t[1,", 1)):
        with pytest.raises(ValueError, match="not the state of a lock"):
            codec.decode(broken)


def test_the_owner_of_a_row_is_empty_only_if_it_is_idle(lock: LockUnderTest) -> None:
    """A look at what is busy reads the rows with an owner, and no others."""
    assert codec.owners(lock.record) == ""
    lock.enter("t1")
    lock.enter("t2")
    assert codec.owners(lock.record)
    assert codec.owners(lock.record._replace(holders=()))
    lock.leave("t1")
    lock.leave("t2")
    assert codec.owners(lock.record) == ""


def test_a_text_is_decoded_once_and_a_damaged_one_is_not_taken_for_it(lock: LockUnderTest) -> None:
    text = codec.encode(full(lock).record)
    state = codec.decode(text)
    assert codec.decode(text) is state  # read twice, decoded once
    for at in range(1, len(text) - 1):
        if text[at].isdecimal():
            damaged = text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
            with pytest.raises(ValueError, match=r"not the state of a lock|a record of format"):
                codec.decode(damaged)


@pytest.mark.parametrize("nothing", ["", None, b""])
def test_the_first_text_that_a_process_decodes_is_not_taken_for_a_known_one(nothing: Any) -> None:
    spec = find_spec(codec.__name__)
    assert spec is not None
    assert spec.loader is not None
    fresh = module_from_spec(spec)
    spec.loader.exec_module(fresh)
    with pytest.raises(ValueError, match="not the state of a lock"):
        fresh.decode(nothing)

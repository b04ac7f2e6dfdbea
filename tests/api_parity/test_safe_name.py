"""safe_name: a valid name of any text, and of different texts different names."""

import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fairlock
from fairlock import ConfigError, aio, safe_name
from fairlock.engine import validate

# Also what no file may contain: half characters, control characters, and texts about as long as a name may be.
CHARACTERS = st.characters() | st.characters(categories=["Cs", "Cc"])
TEXTS = st.text(CHARACTERS) | st.builds(
    lambda head, body, size: head + body * size, st.text(CHARACTERS, max_size=3), CHARACTERS, st.integers(0, 210)
)


def valid(text: str) -> bool:
    try:
        return validate.name(text) == text
    except ConfigError:
        return False


@given(TEXTS)
@example("")
@example("\ud800")
@example("\n" * 300)
@example("𝄞" * 50)
@example("𝄞" * 51)
def test_any_text_becomes_a_valid_name_and_a_valid_one_stays_as_it_is(text: str) -> None:
    name = safe_name(text)
    assert valid(name)
    assert (name == text) == valid(text)
    assert safe_name(name) == name


@given(TEXTS, TEXTS)
@example("\ud834\udd1e", "𝄞" + "\n")
@example("x" * 201, "x" * 202)
@example("a\n", "a_")
@example("a\n", "a\r")
@example("", "\0")
def test_different_texts_become_different_names(one: str, other: str) -> None:
    assert (safe_name(one) == safe_name(other)) == (one == other)


@given(st.text(st.characters(categories=["Ll", "Lo"]), min_size=201), st.integers(0, 200))
def test_one_different_character_anywhere_is_another_name(text: str, at: int) -> None:
    assert safe_name(text) != safe_name(text[:at] + "~" + text[at + 1 :])


def test_people_can_read_its_beginning() -> None:
    assert safe_name("two\nlines").startswith("two_lines~")
    long = safe_name("https://example.com/" + "ä" * 5000)
    assert long.startswith("https://example.com/ää")
    assert len(long.encode()) in (199, 200)  # a character is not cut in half


def test_it_is_the_same_in_every_process_and_version() -> None:
    assert safe_name("two\nlines") == "two_lines~edc8c1284585d703bec48f34f842bd911200142d"
    code = "import fairlock; print(fairlock.safe_name('x' * 999))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert shown == safe_name("x" * 999) + "\n"


@pytest.mark.parametrize("value", [None, 5, b"bytes", ["x"]])
def test_what_is_no_text_is_refused_with_a_sentence(value: object) -> None:
    with pytest.raises(ConfigError, match=r"safe_name\(\) makes a name of a str, not of \w+\. Use"):
        safe_name(value)  # type: ignore[arg-type]


def test_a_lock_takes_it_and_both_faces_have_it() -> None:
    assert aio.safe_name is safe_name
    with fairlock.connect("memory://") as locks, locks.lock(safe_name("\n" * 999)):
        assert [resource.name for resource in locks.snapshot().resources] == [safe_name("\n" * 999)]

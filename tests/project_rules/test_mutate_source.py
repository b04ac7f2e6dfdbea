"""A typo in a mutant of a store is an error and never counts as a catch: see mutate_source.py."""

from typing import Any

import pytest

from fairlock.stores import keys
from tests.mutate_source import Mutant, put_to_the_test

TRUE = "return bool(separator) and"


def asks_for_a_queue(server: object) -> None:
    assert keys.is_queue(keys.queue_key("x"))


def mutant(old: str, new: str, *more: Any, **facts: Any) -> Mutant:
    return Mutant("", asks_for_a_queue, (("stores/keys.py", old, new),), more, **facts)


def test_the_test_passes_without_a_mutant_and_fails_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asks_for_a_queue(None)
    put_to_the_test(mutant(TRUE, "return not separator and"), None, monkeypatch)


@pytest.mark.parametrize(
    "typo, error",
    [
        (mutant("words that nobody would write", ""), LookupError),
        (mutant("return ", "return not "), LookupError),
        (mutant(TRUE, "return bool(seperator) and"), NameError),
        (mutant(TRUE, "return bool(separator and"), SyntaxError),
        (mutant(TRUE, "return not separator and", "an argument that the test has not"), TypeError),
        (mutant(TRUE, "return bool(seperator) and", raises=(Exception,)), AssertionError),
    ],
)
def test_a_typo_is_an_error(typo: Mutant, error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(error) as raised:
        put_to_the_test(typo, None, monkeypatch)
    assert type(raised.value) is error


def test_a_mutant_that_nothing_notices_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        put_to_the_test(mutant(TRUE, "return bool(separator) is True and"), None, monkeypatch)

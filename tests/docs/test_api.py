"""docs/api*.md name everything that is public, with the parameters that it really has, and nothing else."""

import inspect
import re
from collections.abc import Callable
from typing import Any, get_args

import pytest

import fairlock
from fairlock import aio
from fairlock.engine.events import EventKind
from fairlock.engine.validate import KEEP, OWN
from tests.project_rules import two_faces
from tests.project_rules.snippets import ROOT

PAGE = "\n".join(page.read_text() for page in sorted((ROOT / "docs").glob("api*.md")))
PROSE = re.sub(r"(?ms)^```.*?^```$", "", PAGE)
SECTIONS = dict(re.findall(r"(?ms)^## (\w+)\n(.*?)(?=^## |\Z)", PROSE))
CLASSES = [name for name in fairlock.__all__ if inspect.isclass(getattr(fairlock, name))]
ERRORS = [name for name in CLASSES if issubclass(getattr(fairlock, name), Exception)]


def signature(name: str, function: Callable[..., Any]) -> str:
    """Return the signature as the page shows it: without annotations, … for the timeout and the body of the object."""
    words: list[str] = []
    for p in list(inspect.signature(function).parameters.values()):
        if p.name == "self":
            continue
        if p.kind is p.KEYWORD_ONLY and not any(word.startswith("*") for word in words):
            words.append("*")
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else "=…" if p.default in (OWN, KEEP) else f"={p.default!r}"
        words.append(f"{stars}{p.name}{default}")
    return f"{name}({', '.join(words)})"


def expected(cls: type) -> set[str]:
    """Return what a section must name: methods with their parameters, everything else by its name."""
    lock = next((base for base in cls.__mro__[1:] if base.__name__ == "Lock"), object)  # a Semaphore is a Lock, too
    found = set()
    for name, member in two_faces.members(cls).items():
        if name.startswith("_") or inspect.getattr_static(cls, name, cls) is inspect.getattr_static(lock, name, lock):
            continue
        function = two_faces.function_of(member)
        found.add(signature(name, function) if function else name)
    return found


def described(text: str) -> set[str]:
    """Return the names and signatures that a section describes: the code with which its list items begin."""
    spans = set()
    for item in re.findall(r"(?ms)^- (.*?)(?=^- |^$|^\||\Z)", text):
        beginning = re.match(r"(`[^`]+`(, )?)+", re.sub(r"\s+", " ", item))
        assert beginning, item
        spans |= set(re.findall(r"`([^`]+)`", beginning[0]))
    return spans


@pytest.mark.parametrize("name", ["connect", "safe_name"])
def test_a_function_is_described_as_it_is(name: str) -> None:
    assert described(SECTIONS[name]) == {signature(name, getattr(fairlock, name))}
    assert signature(name, getattr(aio, name)) == signature(name, getattr(fairlock, name))


@pytest.mark.parametrize("name", ["Locks", "Lock", "RWLock", "Semaphore", "Lease", "Pool", "Item"])
def test_a_class_is_described_as_it_is(name: str) -> None:
    assert described(SECTIONS[name]) == expected(getattr(fairlock, name))


@pytest.mark.parametrize("name", ["Snapshot", "Resource", "Holder", "Waiter", "Event", "PoolItem", "PoolCounts"])
def test_a_named_tuple_is_described_with_all_its_fields(name: str) -> None:
    text = re.sub(r"\([^)]*\)", "", SECTIONS[name].partition(". Kinds:")[0])  # what describes a field is not a field
    fields = getattr(fairlock, name)._fields
    assert tuple(re.findall(r"`(\w+)`", text))[: len(fields)] == fields


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_described_with_what_it_carries(name: str) -> None:
    (row,) = re.findall(rf"(?m)^\| `{name}` \|.*$", SECTIONS["Errors"])
    error = getattr(fairlock, name)
    builtin = [b.__name__ for b in error.__bases__ if b.__module__ == "builtins" and b is not Exception]
    assert row.split("|")[2].strip(" `") == "".join(builtin)
    assert all(f"`{field}`" in row for field in inspect.get_annotations(error))


def test_every_public_name_is_on_the_page() -> None:
    assert [name for name in fairlock.__all__ if f"`{name}`" not in PROSE and name not in SECTIONS] == []


def test_every_kind_of_event_is_on_the_page() -> None:
    kinds = get_args(EventKind)
    assert len(kinds) == 13
    assert [kind for kind in kinds if f"`{kind}`" not in SECTIONS["Event"]] == []


def test_the_awaited_calls_are_listed() -> None:
    sentence = SECTIONS["asyncio"].partition("These are awaited:")[2].partition(".")[0]
    listed = set(re.findall(r"`(\w+)`", sentence))
    classes = [getattr(aio, name) for name in aio.__all__ if inspect.isclass(getattr(aio, name))]
    real = {name for cls in classes for name, member in two_faces.members(cls).items() if two_faces.awaited(member)}
    assert listed == {name for name in real if not name.startswith("_")}


def test_connecting_once_leaves_connect_a_function() -> None:
    """A submodule of that name would take its place when it is first imported inside the function."""
    fairlock.connect("memory://").close()
    fairlock.connect("memory://").close()

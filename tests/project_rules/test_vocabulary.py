"""One vocabulary, in plain English: no old word, no phrase that is not used, and no module name with two meanings."""

from collections import defaultdict
from pathlib import Path

import pytest

from tests.project_rules import vocabulary
from tests.project_rules.tree import ROOT, SRC, files, modules

FOLDERS = sorted({vocabulary.folder_of(str(path.relative_to(ROOT))) for path in files()})


@pytest.fixture(scope="module")
def by_folder() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for each in vocabulary.findings():
        found[vocabulary.folder_of(each.file)].append(str(each))
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_uses_the_words_of_the_project(by_folder: dict[str, list[str]], folder: str) -> None:
    assert by_folder.get(folder, []) == []


@pytest.mark.parametrize("name, text", [
    ("src/a.py", "desk = 1"), ("src/a.py", "def open_desk(): ..."), ("src/a.py", "class DeskClosed: ..."),
    ("src/a.py", "SHELF = 1"), ("src/a.py", "self._let_in(e)"),
    ("src/a.py", "# the courier comes"), ("src/a.py", "Admitted()"),
    ("docs/a.md", "The doorman opens."), ("a.lua", "local ear = 1"),
    ("docs/a.md", "The holder keeps his lock."), ("docs/a.md", "Who waits is served."), ("docs/a.md", "It is had."),
    ("docs/a.md", "Locks last for ever."), ("docs/a.md", "Wait, for it comes."), ("docs/a.md", "It takes so long."),
    ("docs/a.md", "Then nobody waits."), ("docs/a.md", "A waiter gets in."),
    ("docs/a.md", "The store is told."), ("docs/a.md", "It is made anew."), ("docs/a.md", "That is dear."),
    ("docs/a.md", "A look costs nothing."), ("docs/a.md", "Two looks must agree."), ("src/a.py", '"""Each look."""'),
    ("src/a.py", 'raise E("redis does not answer")'), ("src/a.py", 'raise E("so nobody was asked")'),
    ("docs/a.md", "It stands in the row."), ("docs/a.md", "One. Awaited are all."), ("CHANGELOG.md", "- Nobody waits."),
    ("src/a.py", 'def f() -> int:\n    """The number of slots."""'), ("src/a.py", 'def f() -> int:\n    """As `g`."""'),
    ("tests/a.py", 'def f():\n    """Whether it holds."""'), ("src/a.py", 'raise E("not to be had now")'),
])
def test_an_old_word_and_an_unused_phrase_are_noticed(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text + "\n")
    assert len(vocabulary.findings(tmp_path)) == 1


@pytest.mark.parametrize("name, text", [
    ("src/a.py", "early = near = year = desktop = 1"), ("src/a.py", 'said = "a told"  # he is in a comment'),
    ("docs/a.md", "Who holds it? `doorman`s aside, it takes so long that no client waits, for ten seconds."),
    ("docs/a.md", "```\nhe said\n```"), ("docs/a.md", "Both look the same on a stand-in; it stands for a lock."),
    ("src/a.py", '@property\ndef f() -> int:\n    """The number of slots."""'),
    ("src/a.py", 'def f() -> None:\n    """The loop ends: close."""'),
    ("tests/a.py", 'def f():\n    """Return whether it holds."""'),
])
def test_plain_english_passes(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text.replace("`doorman`s", "Others") + "\n")
    assert vocabulary.findings(tmp_path) == []


# One module name, one meaning. Within a group of folders that mirror each other, equal names mean equal things.
MIRRORS = [
    {"sync", "aio", "testing"}, {"recipes", "recipes/aio"}, {"rules/locks", "rules/pools"},
    {"stores", "stores/sqlite", "stores/redis", "stores/sql", "stores/cassandra", "stores/oci_nosql"},
]
ONE_MEANING = {
    "errors": "what a user sees when something fails",
    "doctor": "the checks of `fairlock doctor`: the command, and the part of each store",
    "clock": "a source of the current time",
    "pool": "the pools of items: the object of each face, and the commands of the tool",
    "ask_to_release": "an operator asks a holder to release: the command, and the engine",
    "audit_lines": "the audit lines of a name: how they are encoded, and where Redis keeps them",
    "busy_name_index": "the index of busy names: the keeper that fills it, and the part of a store",
}


def two_meanings(src: Path) -> list[str]:
    """Return the module names of src that exist in folders which do not mirror each other. The test suite of the
    kit is left out: each of its modules is named after what it tests."""
    places: dict[str, set[str]] = defaultdict(set)
    for path in modules(src):
        folder = str(path.parent.relative_to(src / "fairlock"))
        if path.stem not in ("__init__", "__main__") and folder != "testing/suite":
            places[path.stem].add(folder)
    return [
        f"{name}: {', '.join(sorted(where))}" for name, where in sorted(places.items())
        if len(where) > 1 and name not in ONE_MEANING and not any(where <= group for group in MIRRORS)
    ]


def test_no_module_name_has_two_meanings() -> None:
    assert two_meanings(SRC) == []


def test_a_module_name_with_two_meanings_is_noticed(tmp_path: Path) -> None:
    for name in ("sync/lock.py", "aio/lock.py", "cli/lock.py", "sync/lease.py", "aio/lease.py"):
        (tmp_path / "fairlock" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fairlock" / name).touch()
    assert two_meanings(tmp_path) == ["lock: aio, cli, sync"]

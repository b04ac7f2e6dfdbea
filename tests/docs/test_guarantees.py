"""Every cell of docs/guarantees*.md has a note that names an existing test, or admits that there is none."""

import ast
import re
from functools import cache

import pytest

from tests.project_rules.snippets import ROOT

PAGES = {page.name: page.read_text() for page in sorted((ROOT / "docs").glob("guarantees*.md"))}
TEST = re.compile(r"`(S|[\w/]+)/(\w+\.py)::((?:Test\w+::)?\w+)`")
SUITE = "src/fairlock/testing/suite"


def notes(page: str) -> dict[str, str]:
    return dict(re.findall(r"(?m)^\[\^([\w-]+)\]: (.*)$", page))


def cited(text: str) -> set[str]:
    return set(re.findall(r"\[\^([\w-]+)\](?!:)", text))


def rows(page: str) -> list[list[str]]:
    """Return the rows of all tables, without their heads: the fault, then a cell for each store."""
    lines = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| | ")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]


def unproven(page: str) -> list[str]:
    """Return the cells that promise something and neither have a note nor admit that it is not tested."""
    return [
        f"{fault}: {cell}"
        for fault, *cells in rows(page)
        for cell in cells
        if not cited(cell) and "not tested" not in cell and not cell.startswith("—")
    ]


@cache
def read_tests(file: str) -> set[str]:
    """Return all tests of a file: test_x, TestX::test_x, or, in a file of scenes, a_scene."""
    path = ROOT / file
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text())
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    begins = "" if path.name.startswith("scene_") else "test_"
    found = {node.name for node in tree.body if isinstance(node, functions) and node.name.startswith(begins)}
    for group in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        found |= {f"{group.name}::{n.name}" for n in group.body if isinstance(n, functions) and n.name[:5] == "test_"}
    return found


def unknown_tests(text: str) -> list[str]:
    found = [(SUITE if folder == "S" else folder, file, name) for folder, file, name in TEST.findall(text)]
    return [f"{folder}/{file}::{name}" for folder, file, name in found if name not in read_tests(f"{folder}/{file}")]


def test_every_cell_has_a_note_or_admits_that_there_is_no_test() -> None:
    assert sum(len(rows(page)) for page in PAGES.values()) > 150
    assert {name: unproven(page) for name, page in PAGES.items() if unproven(page)} == {}


@pytest.mark.parametrize("name", PAGES)
def test_every_note_is_defined_and_used(name: str) -> None:
    page, _, below = PAGES[name].partition("\n## Notes\n")
    assert cited(page) == set(notes(below)) != set()


@pytest.mark.parametrize("name", PAGES)
def test_every_note_names_a_test_that_exists(name: str) -> None:
    page = PAGES[name]
    assert [label for label, text in notes(page).items() if not TEST.search(text)] == []
    assert unknown_tests(page) == []
    assert f"S = {SUITE}" in page


def test_a_note_names_the_same_test_on_all_pages() -> None:
    found: dict[str, set[str]] = {}
    for page in PAGES.values():
        for label, text in notes(page).items():
            found.setdefault(label, set()).add(text)
    assert {label: texts for label, texts in found.items() if len(texts) > 1} == {}


@pytest.mark.parametrize(
    "name",
    [
        "tests/docs/test_guarantees.py::test_nobody_wrote",
        "tests/docs/test_guarantees.py::unproven",
        "tests/no.py::test_x",
        "src/fairlock/testing/suite/queue.py::TestNobody::test_x",
    ],
)
def test_a_test_that_does_not_exist_is_noticed(name: str) -> None:
    there = ["tests/docs/test_guarantees.py::test_a_note_names_the_same_test_on_all_pages", "S/queue.py::TestQueue::"]
    there[1] += "test_a_try_does_not_pass_the_queue"
    assert unknown_tests(f"`{there[0]}` `{there[1]}` and `{name}`") == [name]


def test_a_cell_that_only_promises_is_noticed() -> None:
    good = "| a | — none | goes on: not tested | learns of it [^x] |"
    assert unproven(good) == []
    assert unproven(good.replace("[^x]", "")) == ["a: learns of it"]

"""Every cell of docs/guarantees.md names a test that exists, or says that there is none."""

import ast
import re
from functools import cache

import pytest

from tests.house.snippets import ROOT

PAGE = (ROOT / "docs" / "guarantees.md").read_text()
TEST = re.compile(r"`([\w/]+\.py)::((?:Test\w+::)?test_\w+)`")
ROWS = [line.strip("|").split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and "::" in line]


@cache
def cases_of(file: str) -> set[str]:
    """All tests of a file: test_x, or TestX::test_x."""
    path = ROOT / file
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text())
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    found = {node.name for node in tree.body if isinstance(node, functions)}
    for group in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        found |= {f"{group.name}::{node.name}" for node in group.body if isinstance(node, functions)}
    return {name for name in found if "test_" in name}


def unknown_tests(text: str) -> list[str]:
    return [f"{file}::{name}" for file, name in TEST.findall(text) if name not in cases_of(file)]


def unproven(rows: list[list[str]]) -> list[str]:
    """Cells that promise something and neither name a test nor admit that there is none."""
    return [
        f"{fault.strip()}: {cell.strip()}"
        for fault, *cells in rows
        for cell in cells
        if not TEST.search(cell) and "not tested" not in cell and not cell.strip().startswith("—")
    ]


def test_every_test_that_is_named_exists() -> None:
    assert len(TEST.findall(PAGE)) > 30
    assert unknown_tests(PAGE) == []


def test_every_cell_names_a_test_or_says_that_there_is_none() -> None:
    assert len(ROWS) > 20
    assert {len(row) for row in ROWS} == {3}
    assert unproven(ROWS) == []


@pytest.mark.parametrize("name", ["tests/docs/test_guarantees.py::test_nobody_wrote", "tests/no.py::test_x"])
def test_a_test_that_does_not_exist_is_noticed(name: str) -> None:
    here = "tests/docs/test_guarantees.py::test_every_test_that_is_named_exists"
    assert unknown_tests(f"`{here}` and `{name}`") == [name]


def test_a_cell_that_only_promises_is_noticed() -> None:
    good = ["a", "— none", "goes on: not tested", "is told: `tests/x.py::test_x`"]
    assert unproven([good]) == []
    assert unproven([[*good, "never fails"]]) == ["a: never fails"]

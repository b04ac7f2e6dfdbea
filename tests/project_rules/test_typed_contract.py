"""The contract of stores is typed: every optional member is a real one, with its default in the base class.

A member that is looked for by name is seen by no type checker, and a misspelt one is a feature that silently goes.
"""

import ast
import inspect
from pathlib import Path

import pytest

from fairlock.stores import base
from tests.project_rules.tree import ROOT, modules

CONTRACT = (base.Store, base.ScoredStore, base.Backend, base.ItemStore, base.Pools)
HOLDERS = {"store", "backend", "runtime", "item_store", "items", "pools", "session", "inner"}
PAGE = ROOT / "docs" / "store-contract.md"


def lookups_by_name(source: str) -> list[tuple[int, str]]:
    """The lines that look for a member of a store or backend by its name: getattr with a default, and hasattr."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            lenient = (node.func.id == "getattr" and len(node.args) == 3) or node.func.id == "hasattr"
            owner = node.args[0]
            name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
            if lenient and name.strip("_") in HOLDERS:
                found.append((node.lineno, ast.unparse(node)))
    return found


def test_no_member_of_a_store_or_backend_is_looked_for_by_name() -> None:
    found = [f"{path}:{line}: {call}" for path in modules() for line, call in lookups_by_name(Path(path).read_text())]
    assert found == []


@pytest.mark.parametrize(
    "line",
    ['getattr(store, "glance", 1.0)', 'getattr(self.store, "get", None)', 'hasattr(session.backend, "store")',
     'getattr(item_store, "repair", None)'],
)  # fmt: skip
def test_a_lookup_by_name_is_noticed(line: str) -> None:
    assert lookups_by_name(f"x = {line}")


def test_a_lookup_that_is_no_default_is_allowed() -> None:
    assert not lookups_by_name("x = getattr(self.inner, name)\ny = getattr(error, 'sqlstate', None)")


def members(contract: type) -> dict[str, object]:
    """The public members of a class of the contract, attributes without a value included."""
    known: dict[str, object] = {}
    for each in reversed(contract.__mro__):
        if each.__module__ == base.__name__:
            known |= dict.fromkeys(each.__annotations__) | vars(each)
    return {name: member for name, member in known.items() if not name.startswith("_")}


@pytest.mark.parametrize("contract", CONTRACT)
def test_every_member_of_the_contract_is_documented(contract: type) -> None:
    """Methods by their docstring, attributes by the string below them."""
    body = ast.parse(inspect.getsource(contract)).body[0]
    assert isinstance(body, ast.ClassDef)
    bare = []
    for node, below in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign):
            assert isinstance(node.target, ast.Name)
            if not (isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)):
                bare.append(node.target.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node) is None:
            bare.append(node.name)
    assert bare == ([] if contract is not base.ScoredStore else ["items"]), "inherited ones are documented above"


def test_the_page_has_every_optional_member_of_a_store() -> None:
    optional = {
        name for name, member in members(base.Store).items() if not getattr(member, "__isabstractmethod__", False)
    }
    rows = [line.split("|")[1].strip() for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    listed = {row.strip("`").partition("(")[0] for row in rows}
    required = {"where", "scope"}
    assert sorted(optional - required - listed) == []
    assert sorted(listed - set(members(base.ScoredStore)) - set(members(base.ItemStore))) == []

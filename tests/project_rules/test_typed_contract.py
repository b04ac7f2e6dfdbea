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
CLASSES = {contract.__name__ for contract in CONTRACT}
PAGE = ROOT / "docs" / "store-contract.md"


def last_name(node: ast.AST | None) -> str:
    """Return the last word of an expression: store for self._store, backend for (await open_it()).backend."""
    if isinstance(node, ast.Await | ast.Starred | ast.NamedExpr | ast.Subscript):
        return last_name(node.value)
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.BinOp):  # an annotation such as Store | None
        return last_name(node.left)
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name if name in CLASSES else name.strip("_")


def aliases(tree: ast.AST) -> set[str]:
    """Return the names that stand for a store or backend: they are assigned from one, or annotated as one."""
    known = set(HOLDERS)
    while True:
        before = len(known)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.NamedExpr) and last_name(node.value) in known | CLASSES:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                known |= {name for each in targets if (name := last_name(each))}
            elif isinstance(node, ast.AnnAssign) and last_name(node.annotation) in CLASSES:
                known.add(last_name(node.target))
            elif isinstance(node, ast.arg) and last_name(node.annotation) in CLASSES:
                known.add(node.arg.strip("_"))
        if len(known) == before:
            return known


def lookups_by_name(source: str) -> list[tuple[int, str]]:
    """Return the lines that look for a member of a store or backend by its name.

    That is getattr with a default, hasattr, vars and dir, of anything that is called a store or is an alias of one; and
    the first two of whatever they are asked of, if the name is a member of the contract and no attribute of drivers.
    """
    tree, found = ast.parse(source), []
    known = aliases(tree)
    named = {name for contract in CONTRACT for name in members(contract)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            lenient = (node.func.id == "getattr" and len(node.args) == 3) or node.func.id in ("hasattr", "vars", "dir")
            asked = node.args[1] if len(node.args) > 1 else None
            member = isinstance(asked, ast.Constant) and asked.value in named
            if lenient and (member or last_name(node.args[0]) in known):
                found.append((node.lineno, ast.unparse(node)))
        elif isinstance(node, ast.Attribute) and node.attr == "__dict__" and last_name(node.value) in known:
            found.append((node.lineno, ast.unparse(node)))
    return found


def test_no_member_of_a_store_or_backend_is_looked_for_by_name() -> None:
    found = [f"{path}:{line}: {call}" for path in modules() for line, call in lookups_by_name(Path(path).read_text())]
    assert found == []


@pytest.mark.parametrize(
    "line",
    ['getattr(store, "glance", 1.0)', 'getattr(self.store, "get", None)', 'hasattr(session.backend, "store")',
     'getattr(item_store, "repair", None)', 'hasattr(locks.session.backend, "pools")', "vars(self._store)",
     'getattr(anything, "poll_interval", 1.0)', 'hasattr(x, "write_many")', "store.__dict__.get(name)",
     'getattr(other, "odd", None) if (other := self.store) else 0', "dir((await open_it()).backend)"],
)  # fmt: skip
def test_a_lookup_by_name_is_noticed(line: str) -> None:
    assert lookups_by_name(f"x = {line}")


@pytest.mark.parametrize(
    "before",
    ["one = self._store", "one = two = backend", "def f(one: Store) -> None: ...", "one: Backend | None = None",
     "two = session.backend\none = two"],
)  # fmt: skip
def test_a_lookup_by_name_in_an_alias_is_noticed(before: str) -> None:
    assert lookups_by_name(f"{before}\nx = getattr(one, name, None)")


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

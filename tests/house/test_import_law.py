"""The import law: who may know whom, read from the syntax of every module.

    doorman, pool  ←  backends/contract  ←  flow  ←  client, aio  ←  connect  ←  recipes, testing, cli, ui

Backends know the rules and the contract, never each other nor the clients; only connect and the recipes know backends
(testing knows the one in memory, whose clock it turns).
The law holds for imports inside functions too: a late import is still a dependency.
"""

import sys
from pathlib import Path

import pytest

from tests.house.tree import SRC, imports, modules, name_of

RULES = {"doorman", "pool"}
CONTRACT = RULES | {
    "backends.contract", "backends.pool_contract", "backends.patience", "backends.damage", "errors", "sealed",
}  # fmt: skip
FACE = CONTRACT | {"flow"}
OUTERMOST = {"recipes", "testing", "cli", "ui"}

# Each part of the house, and the parts that it may import besides itself.
LAW: dict[str, set[str]] = {
    "errors": set(),
    "sealed": set(),
    "doorman": {"sealed"},
    "pool": {"sealed"},
    "backends": set(),
    "backends.contract": CONTRACT,
    "backends.pool_contract": CONTRACT,
    "backends.patience": set(),
    "backends.in_time": CONTRACT,  # the same for tasks
    "backends.urls": {"errors"},
    "backends.names": set(),
    "backends.damage": {"errors"},
    "backends.turns": CONTRACT,
    "backends.cas": CONTRACT | {"backends.names", "backends.cas_pool", "backends.turns"},
    "backends.cas_pool": CONTRACT | {"backends.names", "backends.item_rows"},
    "backends.item_rows": CONTRACT | {"backends.names", "backends.item_damage"},
    "backends.item_damage": CONTRACT | {"backends.names"},
    "backends.polling": CONTRACT | {"backends.names"},
    "backends.*": CONTRACT
    | {"backends.cas", "backends.names", "backends.item_rows", "backends.polling", "backends.in_time", "backends.urls"}
    | {"backends.item_damage"},
    "flow": CONTRACT,
    "client": FACE,
    "aio": FACE | {"backends.in_time"},
    "connect": FACE | {"backends.*", "backends.cas", "client", "aio"},
    "": {"errors", "client", "aio", "connect", "flow"},  # the two doors: holdfast itself and holdfast.aio
    "recipes": FACE | {"backends.*", "backends.cas", "client", "aio", "connect", ""},
    "testing": FACE | {"backends.cas", "backends.memory", "client", "aio", "connect", ""},
    "cli": FACE | {"client", "aio", "connect", "ui", ""},
    "ui": FACE | {"client", "aio", "connect", ""},
    "__main__": {"cli"},
}

# What may come from outside the standard library, and into which part.
DRIVERS: dict[str, set[str]] = {
    "testing": {"pytest", "_pytest"},
    "backends.redis": {"redis", "hiredis"},
    "backends.cassandra": {"cassandra"},
    "backends.oci_nosql": {"oci"},
    "backends.sql": {"sqlalchemy", "psycopg", "pymysql", "aiomysql", "oracledb"},
    "recipes": {"redis", "oci"},
}

# For checkers only, which all know it without an install: never where a program that runs would import it.
FOR_TYPES = {"typing_extensions"}

# The rules are pure: with these they can neither look at a clock nor wait nor reach anything.
PURE = {"typing", "json", "collections", "operator", "zlib"}


def part(module: str) -> str:
    """The part of the house a module belongs to: 'backends.sqlite' for holdfast.backends.sqlite.store."""
    words = module.split(".")[1:]
    if words == ["aio"]:
        return ""
    if words[:1] == ["backends"]:
        return ".".join(words[:2])
    return words[0] if words else ""


def allowed(here: str, there: str) -> bool:
    if here == there or there == "backends":  # the package's own __init__ says only what lives there
        return True
    law = LAW.get(here, LAW["backends.*"] if here.startswith("backends.") else set())
    return there in law or ("backends.*" in law and there.startswith("backends."))


def violations(src: Path) -> list[str]:
    found = []
    for path in modules(src):
        here = part(name_of(path, src))
        for module, line, eager in imports(path, src):
            top = module.split(".")[0]
            if top == "holdfast":
                problem = "" if allowed(here, part(module)) else f"may not import {part(module) or 'the package'}"
            elif here in RULES and top not in PURE:
                problem = f"is pure and may not import {module}"
            elif here == "flow" and top in ("asyncio", "threading"):
                problem = f"is for threads and tasks alike and may not import {module}"
            elif top in FOR_TYPES and not eager:
                problem = ""
            elif top not in sys.stdlib_module_names and top not in DRIVERS.get(here, set()):
                problem = f"may not import {module}, which is not in the standard library"
            else:
                problem = ""
            if problem:
                found.append(f"{path.relative_to(src)}:{line}: {here or 'the package'} {problem}")
    return found


def test_every_import_keeps_the_law() -> None:
    assert violations(SRC) == []


def test_every_part_of_the_house_is_in_the_law() -> None:
    parts = {part(name_of(path)) for path in modules()}
    unknown = {each for each in parts - set(LAW) if not each.startswith("backends.")}
    assert unknown == set(), "say in LAW what these may import"


@pytest.mark.parametrize(
    "file, line",
    [
        ("doorman/rules.py", "import time"),
        ("doorman/rules.py", "from ..errors import LockError"),
        ("pool/rules.py", "from ..doorman import rules"),
        ("flow/acquire.py", "import asyncio"),
        ("flow/acquire.py", "from threading import Lock"),
        ("flow/acquire.py", "from ..backends import sqlite"),
        ("flow/acquire.py", "from ..backends.cas import CasBackend"),
        ("flow/acquire.py", "from .. import client"),
        ("backends/contract.py", "from ..flow import acquire"),
        ("backends/memory.py", "from .sqlite import store"),
        ("backends/memory.py", "from ..client import Locks"),
        ("backends/sqlite/store.py", "from ..memory import Memory"),
        ("client/locks.py", "from ..aio import Locks"),
        ("client/locks.py", "from ..backends.sqlite import store"),
        ("client/locks.py", "def late():\n    from ..backends import memory"),
        ("client/locks.py", "from typing_extensions import TypeVar"),
        ("aio/locks.py", "from ..connect import connect"),
        ("connect.py", "from .cli import main"),
        ("cli/__init__.py", "from ..backends import sqlite"),
        ("cli/__init__.py", "from ..testing import kit"),
        ("cli/__init__.py", "import redis"),
        ("testing/kit.py", "from ..backends import sqlite"),
        ("doorman/rules.py", "import redis"),
    ],
)
def test_a_broken_law_is_noticed(tmp_path: Path, file: str, line: str) -> None:
    rooms = "errors connect doorman/rules pool/rules flow/acquire client/__init__ client/locks aio/locks cli/__init__"
    stores = "__init__ contract cas memory sqlite/__init__ sqlite/store"
    for name in ["__init__", "testing/kit", *rooms.split(), *(f"backends/{store}" for store in stores.split())]:
        path = tmp_path / "holdfast" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("from typing import Any\n")
    assert violations(tmp_path) == []
    (tmp_path / "holdfast" / file).write_text(f"{line}\n")
    assert len(violations(tmp_path)) == 1

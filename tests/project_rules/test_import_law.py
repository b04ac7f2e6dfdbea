"""The import law: which part of the library may import which, read from the syntax of every module.

    rules  ←  stores/base  ←  engine  ←  sync, aio  ←  connect  ←  recipes, integrations, testing, metrics, cli, web

Stores import the rules and stores/base, never each other or a client. Only connect and the recipes import stores
(testing imports the one in memory, because it controls its clock).
The law also holds for imports inside functions: a late import is still a dependency. There is one exception: a client
has thin methods that make a recipe (`locks.elect(name)`), and imports it there. It does not import a recipe at its top.
"""

import sys
from pathlib import Path

import pytest

from tests.project_rules.tree import SRC, imports, modules, name_of

# Under stores/: one part for each store, one for what a client may know of a store, and one for what stores share.
STORES = {"memory", "sqlite", "redis", "sql", "cassandra", "oci_nosql"}
BASE = {"base", "deadline", "damaged_records", "jitter"}
ASYNC_BASE = {"async_deadline", "task_futures"}

BOTH = {"rules.checksum", "rules.json_text", "rules.other_format", "rules.wakeup"}  # of locks and of pools
RULES = {"rules", "rules.locks", "rules.pools"} | BOTH
CONTRACT = RULES | {"stores.base", "errors", "forks"}
FACE = CONTRACT | {"engine"}
ONE_STORE = "one of the stores"

# Each part of the library, and the parts that it may import besides itself.
LAW: dict[str, set[str]] = {
    "errors": set(),
    "forks": set(),
    "rules": set(),
    "rules.json_text": set(),
    "rules.other_format": set(),
    "rules.checksum": {"rules.json_text"},
    "rules.wakeup": set(),
    "rules.locks": BOTH,
    "rules.pools": BOTH,
    "stores": set(),
    "stores.base": CONTRACT | {"stores.shared"},  # ScoredStore.items imports its default when it is first used
    "stores.async_base": CONTRACT,
    "stores.shared": CONTRACT,
    ONE_STORE: CONTRACT | {"stores.shared", "stores.async_base"},
    "engine": CONTRACT,
    "sync": FACE,
    "aio": FACE | {"stores.async_base"},
    "connect": FACE | {ONE_STORE, "stores.shared", "sync", "aio"},
    "": {"errors", "sync", "aio", "connect", "engine"},  # the two entrances: fairlock itself and fairlock.aio
    "recipes": FACE | {ONE_STORE, "stores.shared", "stores.async_base", "sync", "aio", "connect", ""},
    "integrations": FACE | {"sync", "aio", "connect", "recipes", ""},
    "testing": FACE | {"stores.shared", "stores.memory", "sync", "aio", "connect", ""},
    "metrics": FACE,
    "cli": FACE | {"sync", "aio", "connect", "web", "metrics", "integrations", ""},
    "web": FACE | {"sync", "aio", "connect", "metrics", ""},
    "__main__": {"cli"},
}

# What a part may import inside functions, and for type checkers, beside that.
LATE: dict[str, set[str]] = {"sync": {"recipes"}, "aio": {"recipes"}}

# What may come from outside the standard library, and into which part.
DRIVERS: dict[str, set[str]] = {
    "testing": {"pytest", "_pytest"},
    "stores.redis": {"redis", "hiredis"},
    "stores.cassandra": {"cassandra"},
    "stores.oci_nosql": {"oci"},
    "stores.sql": {"sqlalchemy", "psycopg", "pymysql", "aiomysql", "oracledb"},
    "recipes": {"redis", "oci", "croniter"},
    "integrations": {"django", "starlette", "dogpile", "pytest", "tooz", "mcp"},
    "metrics": {"opentelemetry", "prometheus_client"},
    "web": {"starlette", "uvicorn", "prometheus_client"},
}

# For checkers only, which all know it without an install: never where a program that runs would import it.
FOR_TYPES = {"typing_extensions"}

# The rules are pure: with these they can neither look at a clock nor wait nor reach anything.
PURE = {"typing", "json", "_json", "collections", "_collections", "operator", "zlib"}


def part(module: str) -> str:
    """Return the part that a module belongs to: 'stores.sqlite' for fairlock.stores.sqlite.store."""
    words = module.split(".")[1:]
    if words in ([], ["aio"]):
        return ""
    if words[0] == "rules":
        return ".".join(words[:2])
    if words[0] != "stores" or len(words) == 1:
        return words[0]
    if words[1] in STORES:
        return f"stores.{words[1]}"
    return "stores.base" if words[1] in BASE else "stores.async_base" if words[1] in ASYNC_BASE else "stores.shared"


def is_store(name: str) -> bool:
    return name.removeprefix("stores.") in STORES


def allowed(here: str, there: str, eager: bool) -> bool:
    if here == there or there in ("stores", "rules"):  # the __init__ of these packages holds only a docstring
        return True
    law = LAW.get(ONE_STORE if is_store(here) else here, set())
    late = not eager and there in LATE.get(here, set())
    return there in law or late or (ONE_STORE in law and is_store(there))


def violations(src: Path) -> list[str]:
    found = []
    for path in modules(src):
        here = part(name_of(path, src))
        for module, line, eager in imports(path, src):
            top = module.split(".")[0]
            if top == "fairlock":
                there = part(module)
                problem = "" if allowed(here, there, eager) else f"may not import {there or 'the package'}"
            elif here in RULES and top not in PURE:
                problem = f"is pure and may not import {module}"
            elif here == "engine" and top in ("asyncio", "threading"):
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


def test_every_part_of_the_library_is_in_the_law() -> None:
    parts = {part(name_of(path)) for path in modules()}
    unknown = {each for each in parts - set(LAW) if not is_store(each)}
    assert unknown == set(), "say in LAW what these may import"
    packages = {path.parent.name for path in modules() if path.parent.parent.name == "stores"}
    assert packages - STORES == set(), "say in STORES that these are stores"


@pytest.mark.parametrize(
    "file, line",
    [
        ("rules/locks/step.py", "import time"),
        ("rules/locks/step.py", "from ...errors import LockError"),
        ("rules/pools/step.py", "from ..locks import step"),
        ("engine/acquire.py", "import asyncio"),
        ("engine/acquire.py", "from threading import Lock"),
        ("engine/acquire.py", "from ..stores import sqlite"),
        ("engine/acquire.py", "from ..stores.cas import CasBackend"),
        ("engine/acquire.py", "from .. import sync"),
        ("stores/base.py", "from ..engine import acquire"),
        ("stores/memory.py", "from .sqlite import store"),
        ("stores/memory.py", "from ..sync import Locks"),
        ("stores/sqlite/store.py", "from ..memory import Memory"),
        ("sync/client.py", "from ..aio import Locks"),
        ("sync/client.py", "from ..stores.sqlite import store"),
        ("sync/client.py", "def late():\n    from ..stores import memory"),
        ("sync/client.py", "from typing_extensions import TypeVar"),
        ("sync/client.py", "from ..recipes import Election"),
        ("engine/acquire.py", "def late():\n    from ..recipes import Election"),
        ("aio/client.py", "from ..connect import connect"),
        ("connect.py", "from .cli import main"),
        ("cli/__init__.py", "from ..stores import sqlite"),
        ("cli/__init__.py", "from ..testing import harness"),
        ("cli/__init__.py", "import redis"),
        ("testing/harness.py", "from ..stores import sqlite"),
        ("rules/locks/step.py", "import redis"),
    ],
)
def test_a_broken_law_is_noticed(tmp_path: Path, file: str, line: str) -> None:
    parts = "errors connect rules/locks/step rules/pools/step engine/acquire sync/client aio/client cli/__init__"
    packages = "rules/__init__ rules/locks/__init__ rules/pools/__init__ engine/__init__ sync/__init__ aio/__init__"
    stores = "__init__ base cas memory sqlite/__init__ sqlite/store"
    below = [f"stores/{store}" for store in stores.split()]
    for name in ["__init__", "recipes/__init__", "testing/harness", *parts.split(), *packages.split(), *below]:
        path = tmp_path / "fairlock" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("from typing import Any\n")
    client = tmp_path / "fairlock" / "sync" / "client.py"
    client.write_text("def late():\n    from ..recipes import Election")
    assert violations(tmp_path) == []
    (tmp_path / "fairlock" / file).write_text(f"{line}\n")
    assert len(violations(tmp_path)) == 1

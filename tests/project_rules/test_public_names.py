"""What `fairlock` offers: exactly these names, each documented.

A name that comes or goes is a change to the changelog and to this list, never an accident.
"""

import inspect
import subprocess
import sys
import tomllib
from collections.abc import Iterator

import pytest

import fairlock
from tests.project_rules import two_faces
from tests.project_rules.tree import ROOT

NAMES = {
    "connect", "safe_name",
    "Locks", "Lock", "RWLock", "Semaphore", "Lease", "Pool", "Item", "PoolItem", "PoolCounts",
    "Snapshot", "Resource", "Holder", "Waiter", "Event", "Seconds",
    "LockError", "LockTimeout", "LeaseLost", "NotHeld", "AlreadyHeld", "StoreError", "ConfigError",
    "RecordDamaged", "AuditLine", "ReleaseRequest",
}

LOCK = {"name", "held", "acquire", "hold", "release", "locked"}
MEMBERS = {
    "Locks": {"store", "session", "lock", "rwlock", "semaphore", "pool", "lock_all", "guard", "attach", "release",
              "extend", "ask", "audit", "evict", "resize", "snapshot", "ping", "repair", "close", "elect", "leader",
              "once", "idempotent", "throttle", "build", "tree"},
    "Lock": LOCK,
    "RWLock": {"name", "read", "write"},
    "Semaphore": LOCK | {"slots"},
    "Lease": {"name", "ticket", "fence", "owner", "since", "lost", "held", "reason", "remaining", "ensure_held",
              "renew", "extend", "release", "downgrade", "detach", "seal", "asked_to_release"},
    "Pool": {"name", "add", "add_many", "remove", "items", "counts", "acquire", "hold"},
    "Item": {"name", "ticket", "fence", "owner", "since", "lost", "held", "reason", "remaining", "ensure_held", "key",
             "body", "renew", "extend", "update", "release", "done", "delete", "seal"},
    "LockTimeout": {"name", "holders", "place", "waited", "deadlock"},
    "LeaseLost": {"reason"},
    "StoreError": {"refused"},
    "RecordDamaged": {"name", "refused"},
}


def undocumented(name: str, thing: object) -> Iterator[str]:
    """The thing, and each method of it, if nothing says what it does."""
    documented = inspect.getdoc(thing) if inspect.isclass(thing) or inspect.isroutine(thing) else "a type"
    if not documented or documented.startswith(f"{name}("):  # the latter is what a NamedTuple says by itself
        yield name
    if inspect.isclass(thing) and thing.__module__.split(".")[0] != "builtins":
        for each, member in two_faces.members(thing).items():
            if two_faces.function_of(member) and not each.startswith("__") and not inspect.getdoc(getattr(thing, each)):
                yield f"{name}.{each}"


def test_the_public_names_are_exactly_these() -> None:
    assert set(fairlock.__all__) == NAMES
    assert len(fairlock.__all__) == len(NAMES)


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_what_a_program_may_use_of_a_class_is_exactly_this(name: str) -> None:
    assert {each for each in two_faces.members(getattr(fairlock, name)) if not each.startswith("_")} == MEMBERS[name]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_public_name_is_documented(name: str) -> None:
    assert list(undocumented(name, getattr(fairlock, name))) == []


def test_the_asyncio_face_is_one_attribute_away() -> None:
    code = "import sys, fairlock; assert 'asyncio' not in sys.modules; fairlock.aio.connect"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_version_is_the_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project["dynamic"], "the package holds it"
    assert fairlock.__version__


def test_a_missing_docstring_is_noticed() -> None:
    class Silent:
        def method(self) -> None: ...

    assert list(undocumented("Silent", Silent)) == ["Silent", "Silent.method"]
    Silent.__doc__ = "It says something."
    Silent.method.__doc__ = "It does something."
    assert list(undocumented("Silent", Silent)) == []

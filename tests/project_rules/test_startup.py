"""Start-up time is a feature: `fairlock run` stands in crontabs and loops, and bare Python takes a third of its time.

What costs most is importing: asyncio alone costs more than two bare Pythons, importlib.metadata one. So the expensive
modules are named here, and nothing that `import fairlock` or `fairlock run` does may load one of them. Where one is
needed, it is imported in the function that needs it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project_rules.tree import ROOT, imports, modules, name_of

EXPENSIVE = {
    "asyncio", "concurrent.futures", "dataclasses", "hashlib", "importlib.metadata", "inspect", "logging", "pathlib",
    "secrets", "subprocess", "tempfile", "uuid",
}
WITHIN = {  # what `run` does without, although other parts of fairlock use it
    "json", "fairlock.engine.snapshots", "fairlock.engine.operator_audit",
    "fairlock.rules.pools",
}  # fmt: skip

# aio is for programs that run asyncio already; testing is for programs that run pytest already.
# A backend's modules for tasks are loaded by aio only.
AT_HOME = {
    "fairlock.aio": {"asyncio"}, "fairlock.recipes.aio": {"asyncio"}, "fairlock.testing": EXPENSIVE,
    "fairlock.web": EXPENSIVE,
    "fairlock.integrations.mcp_server": {"asyncio"},
    "fairlock.stores.redis.async_connection": {"asyncio"}, "fairlock.stores.redis.async_listener": {"asyncio"},
    "fairlock.stores.task_futures": {"asyncio"}, "fairlock.stores.async_deadline": {"asyncio"},
    "fairlock.stores.sql.async_executor": {"asyncio"}, "fairlock.stores.sql.async_libpq_executor": {"asyncio"},
}  # fmt: skip


def loaded_by(*arguments: str, cwd: Path = ROOT, **env: str) -> set[str]:
    """The modules that a Python process imports, in excess of those that a bare one has."""

    def run(*args: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", *args], capture_output=True, text=True, timeout=60, cwd=cwd,
            env={**os.environ, **env},
        )
        assert done.returncode == 0, done.stderr[-2000:]
        lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
        return {line.rpartition("|")[2].strip() for line in lines}

    return run(*arguments) - run("-c", "pass")


def test_importing_fairlock_is_cheap() -> None:
    assert loaded_by("-c", "import fairlock") & EXPENSIVE == set()


def test_importing_the_tool_is_cheap() -> None:
    assert loaded_by("-c", "import fairlock.cli") & EXPENSIVE == set()


def test_running_a_command_under_a_lock_is_cheap(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    loaded = loaded_by("-m", "fairlock", "-u", url, "run", "a-name", "--", "true")
    assert "fairlock.cli" in loaded
    assert loaded & (EXPENSIVE | WITHIN) == set()


def test_no_module_loads_an_expensive_one_when_it_is_imported() -> None:
    found = []
    for path in modules():
        here = name_of(path)
        at_home = set().union(*(named for home, named in AT_HOME.items() if f"{here}.".startswith(f"{home}.")))
        for module, line, eager in imports(path):
            expensive = any(module == name or module.startswith(f"{name}.") for name in EXPENSIVE - at_home)
            if eager and expensive:
                found.append(f"{path.relative_to(ROOT)}:{line}: {module} is expensive; import it where it is used")
    assert found == []


@pytest.mark.parametrize("module", ["asyncio", "logging", "dataclasses"])
def test_an_expensive_import_is_noticed(tmp_path: Path, module: str) -> None:
    (tmp_path / "slow.py").write_text(f"import {module}\n")
    assert module in loaded_by("-c", "import slow", cwd=tmp_path) & EXPENSIVE

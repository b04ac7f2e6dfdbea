"""Plumbing for every test: which fairlock is tested, its servers, and how Hypothesis behaves on a busy machine."""

import gc
import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import as_before
from tests.servers import programs
from tests.servers.fixtures import *  # noqa: F403

ROOT = Path(__file__).resolve().parent.parent

# A process that a test starts must import this checkout too, however pytest itself was started.
_path = [str(ROOT / "src"), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(_path))

# It must also behave like a user's: buffer its output, keep its compiled files. Both settings hide mistakes.
for _setting in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(_setting, None)

# Python 3.11 parses source lines to print a traceback, and two threads that do so at once damage each other's parser
# ("AST constructor recursion depth mismatch"): a keeper that logs an error would end the whole run of pytest.
if hasattr(traceback, "_extract_caret_anchors_from_line_segment"):
    traceback._extract_caret_anchors_from_line_segment = lambda segment: None

# On two busy cores a deadline per example fails at random. In CI the same commit must give the same result twice.
settings.register_profile("fairlock", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("fairlock")

# ./dev test runs six at a time. The tests of a file stay together because they share what takes long to make. Of the
# slowest servers one is enough for all files. A test that shares nothing runs wherever a process is idle.
# tests/project_rules/test_lists.py checks that everything named here exists.
SHARE_NOTHING = ("lock_rules", "pool_rules", "simulation", "engine", "contract", "threading_suite", "faults")
SLOW_SERVERS = ("redis_sentinel", "redis_cluster", "cassandra", "oracle")
ONE_NODE = ("guards", "options", "store", "errors")
FILES_OF_SLOW_SERVERS = {f"tests/cassandra/test_{name}.py": "cassandra" for name in ONE_NODE}
FILES_OF_SLOW_SERVERS["tests/sql/test_oracle_stand_in.py"] = "oracle"
# Programs that are no servers, and the files whose tests start them.
PROGRAMS = {"tests/cli/test_terminal.py": "less", "tests/redis/test_errors.py": "openssl"}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[object]:
    with as_before.as_before():
        return (yield)


def pytest_collection_finish() -> None:
    """Leave the tests themselves out of every later gc.collect(): there are 16,000, and many tests call it."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if program := PROGRAMS.get(item.nodeid.partition("::")[0]):
        programs.find(program)


def shared_by(test: str) -> str:
    """Return the group of a test. The tests of one group run one after another in the same process."""
    path, _, rest = test.partition("::")
    store = rest.partition("[")[2].partition("-")[0].rstrip("]")
    if store in SLOW_SERVERS:
        return store
    return test if path.split("/")[1] in SHARE_NOTHING else FILES_OF_SLOW_SERVERS.get(path, path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Group by name, not by marks: xdist reads marks through a private name of pytest, which once vanished silently."""
    from xdist.scheduler import LoadScopeScheduling

    class ByWhatTheyShare(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return shared_by(nodeid)

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            """After each test xdist counts what is left in every group that this process ever had: in thousands."""
            super().mark_test_complete(node, item_index, duration)
            group = shared_by(self.registered_collections[node][item_index])
            groups = self.assigned_work.get(node, {})
            if all(groups.get(group, {}).values()):
                groups.pop(group, None)

    return ByWhatTheyShare(config, log)

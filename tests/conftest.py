"""Plumbing for every test: which fairlock is tested, its servers, and how Hypothesis behaves on a busy machine."""

import gc
import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from _pytest.runner import runtestprotocol
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

# ./dev test runs seven at a time. The tests of a file stay together because they share what takes long to make. Of the
# slowest servers one is enough for all files. A test that shares nothing runs wherever a process is idle.
# tests/project_rules/test_lists.py checks that everything named here exists.
SHARE_NOTHING = ("lock_rules", "pool_rules", "simulation", "engine", "contract", "threading_suite", "faults")
# What takes longest begins first, in this order; the rest begins by the number of its tests.
LONGEST = ("cassandra", "tests/project_rules/test_wheel.py", "tests/redis/test_failover.py", "nemesis 0", "nemesis 1",
           "tests/cassandra/test_nodes_fail.py", "tests/web/test_page.py", "tests/web/test_many_names.py")
# A nemesis is five or more processes: two at a time leave the cores to the rest, six at a time starve each other.
NEMESES = ("tests/faults/test_nemesis.py", "tests/faults/test_planted.py", "tests/faults/test_crowd.py")
# What only computes and measures no time has a process of its own, with a lower priority: it uses the cores while the
# others wait, and makes none of them late.
CALM_PROCESS = "gw6"
CALM = (
    "tests/lock_rules/", "tests/pool_rules/", "tests/simulation/", "tests/redis/test_lua_equals_rules.py",
    "tests/redis/test_mutants.py", "tests/redis/test_pool_lua_equals_rules.py", "tests/redis/test_pool_mutants.py",
    "tests/project_rules/test_drivers.py", "tests/project_rules/test_files.py",
    "tests/project_rules/test_vocabulary.py", "tests/docs/test_site.py",
)  # fmt: skip
SLOW_SERVERS = ("redis_sentinel", "redis_cluster", "cassandra", "oracle")
ONE_NODE = ("guards", "options", "store", "errors", "deadlines")
FILES_OF_SLOW_SERVERS = {f"tests/cassandra/test_{name}.py": "cassandra" for name in ONE_NODE}
FILES_OF_SLOW_SERVERS["tests/sql/test_oracle_stand_in.py"] = "oracle"
TESTS_OF_SLOW_SERVERS = {
    "tests/engine/test_prune.py::test_cassandra_keeps_every_row_but_those_of_audit_lines": "cassandra",
}
# Programs that are no servers, and the files whose tests start them.
PROGRAMS = {"tests/cli/test_terminal.py": "less", "tests/redis/test_errors.py": "openssl"}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[object]:
    with as_before.as_before():
        return (yield)


class FewReports:
    """In a process of xdist, report the call of a test and what is wrong, and not that it was set up and torn down.

    Each report goes to the main process, which takes a millisecond of both: half a minute for all tests.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        return True


def pytest_configure(config: pytest.Config) -> None:
    process = os.environ.get("PYTEST_XDIST_WORKER")
    if process and hasattr(config, "workerinput"):
        config.pluginmanager.register(FewReports())
        if process == CALM_PROCESS:
            os.nice(5)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[object]:
    gc.disable()  # until all tests are collected, which takes a fifth less time
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Leave the tests themselves out of every later gc.collect(): there are 16,000, and many tests call it."""
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Remove the coroutines that this test leaves, if it may leave some: later they would fail another test."""
    if any("never awaited" in mark.args[0] for mark in item.iter_markers("filterwarnings")):
        gc.collect()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if program := PROGRAMS.get(item.nodeid.partition("::")[0]):
        programs.find(program)


def shared_by(test: str) -> str:
    """Return the group of a test. The tests of one group run one after another in the same process."""
    path, _, rest = test.partition("::")
    words = rest.partition("[")[2].rstrip("]").split("-")
    if slow := [name for name in SLOW_SERVERS if name in words]:
        return slow[0]
    if test in TESTS_OF_SLOW_SERVERS:
        return TESTS_OF_SLOW_SERVERS[test]
    if path in NEMESES:
        return f"nemesis {crc32(test.encode()) % 2}"
    return test if path.split("/")[1] in SHARE_NOTHING else FILES_OF_SLOW_SERVERS.get(path, path)


def choices(process: str, queue: dict[str, Any]) -> Iterator[str]:
    """Yield the groups that this process may begin next, the best first.

    Files keep the cores busy, and the contract mostly waits: half of the processes begin with the one, half with the
    other, so that both overlap. What is left of the calm ones comes last, and leaves no core idle.
    """
    if process == CALM_PROCESS:
        yield from (group for group in reversed(queue) if group.startswith(CALM))
        return
    if int(process.removeprefix("gw")) % 2:
        yield from (group for group in queue if "::" in group and not group.startswith(CALM))
    yield from (group for group in LONGEST if group in queue)
    yield from (group for group in queue if not group.startswith(CALM))
    yield from queue


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Group by name, not by marks: xdist reads marks through a private name of pytest, which once vanished silently."""
    from xdist.scheduler import LoadScopeScheduling

    class ByWhatTheyShare(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return shared_by(nodeid)

        def _assign_work_unit(self, node: Any) -> None:
            chosen = next(choices(node.gateway.id, self.workqueue), None)
            if chosen is None:
                node.shutdown()  # when it has done what it has
                return
            self.workqueue.move_to_end(chosen, last=False)
            super()._assign_work_unit(node)

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            """After each test xdist counts what is left in every group that this process ever had: in thousands."""
            super().mark_test_complete(node, item_index, duration)
            group = shared_by(self.registered_collections[node][item_index])
            groups = self.assigned_work.get(node, {})
            if all(groups.get(group, {}).values()):
                groups.pop(group, None)

    return ByWhatTheyShare(config, log)

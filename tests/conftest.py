"""Plumbing for every test: which holdfast is tested, its servers, and how Hypothesis behaves on a busy machine."""

import os
import traceback
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.servers.fixtures import *  # noqa: F403

ROOT = Path(__file__).resolve().parent.parent

# A process that a test starts must find this checkout too, however pytest itself was started.
_path = [str(ROOT / "src"), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(_path))

# And it must behave as a user's: buffer what it prints, keep what it has compiled. Both settings hide mistakes.
for _setting in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(_setting, None)

# Python 3.11 parses source lines to print a traceback, and two threads that do so at once damage each other's parser
# ("AST constructor recursion depth mismatch"): a keeper that logs an error would end the whole run of pytest.
if hasattr(traceback, "_extract_caret_anchors_from_line_segment"):
    traceback._extract_caret_anchors_from_line_segment = lambda segment: None

# Two busy cores make a deadline per example a lottery; in CI the same commit must give the same answer twice.
settings.register_profile("holdfast", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("holdfast")

# ./dev test plays four at a time. The tests of a file stay together, for they share what is dear to make; of the
# dearest servers one is enough for all files. What shares nothing goes to whoever is idle.
SHARE_NOTHING = ("doorman", "pool", "sim", "flow", "contract", "threading_suite", "faults")
DEAR = ("redis_sentinel", "redis_cluster", "cassandra", "oracle")
ONE_NODE = ("guards", "options", "store", "trouble")
FILES_OF_DEAR = {f"tests/cassandra/test_{name}.py": "cassandra" for name in ONE_NODE}
FILES_OF_DEAR["tests/sql/test_oracle_stand_in.py"] = "oracle"


def shared_by(test: str) -> str:
    """What keeps this test together with others: all of the same answer are played one after another."""
    path, _, rest = test.partition("::")
    store = rest.partition("[")[2].partition("-")[0].rstrip("]")
    if store in DEAR:
        return store
    return test if path.split("/")[1] in SHARE_NOTHING else FILES_OF_DEAR.get(path, path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Not by marks: how xdist files those hangs on a private name of pytest, and when that went, nobody said so."""
    from xdist.scheduler import LoadScopeScheduling

    class ByWhatTheyShare(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return shared_by(nodeid)

    return ByWhatTheyShare(config, log)

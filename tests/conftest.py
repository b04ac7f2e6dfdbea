"""Plumbing for every test: which holdfast is tested, its servers, and how Hypothesis behaves on a busy machine."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.servers.fixtures import *  # noqa: F403
from tests.servers.fixtures import DEAR

ROOT = Path(__file__).resolve().parent.parent

# A process that a test starts must find this checkout too, however pytest itself was started.
_path = [str(ROOT / "src"), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(_path))

# And it must behave as a user's: buffer what it prints, keep what it has compiled. Both settings hide mistakes.
for _setting in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(_setting, None)

# Two busy cores make a deadline per example a lottery; in CI the same commit must give the same answer twice.
settings.register_profile("holdfast", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("holdfast")

# ./dev test plays four at a time. The tests of a file stay together, for they share what is dear to make; of the
# dearest servers one is enough for all files. What shares nothing goes to whoever is idle.
SHARE_NOTHING = {"doorman", "pool", "sim", "flow", "contract", "threading_suite"}


@pytest.hookimpl(tryfirst=True)  # before xdist deals them out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            path = item.path.relative_to(ROOT / "tests")
            dear = [name for name in DEAR if name in getattr(item, "fixturenames", ())]
            if dear:
                item.add_marker(pytest.mark.xdist_group(dear[-1]))
            elif path.parts[0] not in SHARE_NOTHING:
                item.add_marker(pytest.mark.xdist_group(str(path)))

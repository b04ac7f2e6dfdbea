"""Plumbing for every test: which holdfast is tested, its servers, and how Hypothesis behaves on a busy machine."""

import os
from pathlib import Path

from hypothesis import settings

from tests.servers.fixtures import *  # noqa: F403

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

"""pyright, beside mypy, on api.py and on the Python of the pages. pip brings it and its Node.js into .venv."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project_rules.snippets import ROOT, write_types

WITHOUT = {
    "integrations_django.py": "Django has no types",
    "adding_wakeups.py": "a store that is typed as loosely as a reader's first one",
}


@pytest.mark.timeout(600)
def test_the_public_api_and_the_python_of_the_pages_pass_pyright(tmp_path: Path, frameworks: Path) -> None:
    write_types(tmp_path / "examples")
    shutil.copy(Path(__file__).with_name("api.py"), tmp_path / "examples")
    for name in WITHOUT:
        (tmp_path / "examples" / name).unlink()
    settings = {
        "include": ["examples"], "extraPaths": [str(ROOT / "src"), str(frameworks)], "pythonVersion": "3.11",
        "typeCheckingMode": "standard",
    }  # fmt: skip
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "-p", str(tmp_path), "--pythonpath", sys.executable]
    env = {**os.environ, "PYRIGHT_PYTHON_GLOBAL_NODE": "0", "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 errors" in done.stdout

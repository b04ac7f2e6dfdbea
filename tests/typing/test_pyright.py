"""pyright, beside mypy, on api.py and on the Python of the pages. It comes by npx, and so only in ./dev soak."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project_rules.snippets import ROOT, write_types

VERSION = "1.1.414"
WITHOUT = {
    "integrations_django.py": "Django has no types",
    "adding_wakeups.py": "a store that is typed as loosely as a reader's first one",
}


@pytest.mark.soak
def test_the_public_api_and_the_python_of_the_pages_pass_pyright(tmp_path: Path, frameworks: Path) -> None:
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("This machine has no npx, which brings pyright.")
    write_types(tmp_path / "examples")
    shutil.copy(Path(__file__).with_name("api.py"), tmp_path / "examples")
    for name in WITHOUT:
        (tmp_path / "examples" / name).unlink()
    settings = {
        "include": ["examples"], "extraPaths": [str(ROOT / "src"), str(frameworks)], "pythonVersion": "3.11",
        "typeCheckingMode": "standard",
    }  # fmt: skip
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [npx, "--yes", f"pyright@{VERSION}", "-p", str(tmp_path), "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout
    assert "0 errors" in done.stdout

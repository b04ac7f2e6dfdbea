"""The wheel installs into an empty environment of each Python that was tried, and works there.

Pythons are looked for on PATH, where pyenv and uv keep theirs, and beside the one that runs this. One that this machine
lacks is skipped with its name. The tests that run there are those of the kit in the wheel itself, on the store in
memory: the contract of one kind of lock, for threads and for asyncio. Nothing is downloaded: pytest is pure Python and
is borrowed from the environment of this run.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project_rules.test_package import TRIED
from tests.project_rules.tree import ROOT

BORROWED = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
CONFTEST = """
from fairlock.testing.store_factories import MemorySite
from fairlock.testing.suite import matrix

harness = matrix({"memory": MemorySite})
"""


def find_python(version: str) -> str | None:
    """Return a Python of this version that starts, from PATH, pyenv or uv."""
    kept = [Path.home() / ".pyenv" / "versions", Path.home() / ".local" / "share" / "uv" / "python",
            Path(sys.base_prefix).parent]  # the last one also if HOME is another  # fmt: skip
    below = [str(path) for folder in kept for path in sorted(folder.glob(f"*{version}*/bin/python{version}"))]
    for each in [shutil.which(f"python{version}"), *below]:
        code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
        if each and subprocess.run([each, "-c", code], capture_output=True, text=True).stdout == f"{version}\n":
            return each
    return None


def run(*command: str | Path, cwd: Path = ROOT, **env: str) -> str:
    clean = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    words = [str(each) for each in command]
    done = subprocess.run(words, cwd=cwd, env={**clean, **env}, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheel and the source distribution of this tree."""
    if os.environ.get("CI") != "true":  # there it is a failure
        pytest.importorskip("hatchling", reason="./dev test brings hatchling")
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", folder)
    return sorted(folder.iterdir())


def borrow(folder: Path) -> None:
    """Make the modules that the tests import importable from a folder."""
    for name in BORROWED:
        for file in importlib.metadata.files(name) or []:
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (folder / top).exists():
                (folder / top).symlink_to(Path(str(file.locate())).parents[len(file.parts) - 2] if len(file.parts) > 1
                                          else str(file.locate()))  # fmt: skip


@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", TRIED)
def test_the_wheel_installs_and_works(built: list[Path], tmp_path: Path, version: str) -> None:
    if (base := find_python(version)) is None:
        pytest.skip(f"this machine has no Python {version}")
    (wheel,) = (path for path in built if path.suffix == ".whl")
    home = tmp_path / "venv"
    run(base, "-m", "venv", home)
    python = home / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", wheel)
    printed = run(home / "bin" / "fairlock", "run", "hello", "--", "echo", "hi", cwd=tmp_path, HOME=str(tmp_path))
    assert printed == "hi\n"
    where = run(python, "-c", "import fairlock; print(fairlock.__file__)", cwd=tmp_path)
    assert where.startswith(str(home))
    (tmp_path / "borrowed").mkdir()
    borrow(tmp_path / "borrowed")
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "conftest.py").write_text(CONFTEST)
    (suite / "test_contract.py").write_text("from fairlock.testing.suite import *\n")
    chosen = ["-k", "not (writer or semaphore)", "--rootdir", suite]
    command = [python, "-m", "pytest", suite, "-q", "-p", "no:cacheprovider", *chosen]
    printed = run(*command, cwd=suite, PYTHONPATH=str(tmp_path / "borrowed"), HOME=str(tmp_path))
    assert int(re.findall(r"(\d+) passed", printed)[0]) > 300


def test_the_package_index_can_show_the_page(built: list[Path]) -> None:
    if os.environ.get("CI") != "true":
        pytest.importorskip("twine", reason="./dev test brings twine")
    assert "PASSED" in run(sys.executable, "-m", "twine", "check", "--strict", *built)

"""What gets installed: the wheel holds every file of the package, needs nothing, and brings the command."""

import configparser
import os
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.house.tree import ROOT, SRC, files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    if os.environ.get("CI") != "true":  # there it is a failure
        pytest.importorskip("hatchling", reason="./dev test brings hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True,
                   capture_output=True)
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    ours = {str(path.relative_to(SRC)) for path in files() if path.is_relative_to(SRC)}
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == ours
    assert "holdfast/py.typed" in ours


def test_the_core_needs_nothing(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(wheel.read(name).decode())
    assert [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each] == []
    assert metadata["Version"] == PROJECT["version"]


def test_the_wheel_brings_the_command(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt"))
    points = configparser.ConfigParser()
    points.read_string(wheel.read(name).decode())
    assert dict(points["console_scripts"]) == {"holdfast": "holdfast.cli:main"}


def test_the_changelog_has_a_place_for_the_next_line() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    headings = [line for line in lines if line.startswith("## ")]
    assert headings[0] == "## Unreleased" or headings[0].startswith(f"## {PROJECT['version']}")


def test_ci_runs_what_a_person_runs() -> None:
    text = (ROOT / ".ci" / "run").read_text()
    assert text.splitlines()[1:] == ['cd "$(dirname "$0")/.." && exec ./dev test']
    assert Path(ROOT / ".ci" / "run").stat().st_mode & 0o111
    assert Path(ROOT / "dev").stat().st_mode & 0o111

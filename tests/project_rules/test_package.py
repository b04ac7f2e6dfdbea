"""What gets installed: the wheel holds every file of the package, needs nothing, and brings the command."""

import configparser
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import fairlock
from fairlock.connect import SCHEMES
from tests.project_rules.test_pages import heading_anchors
from tests.project_rules.tree import ROOT, SRC, files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TRIED = ("3.11", "3.12", "3.13")  # see test_wheel.py


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
    assert "fairlock/py.typed" in ours


def test_the_core_needs_nothing(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(wheel.read(name).decode())
    assert [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each] == []
    assert metadata["Version"] == fairlock.__version__


def test_the_wheel_brings_the_command(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt"))
    points = configparser.ConfigParser()
    points.read_string(wheel.read(name).decode())
    assert dict(points["console_scripts"]) == {"fairlock": "fairlock.cli:main"}
    assert dict(points["pytest11"]) == {"fairlock": "fairlock.integrations.pytest_plugin"}
    schemes = set(SCHEMES) - {"unix", "rediss+sentinel", "rediss+cluster"}
    assert set(points["tooz.backends"]) == {"fairlock", *(f"fairlock+{scheme}" for scheme in schemes)}


def test_the_changelog_has_a_place_for_the_next_line() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    headings = [line for line in lines if line.startswith("## ")]
    assert headings[0] == "## Unreleased" or headings[0].startswith(f"## {fairlock.__version__}")


def test_ci_runs_what_a_person_runs() -> None:
    text = (ROOT / ".ci" / "run").read_text()
    assert text.splitlines()[1:] == ['cd "$(dirname "$0")/.." && exec ./dev test']
    assert Path(ROOT / ".ci" / "run").stat().st_mode & 0o111
    assert Path(ROOT / "dev").stat().st_mode & 0o111


def test_the_version_has_one_place() -> None:
    assert PROJECT["dynamic"] == ["version", "readme"]
    assert "version" not in PROJECT


def test_the_package_index_shows_where_it_was_tried() -> None:
    pythons = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if each.startswith("Programming Language")]
    assert tuple(each for each in pythons if "." in each) == TRIED
    assert "Operating System :: POSIX :: Linux" in PROJECT["classifiers"]


def leads_nowhere(text: str) -> list[str]:
    """Return the links and pictures of a text that lead nowhere if no file is beside it."""
    targets = re.findall(r"\]\(([^)\s]+)\)|\b(?:src|href)=[\"']?([^\"'\s>]+)", re.sub(r"(?ms)^```.*?^```", "", text))
    anchors = {f"#{anchor}" for anchor in heading_anchors(text)}
    found = [one or other for one, other in targets]
    return [each for each in found if each not in anchors and (":" not in each or ".example" in each)]


def test_the_readme_of_the_package_index_has_no_link_that_leads_nowhere(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(wheel.read(name).decode())
    shown = str(metadata.get_payload())
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert shown.startswith("# fairlock") and "$ ./dev fairlock run hello -- echo hi" in shown
    assert leads_nowhere(shown) == []
    assert leads_nowhere((ROOT / "README.md").read_text()) != []  # there they lead to files, which test_pages.py checks
    pages = re.findall(r"\(`([\w./-]+\.md)`\)", shown)
    assert len(pages) > 15
    assert [page for page in pages if not (ROOT / page).is_file()] == []
    assert [url for url in metadata.get_all("Project-URL", []) if ".example" in url] == []


@pytest.mark.parametrize("link", ["[a](docs/a.md)", "[a](#b)", "![a](a.svg)", "[a](https://fairlock.example/)"])
def test_a_link_that_leads_nowhere_is_noticed(link: str) -> None:
    assert len(leads_nowhere(f"# a\n\n{link}")) == 1
    assert leads_nowhere("# a\n\n[a](#a) [b](https://www.w3.org/)") == []


def test_every_pip_install_names_a_distribution_of_ours_and_an_extra_that_exists() -> None:
    found = []
    for path in files():
        if path.suffix in {".py", ".md"} and path.is_relative_to(ROOT) and "tests" not in path.parts:
            found += re.findall(r"pip install '([\w.-]+)\[([\w{}]+)\]'", path.read_text())
    assert len(found) > 8
    extras = {*PROJECT["optional-dependencies"], "{extra}"}
    assert [(name, extra) for name, extra in found if name not in ("fairlock", ".") or extra not in extras] == []


def test_no_extra_is_empty_of_modules() -> None:
    """An extra is for a store, a recipe or the test kit: something in src/ imports what it brings."""
    source = "\n".join(path.read_text() for path in SRC.rglob("*.py"))
    for extra, wanted in PROJECT["optional-dependencies"].items():
        modules = {"cassandra-driver": "cassandra", "opentelemetry-api": "opentelemetry"}
        modules["prometheus-client"] = "prometheus_client"
        for each in wanted:
            name = re.split(r"[\[<>=]", each)[0]
            assert re.search(rf"\b{modules.get(name, name)}\b", source), (extra, each)

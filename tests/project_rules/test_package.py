"""What gets installed: the wheel holds every file of the package, needs nothing, and brings the command."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from functools import partial
from pathlib import Path

import pytest

import fairlock
from fairlock.connect import SCHEMES
from tests.project_rules.test_pages import heading_anchors
from tests.project_rules.tree import ROOT, SRC, files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HOST = "host.org"
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
    assert PROJECT["dynamic"] == ["version", "readme", "urls"]
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
    if metadata.get_all("Project-URL") is None:  # a checkout without a public address
        pages = re.findall(r"\(`([\w./-]+\.md)`\)", shown)
    else:
        pages = re.findall(r"/HEAD/([\w./-]+\.md)", shown)
    assert len(pages) > 15
    assert [page for page in pages if not (ROOT / page).is_file()] == []


def test_the_package_index_shows_the_address_that_this_was_cloned_from(tmp_path: Path) -> None:
    """A source distribution made from a clone has it, and so has a wheel made from that."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    for name in names.splitlines():
        if name.startswith(("src/", "docs/")) or "/" not in name:
            (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "clone" / name)
    run = partial(subprocess.run, check=True, capture_output=True)
    run(["git", "init", "-q"], cwd=tmp_path / "clone")
    run(["git", "remote", "add", "origin", f"git@{HOST}:locks/fairlock.git"], cwd=tmp_path / "clone")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    run([*build, "-t", "sdist"], cwd=tmp_path / "clone")
    (archive,) = tmp_path.glob("*.tar.gz")
    run(["tar", "-xf", str(archive)], cwd=tmp_path)
    run([*build, "-t", "wheel"], cwd=tmp_path / archive.name.removesuffix(".tar.gz"))
    (path,) = tmp_path.glob("*.whl")
    (name,) = (name for name in zipfile.ZipFile(path).namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(zipfile.ZipFile(path).read(name).decode())
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL", []))
    address = f"https://{HOST}/locks/fairlock"
    assert urls["Source"] == address
    assert [url for url in urls.values() if not url.startswith(address)] == []
    shown = str(metadata.get_payload())
    assert leads_nowhere(shown) == []
    links = re.findall(rf"\]\({address}/(?:blob|raw)/HEAD/([\w./-]+)", shown)
    assert len(links) > 15 and any(link.endswith(".svg") for link in links)
    assert [link for link in links if not (ROOT / link).is_file()] == []


@pytest.mark.parametrize(("remote", "address"), [
    (f"https://{HOST}/a/b.git\n", f"https://{HOST}/a/b"),
    (f"git@{HOST}:a/b", f"https://{HOST}/a/b"),
    (f"ssh://git@{HOST}/a/b.git", f"https://{HOST}/a/b"),
    (f"https://user:secret@{HOST}/a/b", None),
    (f"https://{HOST}.example/a/b", None),
    ("../main", None),
    ("/srv/fairlock", None),
    ("", None),
])
def test_only_a_public_address_is_shown(remote: str, address: str | None) -> None:
    sys.path.insert(0, str(ROOT))
    try:
        from hatch_build import public_address
    finally:
        sys.path.remove(str(ROOT))
    assert public_address(remote) == address


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

"""Names of tests that a conftest or ./dev lists exist, so that no list goes stale when something is renamed."""

import importlib.machinery
import importlib.util
import re
from pathlib import Path

import pytest

from tests import conftest
from tests.project_rules.tree import ROOT

CONTRACT = ROOT / "tests" / "contract" / "conftest.py"
SUITE = ROOT / "src" / "fairlock" / "testing" / "suite"


def missing_paths(root: Path) -> list[str]:
    """Return the folders and files that tests/conftest.py names and that do not exist."""
    folders = [f"tests/{name}" for name in conftest.SHARE_NOTHING]
    folders += [path for path in conftest.CALM if path.endswith("/")]
    files = [f"tests/cassandra/test_{name}.py" for name in conftest.ONE_NODE]
    files += [*conftest.FILES_OF_SLOW_SERVERS, *conftest.PROGRAMS, *conftest.NEMESES]
    files += [test.partition("::")[0] for test in conftest.TESTS_OF_SLOW_SERVERS]
    files += [group for group in conftest.LONGEST if group.startswith("tests/")]
    files += [path for path in conftest.CALM if path.endswith(".py")]
    return [path for path in folders if not (root / path).is_dir()] + [
        path for path in files if not (root / path).is_file()
    ]


def missing_tests(conftest_text: str, suite_text: str) -> list[str]:
    """Return the names of tests and test classes that one text lists and the other does not define."""
    listed = set(re.findall(r'"(Test\w+|test_\w+)"', conftest_text))
    return sorted(listed - set(re.findall(r"(?:class|def) (\w+)", suite_text)))


def test_every_file_and_folder_that_is_listed_exists() -> None:
    assert missing_paths(ROOT) == []


def test_every_slow_server_is_a_store_of_the_contract() -> None:
    text = CONTRACT.read_text()
    assert [name for name in conftest.SLOW_SERVERS if f'"{name}":' not in text] == []


def test_what_begins_first_are_groups() -> None:
    tests = [f"{path}::test[{number}]" for path in conftest.NEMESES for number in range(20)]
    two = {conftest.shared_by(test) for test in tests}
    assert two == {"nemesis 0", "nemesis 1"}
    named = {group for group in conftest.LONGEST if not group.startswith("tests/")}
    assert named <= {*two, *conftest.SLOW_SERVERS}
    assert conftest.shared_by("tests/faults/test_nemesis.py::test_a[cassandra-1]") == "cassandra"
    assert conftest.shared_by("tests/engine/test_prune.py::test_a[tasks-cassandra]") == "cassandra"


def test_every_test_that_the_contract_lists_exists() -> None:
    played = [*SUITE.glob("*.py"), *CONTRACT.parent.glob("test_*.py")]
    assert missing_tests(CONTRACT.read_text(), "\n".join(path.read_text() for path in sorted(played))) == []


def test_what_the_quick_run_names_exists() -> None:
    loader = importlib.machinery.SourceFileLoader("dev", str(ROOT / "dev"))
    spec = importlib.util.spec_from_loader("dev", loader)
    assert spec is not None
    dev = importlib.util.module_from_spec(spec)
    loader.exec_module(dev)
    assert [path for path in dev.QUICK if not (ROOT / path).exists()] == []
    files = [path.name for folder in dev.QUICK for path in (ROOT / folder).glob("test_*.py")]
    assert [name for name in dev.COUNTS if not any(name in file for file in files)] == []
    suite = "\n".join(path.read_text() for path in sorted(SUITE.glob("*.py")))
    assert [name for name in dev.WAITS if name.startswith("Test") and f"class {name}(" not in suite] == []
    text = CONTRACT.read_text()
    assert [name for name in dev.QUICK_STORES.split(",") if f'"{name}":' not in text] == []


def test_a_stale_name_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(missing_paths(tmp_path)) > 5
    monkeypatch.setattr(conftest, "SHARE_NOTHING", ("no_such_folder",))
    assert missing_paths(ROOT) == ["tests/no_such_folder"]
    assert missing_tests('{"TestOne", "test_two"}', "class TestOne: ...") == ["test_two"]

"""The order of `./dev test`: which process runs which tests, and what it reports."""

import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

from tests.conftest import CALM_PROCESS, LONGEST, choices
from tests.project_rules.tree import ROOT

FILE, CALM_FILE, LONG = "tests/cli/test_run.py", "tests/redis/test_mutants.py", LONGEST[0]
TEST, CALM_TEST = "tests/contract/test_contract.py::test_a", "tests/lock_rules/test_step.py::test_b"
QUEUE: dict[str, Any] = OrderedDict.fromkeys([FILE, CALM_FILE, TEST, CALM_TEST, LONG])


def test_the_calm_process_gets_only_what_measures_no_time() -> None:
    assert list(choices(CALM_PROCESS, QUEUE)) == [CALM_TEST, CALM_FILE]
    assert list(choices(CALM_PROCESS, {FILE: {}, TEST: {}})) == []


def test_the_others_begin_with_what_takes_long_or_waits_and_end_with_what_is_calm() -> None:
    assert next(choices("gw0", QUEUE)) == LONG
    assert next(choices("gw1", QUEUE)) == TEST
    for process in ("gw0", "gw1"):
        all_of_them = list(dict.fromkeys(choices(process, QUEUE)))
        assert set(all_of_them) == set(QUEUE)
        assert set(all_of_them[-2:]) == {CALM_FILE, CALM_TEST}


def test_nothing_that_is_wrong_is_left_out_of_the_reports(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_configure\n")
    (tmp_path / "test_five.py").write_text(
        "import pytest\n"
        "@pytest.fixture\ndef fails_before():\n    raise ValueError\n"
        "@pytest.fixture\ndef fails_after():\n    yield\n    raise ValueError\n"
        "def test_a(): pass\n"
        "def test_b(): raise ValueError\n"
        "def test_c(fails_before): pass\n"
        "def test_d(fails_after): pass\n"
        "def test_e(): pytest.skip('not here')\n"
    )
    settings = tmp_path / "pytest.ini"
    settings.write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-c", str(settings), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert "1 failed, 2 passed, 1 skipped, 2 errors" in done.stdout, done.stdout + done.stderr

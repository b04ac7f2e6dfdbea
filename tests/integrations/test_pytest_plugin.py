"""The plug-in of pytest, with real workers of pytest-xdist: the conftest.py of the page runs once over all of them."""

from __future__ import annotations

import pytest

from tests.integrations.conftest import Project

TESTS = """
import os, pathlib, time
import pytest

@pytest.mark.parametrize("n", range(6))
def test_it_is_there(database, n):
    time.sleep(1.5 if n == 0 else 0.1)  # one worker uses it while the others end
    with open("log", "a") as log:
        log.write(f"{os.getpid()} {database} {pathlib.Path(database).is_dir()}\\n")
"""
COUNTED = """
import os
def note(what):
    with open("steps", "a") as log:
        log.write(f"{what}\\n")
"""
THREE = "-p", "xdist", "-n", "3", "--dist", "load"


@pytest.fixture
def suite(project: Project) -> Project:
    project.take_files("integrations-pytest.md")
    text = project.read("conftest.py") + COUNTED
    text = text.replace("    folder.mkdir()", '    note("make")\n    folder.mkdir()').replace("shutil.rmtree", "undo")
    text += "\ndef undo(folder):\n    note('undo')\n    shutil.rmtree(folder)\n"
    project.write("conftest.py", text)
    project.write("test_it.py", TESTS)
    return project


def run(suite: Project, *options: str) -> tuple[int, str]:
    suite.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # those of this project take long to import
    return suite.attempt("-m", "pytest", "-q", "-p", "fairlock.integrations.pytest_plugin", *options)


def test_it_is_made_once_over_three_workers_and_undone_by_the_last(suite: Project) -> None:
    code, printed = run(suite, *THREE)
    assert code == 0, printed
    lines = suite.read("log").splitlines()
    assert len(lines) == 6
    assert {line.split()[1] for line in lines} == {f"{suite.folder}/test-database"}
    assert len({line.split()[0] for line in lines}) == 3  # workers
    assert all(line.endswith(" True") for line in lines)
    assert suite.read("steps").split() == ["make", "undo"]
    assert not (suite.folder / "test-database").exists()


def test_it_works_without_xdist(suite: Project) -> None:
    code, printed = run(suite)
    assert code == 0, printed
    assert suite.read("steps").split() == ["make", "undo"]


def test_a_worker_that_dies_does_not_stop_the_others(suite: Project) -> None:
    dying = "\ndef test_that_kills_its_worker(database):\n    if os.path.exists('died'): return\n"
    dying += "    open('died', 'w').close()\n    os._exit(9)\n"
    # First, so that others use it after the death: the last worker undoes it, and that must not be the one that dies.
    suite.write("test_it.py", f"import os\n{dying}\n{TESTS}")
    code, printed = run(suite, *THREE)
    assert code == 1, printed
    assert suite.read("steps").split()[-1] == "undo"
    assert not (suite.folder / "test-database").exists()


def test_after_a_failure_the_next_worker_makes_it(suite: Project) -> None:
    text = suite.read("conftest.py").replace(
        '    note("make")\n', '    note("make")\n    if open("steps").read().count("make") == 1: raise ValueError\n'
    )
    suite.write("conftest.py", text)
    code, printed = run(suite, *THREE)
    assert code == 1, printed  # the tests of the first worker
    assert suite.read("steps").split() == ["make", "make", "undo"]
    assert "ValueError" in printed

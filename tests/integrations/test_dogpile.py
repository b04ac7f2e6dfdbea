"""dogpile.cache: of three processes that miss the same key, one creates the value."""

from __future__ import annotations

import dbm

from tests.integrations.conftest import Project

PROGRAM = """
import sys, time
import fairlock
from dogpile.cache import make_region
from fairlock.integrations.dogpile import Mutexes
locks = fairlock.connect()
arguments = {"filename": "cache.dbm", "rw_lockfile": "cache.lock", "dogpile_lockfile": False}
wrap = [Mutexes(locks)] if sys.argv[1] == "with" else []
region = make_region().configure("dogpile.cache.dbm", arguments=arguments, wrap=wrap)
def create():
    with open("log", "a") as log:
        log.write("created\\n")
    time.sleep(1.5)
    return "value"
print(region.get_or_create(f"key {sys.argv[1]}", create))
locks.close()
"""


def create_in_three(project: Project, how: str) -> int:
    project.write("main.py", PROGRAM)
    with dbm.open(str(project.folder / "cache.dbm"), "c"):
        pass  # dogpile's own check for the file is not safe if two create it at the same moment
    project.write("log", "")
    started = [project.start("main.py", how) for _ in range(3)]
    printed = [each.communicate(timeout=60)[0].strip() for each in started]
    assert printed == ["value"] * 3
    return project.read("log").count("created")


def test_one_of_three_processes_creates_the_value(project: Project) -> None:
    assert create_in_three(project, "with") == 1


def test_without_the_mutexes_more_than_one_creates_it(project: Project) -> None:
    assert create_in_three(project, "without") > 1

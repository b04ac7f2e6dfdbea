"""Alembic: the env.py of the page lets one of three processes migrate; without its lock, all three do."""

from __future__ import annotations

import pytest

from tests.integrations.conftest import Project

INI = """
[alembic]
script_location = %(here)s/migrations
sqlalchemy.url = sqlite:///shop.db
path_separator = os
"""
FIRST = """
import os, time
from alembic import op
import sqlalchemy
revision, down_revision = "1", None
def upgrade():
    with open("log", "a") as log:
        log.write(f"{os.getpid()}\\n")
    time.sleep(0.5)
    op.create_table("account", sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True))
"""


@pytest.fixture
def shop(project: Project) -> Project:
    project.take_files("integrations-alembic.md")
    project.write("alembic.ini", INI)
    project.write("migrations/versions/first.py", FIRST)
    return project


def migrate(shop: Project) -> list[int]:
    pods = [shop.start("-m", "alembic.config", "upgrade", "head") for _ in range(3)]
    [pod.communicate(timeout=60) for pod in pods]
    return sorted(pod.returncode for pod in pods)


def test_one_of_three_processes_migrates(shop: Project) -> None:
    assert migrate(shop) == [0, 0, 0]
    assert shop.read("log").count("\n") == 1


def test_without_the_lock_more_than_one_migrates(shop: Project) -> None:
    env = shop.read("migrations/env.py")
    alone = env.replace("sqlite:///locks.db", "memory://")  # a lock that reaches no other process
    shop.write("migrations/env.py", alone)
    others = "while len(open('log').readlines()) < 2 and time.monotonic() < begun + 20: time.sleep(0.05)"
    together = FIRST.replace("time.sleep(0.5)", f"begun = time.monotonic()\n    {others}")
    shop.write("migrations/versions/first.py", together)
    assert migrate(shop)[-1] != 0
    assert shop.read("log").count("\n") > 1

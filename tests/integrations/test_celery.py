"""Celery with a real worker and a real beat: one task at a time, tasks that are put back, one beat among two."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from tests.integrations.conftest import Project, until

CONFIG = """
import os
from pathlib import Path
folder = Path(__file__).parent / "broker"
folder.mkdir(exist_ok=True)
broker_url = "filesystem://"
broker_transport_options = {"data_folder_in": str(folder), "data_folder_out": str(folder),
                            "control_folder": str(folder / "control")}
task_ignore_result = True
worker_hijack_root_logger = False
broker_connection_retry_on_startup = True
beat_max_loop_interval = 0.1
beat_schedule = {"tick": {"task": "jobs.tick", "schedule": 0.2}}
"""
# What the tasks of the page do, with a body that shows when two run at once.
JOBS = """
import os, time
from celery import signals
from tasks import app, export, fairlock, locks, send_once

def work(name):
    line = f"{name} {os.getpid()}"
    with open("log", "a") as log:
        log.write(f"begin {line}\\n"); log.flush()
        time.sleep(0.15)
        log.write(f"end {line}\\n")

@signals.task_success.connect
def log_success(sender, **_):
    with open("log", "a") as log:
        log.write(f"done {sender.name}\\n")

@app.task
@locks.guard("rebuild-index", skip=True)
def rebuild():
    work("rebuild")

@app.task(bind=True, max_retries=None)
def charge(self, account):
    try:
        lease = locks.lock(f"account:{account}").hold(timeout=0).__enter__()
    except fairlock.LockTimeout as busy:
        raise self.retry(exc=busy, countdown=0.1)
    with lease:
        work("charge")

@app.task
def tick():
    pass
"""


@pytest.fixture
def shop(project: Project) -> Project:
    project.take_files("integrations-celery.md")
    project.write("celeryconfig.py", CONFIG)
    project.write("jobs.py", JOBS)
    return project


SEND = """
import jobs
for n in range(4):
    jobs.charge.delay(7)
for n in range(4):
    jobs.rebuild.delay()
for n in range(3):
    jobs.send_once(jobs.export, "export:2026", 2026)
"""


def test_tasks_of_two_workers_run_one_at_a_time(shop: Project) -> None:
    shop.run("-c", SEND)
    shop.start("-m", "celery", "-A", "jobs", "worker", "-c", "2", "--without-gossip", "--without-mingle", "-l", "error")
    until(lambda: shop.read("log").count("end charge") == 4 and is_idle(shop))
    until(lambda: "done tasks.export" in shop.read("log"))
    log = shop.read("log")
    assert log.count("done tasks.export") == 1  # of three that were sent
    assert "export:2026" not in shop.run("-m", "fairlock", "ls")
    assert 1 <= log.count("end rebuild") <= 4
    for name in ("charge", "rebuild"):
        steps = [line.split()[0] for line in log.splitlines() if f" {name} " in line]
        assert steps == ["begin", "end"] * (len(steps) // 2)


def is_idle(shop: Project) -> bool:
    return not list((shop.folder / "broker").glob("*.msg"))


def test_one_beat_of_two_is_active_and_the_other_takes_over(shop: Project) -> None:
    beat = [sys.executable, "-m", "celery", "-A", "jobs", "beat", "-l", "error", "--pidfile="]

    def start(name: str) -> int:
        run = ["-m", "fairlock", "lead", "--lease", "5s", "--owner", name, "celery-beat", "--", *beat]
        return shop.start(*run, "-s", f"{shop.folder}/{name}.schedule").pid

    def sent() -> int:
        return len(list((shop.folder / "broker").glob("*.msg")))

    def active() -> list[str]:
        return [name for name in ("one", "two") if list(shop.folder.glob(f"{name}.schedule*"))]

    first = start("one")
    until(lambda: sent() > 2)
    start("two")
    until(lambda: "two" in shop.run("-m", "fairlock", "show", "celery-beat"))
    before = sent()
    until(lambda: sent() > before + 2)
    assert active() == ["one"]
    os.killpg(first, signal.SIGKILL)  # the session that `start` made
    before = sent()
    until(lambda: sent() > before + 2)
    assert active() == ["one", "two"]

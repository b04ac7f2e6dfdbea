"""tooz: its own tests of locks, groups and leaders pass on the driver."""

from __future__ import annotations

import re
import tomllib

from tests.integrations.conftest import Project
from tests.project_rules.snippets import ROOT
from tests.servers.server import Server

POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["tooz.backends"]
# Without test_timeout: it expects that a member whose process lives is dropped if it sends no heartbeat.
OWN = "TestAPI and not test_timeout"
# The module of tests imports the other drivers, to skip what those cannot do, and these need packages that we lack.
RUN_TESTS = """
import sys
from unittest.mock import MagicMock
import pytest
for name in ("etcd3gw", "memcached", "ipc"):
    sys.modules[f"tooz.drivers.{name}"] = MagicMock()
class Other: pass
for name in ("etcd3gw.Etcd3Driver", "memcached.MemcachedDriver", "ipc.IPCDriver"):
    module, _, kind = name.partition(".")
    setattr(sys.modules[f"tooz.drivers.{module}"], kind, Other)
if __name__ == "__main__":
    sys.exit(pytest.main(sys.argv[1:]))
"""


def install(project: Project) -> None:
    """Write the metadata that an installed fairlock has: tooz reads the entry points from there."""
    project.write("fairlock-0.dist-info/METADATA", "Metadata-Version: 2.1\nName: fairlock\nVersion: 0\n")
    points = "\n".join(f"{name} = {where}" for name, where in POINTS.items())
    project.write("fairlock-0.dist-info/entry_points.txt", f"[tooz.backends]\n{points}\n")


def run(project: Project, url: str) -> dict[str, int]:
    install(project)
    project.env["TOOZ_TEST_URL"] = url
    project.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    folder = project.env["PYTHONPATH"].split(":")[1]
    project.write("run_tests.py", RUN_TESTS)
    project.write("pytest.ini", "[pytest]")
    command = ["run_tests.py", "-q", "-c", "pytest.ini", "-k", OWN, f"{folder}/tooz/tests/test_coordination.py"]
    code, printed = project.attempt(*command, timeout=100)
    assert code == 0, printed
    return {what: int(number) for number, what in re.findall(r"(\d+) (passed|skipped|failed)", printed)}


def test_its_own_tests_pass_on_sqlite(project: Project) -> None:
    counts = run(project, f"fairlock+sqlite:///{project.folder}/locks.db")
    assert counts["passed"] >= 76
    assert counts["skipped"] <= 4  # heartbeats, another host, and groups that end by themselves


def test_its_own_tests_pass_on_redis(project: Project, redis_alone: Server) -> None:
    assert run(project, f"fairlock+redis://{redis_alone.address}")["passed"] >= 76


FROM_THE_PAGE = """
import os
from tooz import coordination
coordinator = coordination.get_coordinator("fairlock://", b"worker-1")
coordinator.start()
lock = coordinator.get_lock(b"nightly-report")
with lock:
    os.system(f"{os.sys.executable} -m fairlock ls")
coordinator.create_group(b"workers").get()
coordinator.join_group(b"workers", {"cpus": 4}).get()
print(coordinator.get_members_with_capabilities(b"workers").get())
os.system(f"{os.sys.executable} -m fairlock pool ls tooz:members:workers")
coordinator.stop()
try:
    bad = coordination.get_coordinator("fairlock+redis://127.0.0.1:1", b"worker-1")
    bad.start()
except coordination.ToozConnectionError as error:
    print("no connection")
"""


def test_the_locks_are_those_of_fairlock(project: Project) -> None:
    install(project)
    printed = project.run("-c", FROM_THE_PAGE)
    assert re.search(r"nightly-report +\S* *.*worker-1", printed), printed
    assert "{b'worker-1': {'cpus': 4}}" in printed
    assert re.search(r"worker-1 +taken", printed), printed
    assert printed.splitlines()[-1] == "no connection"


DIES = """
import os
from tooz import coordination
coordinator = coordination.get_coordinator("fairlock://", b"worker-2")
coordinator.start()
coordinator.join_group(b"workers").get()
os.kill(os.getpid(), 9)
"""
STAYS = """
import subprocess, sys, time
from tooz import coordination
coordinator = coordination.get_coordinator("fairlock://", b"worker-1")
coordinator.start()
coordinator.create_group(b"workers").get()
coordinator.join_group(b"workers").get()
left = []
coordinator.watch_leave_group(b"workers", lambda event: left.append(event.member_id))
coordinator.watch_join_group(b"workers", lambda event: print("joined", event.member_id))
subprocess.run([sys.executable, "dies.py"])
end = time.monotonic() + 20
while coordinator.get_members(b"workers").get() != {b"worker-1"} and time.monotonic() < end:
    coordinator.run_watchers()
    time.sleep(0.05)
print(coordinator.get_members(b"workers").get())
coordinator.stop()
"""


def test_a_member_that_is_killed_leaves_its_groups(project: Project) -> None:
    install(project)
    project.write("dies.py", DIES)
    project.env["FAIRLOCK_LEASE"] = "2"
    assert project.run("-c", STAYS).splitlines()[-1] == "{b'worker-1'}"

"""A fork that calls no hook of Python, as a server written in C makes it: the child still holds nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

PARENT_AND_CHILD = """
import ctypes, os, sys, time
import fairlock

locks = fairlock.connect(sys.argv[1])
used = sys.argv[2] == "used"
theirs = locks.lock("theirs").acquire() if used else None
ours_is_taken, taken = os.pipe()
time.sleep(0.6)  # until no other thread waits for the interpreter: it would not run in the child, and stop it
pid = ctypes.PyDLL(None).fork()  # os.fork() would call the hooks
if not pid:
    try:
        os.read(ours_is_taken, 1)
        if theirs is not None:
            print("inherited", theirs.held, theirs.reason)
            theirs.release()
        try:
            print("the child has", locks.lock("x").acquire(timeout=0))
            with locks.lock("y") as lease:
                print("fence", lease.fence > 0)
        except fairlock.StoreError as error:
            print(error)
    except BaseException as error:
        print(repr(error))
    sys.stdout.flush()
    os._exit(0)
ours = locks.lock("x").acquire()
os.write(taken, b".")
os.waitpid(pid, 0)
ours.renew()
if theirs is not None:
    theirs.renew()
    theirs.release()
ours.release()
with locks.lock("y"):
    print("the parent goes on")
locks.close()
"""


@pytest.fixture(params=["sqlite", "redis_alone", "postgresql", "mariadb", "cassandra", "fake_nosql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/locks.db"
    server = request.getfixturevalue(request.param)
    return str(server.url() if request.param == "fake_nosql" else server.url)


def lines(url: str, used: str) -> list[str]:
    command = (sys.executable, "-W", "ignore", "-c", PARENT_AND_CHILD, url, used)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_parent_and_child_do_not_hold_the_same_lock(url: str) -> None:
    assert lines(url, "unused") == ["the child has None", "fence True", "the parent goes on"]


def test_a_lease_stays_the_parents(url: str) -> None:
    child = ["inherited False forked", "the child has None", "fence True"]
    if url.startswith("sqlite"):
        path = url.removeprefix("sqlite:///")
        child[1:] = [
            f"This process was forked while {path} was in use, in a way that Python could not prepare for; "
            "SQLite would lose writes. Connect after the fork."
        ]
    assert lines(url, "used") == [*child, "the parent goes on"]

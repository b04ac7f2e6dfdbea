"""A process of its own that holds a lock, or waits for one, until it is killed: for stores that see nobody die."""

import subprocess
import sys
import time

import holdfast

HOLD = """
import sys, holdfast
url, lease, word = sys.argv[1:]
locks = holdfast.connect(url, lease=float(lease), owner="doomed")
print(word, flush=True)
lock = locks.lock("x")
with lock.hold(timeout=60) as lease:
    print("inside", lease.fence, flush=True)
    sys.stdin.read()
"""


def start(url: str, lease: float) -> "subprocess.Popen[str]":
    words = [sys.executable, "-c", HOLD, url, str(lease), "begun"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def a_holder_and_a_waiter_are_killed(url: str, lease: float = 1.0) -> None:
    """Somebody holds it, somebody waits, we wait behind them. Both are killed: we are inside before long."""
    holder = start(url, lease)
    try:
        assert holder.stdout is not None
        fence = int(holder.stdout.readline().split()[1])
        waiter = start(url, lease)
        try:
            with holdfast.connect(url) as locks:
                limit = time.monotonic() + 30
                while not locks.snapshot("x").resources[0].line:
                    assert time.monotonic() < limit, "he never stood in line"
                    time.sleep(0.05)
                end(holder)
                end(waiter)
                assert locks.lock("x").acquire(blocking=False) is None, "the dead are not known to be dead"
                with locks.lock("x").hold(timeout=30) as ours:
                    assert ours.fence > fence
                    (inside,) = locks.snapshot("x").resources[0].inside
                    assert inside.owner != "doomed"
        finally:
            end(waiter)
    finally:
        end(holder)

"""Processes that hold a lock, or wait for one, until they are killed: for stores that notice no death."""

import subprocess
import sys
import time

import fairlock

HOLD = """
import sys, fairlock
url, lease, word = sys.argv[1:]
locks = fairlock.connect(url, lease=float(lease), owner="doomed")
print(word, flush=True)
lock = locks.lock("x")
with lock.hold(timeout=60) as lease:
    print("holders", lease.fence, flush=True)
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
    """A process holds it, another waits, this one waits behind them. Both are killed: this one soon gets the lock."""
    holder = start(url, lease)
    try:
        assert holder.stdout is not None
        fence = int(holder.stdout.readline().split()[1])
        waiter = start(url, lease)
        try:
            with fairlock.connect(url) as locks:
                limit = time.monotonic() + 30
                while not locks.snapshot("x").resources[0].queue:
                    assert time.monotonic() < limit, "the waiter never stood in the queue"
                    time.sleep(0.05)
                end(holder)
                end(waiter)
                assert locks.lock("x").acquire(blocking=False) is None, "the dead are not known to be dead"
                with locks.lock("x").hold(timeout=30) as ours:
                    assert ours.fence > fence
                    (holders,) = locks.snapshot("x").resources[0].holders
                    assert holders.owner != "doomed"
        finally:
            end(waiter)
    finally:
        end(holder)

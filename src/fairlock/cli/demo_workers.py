"""The workers of `fairlock demo`: what each of the eight processes does with its locks.

    python -m fairlock.cli.demo_workers ROLE URL JOURNAL PARENT
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable

import fairlock

ENDS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP  # the signals that end the demo
Activity = Callable[[fairlock.Locks], None]


def pause(least: float, most: float) -> None:
    time.sleep(random.uniform(least, most))


def ship_orders(locks: fairlock.Locks) -> None:
    """Compete with the other web servers for a few orders, of which one is popular."""
    order = random.choice(("orders:1042", "orders:1042", "orders:1042", "orders:1043", "orders:1044"))
    with locks.lock(order, note="ship order", timeout=60).hold():
        pause(1.5, 4)
    pause(0, 1)


def call_stripe(locks: fairlock.Locks) -> None:
    with locks.semaphore("stripe-api", 3, note=random.choice(("charge", "refund", "payout"))):
        pause(1, 5)
    pause(0, 0.5)


def search(locks: fairlock.Locks) -> None:
    """Read the index, and rebuild it now and then."""
    index = locks.rwlock("search:index")
    with index.write() if random.random() < 0.15 else index.read():
        pause(1, 4)
    pause(0, 1)


def use_gpu(locks: fairlock.Locks) -> None:
    pool = locks.pool("gpu-pool")
    for number in range(3):
        pool.add(f"gpu-{number}", {"memory": "80 GB"})
    with locks.lock("report:nightly", note="render", timeout=60).hold():
        pause(4, 9)
    with pool.hold(timeout=60):
        pause(2, 6)


def crash(locks: fairlock.Locks) -> None:
    """Hold a lock and freeze, like a machine that died: the next one gets it when the lease ends."""
    locks.lock("etl:daily", lease=15, note="load the warehouse").acquire()
    pause(4, 6)
    os.kill(os.getpid(), signal.SIGSTOP)


def check_etl(locks: fairlock.Locks) -> None:
    pause(10, 14)
    with locks.lock("etl:daily", note="check the load", timeout=60).hold():
        pause(2, 5)


def migrate(first: str, second: str) -> Activity:
    """Lock two tenants, one after the other. Three workers that do it in a circle wait for each other."""

    def activity(locks: fairlock.Locks) -> None:
        with locks.lock(f"tenant:{first}", note=f"migrate {first}"):
            pause(2, 3)
            try:
                with locks.lock(f"tenant:{second}", note=f"copy to {second}", timeout=random.uniform(70, 90)):
                    pause(2, 4)
            except fairlock.LockTimeout:
                pass
        pause(2, 8)

    return activity


WORKERS: dict[str, tuple[Activity, ...]] = {
    "web-1": (ship_orders, ship_orders, call_stripe, search),
    "web-2": (ship_orders, call_stripe, call_stripe, search),
    "web-3": (ship_orders, ship_orders, call_stripe, call_stripe, search),
    "gpu-1": (use_gpu, use_gpu, check_etl),
    "etl-1": (crash,),
    "deploy-1": (migrate("acme", "beta"),),
    "deploy-2": (migrate("beta", "gamma"),),
    "deploy-3": (migrate("gamma", "acme"),),
}


def work(role: str, url: str, journal: str, parent: str) -> None:
    """Do what this role does, in a thread each, until the demo ends."""
    from fairlock.web import journal as write_to

    end_with(int(parent))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)  # they were blocked while this process was started
    on_event = write_to(journal)
    worker = os.getpid()
    while role == "etl-1" and (child := os.fork()):  # the one that freezes is replaced after a while
        os.waitpid(child, os.WUNTRACED)
        time.sleep(30)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if os.getpid() != worker:
        end_with(worker)
    locks = fairlock.connect(url, owner=f"{role}:{os.getpid()}", on_event=on_event)
    for activity in WORKERS[role]:
        threading.Thread(target=repeat, args=(activity, locks), daemon=True).start()
    signal.pause()


def end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends, even if the parent is killed and this one is frozen."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it has ended before that
        os._exit(0)


def repeat(activity: Activity, locks: fairlock.Locks) -> None:
    while True:
        try:
            activity(locks)
        except fairlock.LockError:  # a timeout, or an operator that evicted it: go on
            time.sleep(1)


if __name__ == "__main__":
    try:
        work(*sys.argv[1:5])
    except (fairlock.LockError, OSError) as error:  # a full disk: the demo goes on with the others
        sys.exit(f"fairlock: The worker {sys.argv[1]} of the demo has ended: {error}")

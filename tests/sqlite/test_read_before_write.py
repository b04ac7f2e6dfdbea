"""A row with waiters is read before it is written: others change it all the time, and a refused write blocks them."""

import threading
import time
from pathlib import Path

import fairlock
from fairlock import Locks


def wait_for_queue(locks: Locks, length: int) -> None:
    end = time.monotonic() + 30
    while len(locks.snapshot("x").resources[0].queue) < length:
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_release_with_waiters_meets_no_conflict(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    holder, *others = [fairlock.connect(url) for _ in range(3)]
    backend = holder.session.backend
    backend.store.cache_ttl = 60.0  # type: ignore[attr-defined]  # a slow machine reads first in any case
    lease = holder.lock("x").acquire()

    def wait(locks: Locks) -> None:
        with locks.lock("x"):
            pass

    threads = [threading.Thread(target=wait, args=(one,)) for one in others]
    threads[0].start()
    wait_for_queue(holder, 1)
    lease.renew()  # now its last row has a waiter
    before = backend.conflicts  # type: ignore[attr-defined]
    threads[1].start()
    wait_for_queue(others[0], 2)
    lease.release()
    assert backend.conflicts == before  # type: ignore[attr-defined]
    for thread in threads:
        thread.join(30)
    for locks in (holder, *others):
        locks.close()

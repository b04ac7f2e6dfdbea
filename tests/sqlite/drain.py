"""A worker of the drain: takes items until a signal to stop, logs what it did, and may be killed at any moment.

    python drain.py URL POOL LOG LEASE

Each line of the log is one write(2) of `key fence`, made *before* the item is finished: a worker killed between the two
leaves a line whose fence the next one's is greater than.
"""

import os
import sys
import time

import fairlock


def main(url: str, pool: str, log: str, lease: float) -> None:
    seen = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with fairlock.connect(url) as locks:
        jobs = locks.pool(pool, lease=lease)
        while True:
            item = jobs.acquire(timeout=lease * 2)
            if item is None:
                return
            os.write(seen, f"{item.key} {item.fence}\n".encode())
            time.sleep(0.005)  # the work, in the middle of which one is killed most likely
            item.done(body=item.fence)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))

"""The clock of a client, which goes on while the machine is suspended, where there is such a clock; and jitter."""

import time
from functools import partial

boot_clock = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def jitter() -> float:
    """Return a number from 0 up to 1, to spread what would otherwise happen at the same time.

    It mixes the last digits of a fine clock: importing `random` costs a millisecond, and a system call for each number
    costs too much in a long queue.
    """
    return time.perf_counter_ns() * 2654435761 % 4294967296 / 4294967296

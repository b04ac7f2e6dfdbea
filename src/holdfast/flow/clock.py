"""The client's clock: seconds that go on counting while the machine sleeps, where there is such a clock; and chance."""

import time
from functools import partial

boot_clock = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def chance() -> float:
    """From 0 up to 1, to spread what would else happen at the same time: the last digits of a fine clock, well mixed.

    Importing `random` costs a millisecond, and asking the system each time is dear in a line of many.
    """
    return time.perf_counter_ns() * 2654435761 % 4294967296 / 4294967296

"""The client's clock: seconds that go on counting while the machine sleeps, where there is such a clock; and chance."""

import os
import time
from functools import partial

boot_clock = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def chance() -> float:
    """From 0 up to 1, to spread what would else happen at the same time. Importing `random` costs a millisecond."""
    return int.from_bytes(os.urandom(2)) / 65536

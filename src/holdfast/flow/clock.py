"""The client's clock: seconds that go on counting while the machine sleeps, where there is such a clock."""

import time
from functools import partial

boot_clock = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

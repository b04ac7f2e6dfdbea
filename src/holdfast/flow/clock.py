"""The client's clock: seconds that go on counting while the machine sleeps, where there is such a clock."""

import time

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_clock() -> float:
    return time.clock_gettime(_BOOT)

"""The clock of a client, which goes on while the machine is suspended, where there is such a clock; and jitter."""

import time
from functools import partial

from ..stores.jitter import jitter as jitter

boot_clock = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

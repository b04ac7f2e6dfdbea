"""Bounds of time on a machine that is busy with other work: stretched by as much as it is slower than alone.

On an idle machine a bound is what it says. Elsewhere it grows with what is measured at that moment, up to `below`: the
time that the mistake would take which the test is about. So a busy machine makes a test patient, and never blind.
"""

import time

SAMPLE = 0.02  # seconds of work by which it is measured


def slowness() -> float:
    """Return how many times longer than alone this thread takes for its work at the moment: 1.0 on an idle machine."""
    wall, work = time.monotonic(), time.thread_time()
    while time.thread_time() - work < SAMPLE:
        pass
    return max(1.0, (time.monotonic() - wall) / (time.thread_time() - work))


def within(seconds: float, *, below: float) -> float:
    """Return the seconds to allow where an idle machine would get this many."""
    return min(seconds * slowness(), below)

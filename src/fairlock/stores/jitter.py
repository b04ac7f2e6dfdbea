"""Spread what would otherwise happen at the same time."""

from time import perf_counter_ns


def jitter() -> float:
    """Return a number from 0 up to 1.

    It mixes the last digits of a fine clock: importing `random` costs a millisecond, and a system call for each number
    costs too much in a long queue.
    """
    return perf_counter_ns() * 2654435761 % 4294967296 / 4294967296

"""The kit: a suite for stores, faults, a manual clock, and fixtures for the tests of your own program.

    fixtures   `locks`, `aio_locks` and `manual_clock` for the tests of a program that uses fairlock
    clock      ManualClock: leases and timeouts run out when you advance it, without sleeping
    faults     Faults and the wrappers that lose, delay, repeat and refuse requests, by script or at random
    dict_store DictStore: the smallest Store, an example to begin a new one with
    suite      every behaviour that a store must have; two lines run it over yours
    harness    the clients, the time and the other threads or tasks of those tests

Nothing here is imported by the library itself. `suite` and `fixtures` need pytest: pip install 'fairlock[testing]'.
"""

from .clock import ManualClock
from .dict_store import DictServer, DictStore
from .faults import Faults, FaultyBackend, FaultyStore

__all__ = ["DictStore", "Faults", "FaultyBackend", "FaultyStore", "ManualClock", "DictServer"]

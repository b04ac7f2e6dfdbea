"""The kit: what a store must show, a store that misbehaves, a clock turned by hand, fixtures for your own tests.

    fixtures   `locks`, `aio_locks` and `hand_clock` for the tests of a program that uses holdfast
    clock      HandClock: leases and timeouts run out when you turn it, without sleeping
    faults     Faults and the wrappers that lose, delay, repeat and refuse, by script or by chance
    shelf      DictStore: the smallest Store there is, an example to begin a new one with
    suite      every behaviour that a store must show; two lines run it over yours
    world      the stage on which those behaviours are played, for threads and for tasks

Nothing here is imported by the library itself. `suite` and `fixtures` need pytest: pip install 'holdfast[testing]'.
"""

from .clock import HandClock as HandClock
from .faults import Faults as Faults
from .faults import FaultyBackend as FaultyBackend
from .faults import FaultyStore as FaultyStore
from .shelf import DictStore as DictStore
from .shelf import Shelf as Shelf

__all__ = ["DictStore", "Faults", "FaultyBackend", "FaultyStore", "HandClock", "Shelf"]

"""How many items of a pool are in each state. Apart, so that a program without pools imports nothing else of them."""

from typing import NamedTuple


class PoolCounts(NamedTuple):
    """How many items of a pool are in each state."""

    free: int
    resting: int
    taken: int
    expired: int
    done: int

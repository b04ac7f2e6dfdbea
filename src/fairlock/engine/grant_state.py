"""The states of a grant, and which of them may follow which."""

from enum import Enum


class GrantState(Enum):
    """The states of a grant, as its client sees it."""

    REQUESTING = "requesting"  # asked for, or about to be; the store has not replied that it waits
    QUEUED = "queued"  # the store has put it in the queue
    HELD = "held"
    RELEASING = "releasing"  # its Release may be under way: it is not held any more
    RELEASED = "released"
    LOST = "lost"


REQUESTING, QUEUED, HELD = GrantState.REQUESTING, GrantState.QUEUED, GrantState.HELD
RELEASING, RELEASED, LOST = GrantState.RELEASING, GrantState.RELEASED, GrantState.LOST

TRANSITIONS: dict[GrantState, frozenset[GrantState]] = {
    REQUESTING: frozenset((QUEUED, HELD, RELEASING, RELEASED, LOST)),
    QUEUED: frozenset((HELD, RELEASING, LOST)),
    HELD: frozenset((RELEASING, RELEASED, LOST)),
    RELEASING: frozenset((RELEASED, LOST)),
    RELEASED: frozenset(),
    LOST: frozenset(),
}
"""The legal transitions. Only a fork loses a grant that is not held; a detached one is released without a Release."""

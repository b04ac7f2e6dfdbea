"""A step returns the wake-ups that its store has to send, for locks and for pools."""

from typing import NamedTuple


class Wakeup(NamedTuple):
    """Asks one waiting client to send its request again. A wake-up with a fence names a grant that this step made.

    Nothing depends on it: a wake-up may be lost, late, duplicated or forged.
    """

    listener: str
    ticket: str
    place: int = 0
    fence: int = 0

"""What somebody wants: the numbers that make a kind of lock, and how the hold is to be kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..backends.contract import Soon
from ..doorman import ALL

if TYPE_CHECKING:
    from .seat import Hold

PASSES = 32
BLOCK = PASSES + 1  # fences: one for whoever comes in, one for each to whom it is passed on


WORKED_OUT = ("block", "key", "plain", "soon", "span")


class Wish:
    """Made once for many acquires, so what follows from it is worked out here."""

    __slots__ = (
        "at_least", "block", "capacity", "fair", "handle", "handoff", "key", "lease", "max_hold", "name", "note",
        "on_lost", "plain", "soon", "span", "weight",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        capacity: int,  # 0 = as stored
        weight: int,
        lease: float,
        fair: bool = True,
        handoff: bool = True,
        note: str = "",
        max_hold: float | None = None,
        at_least: float | None = None,
        on_lost: Callable[[Hold], object] | None = None,
        handle: str = "",
    ) -> None:
        self.name = name
        self.capacity = capacity
        self.weight = weight
        self.lease = lease
        self.span = int(lease * 1e6)
        self.fair = fair
        self.handoff = handoff
        self.note = note
        self.max_hold = max_hold
        self.at_least = at_least
        self.on_lost = on_lost
        self.handle = handle  # what its tickets end with, so that others can find it by a secret: see handles.py
        self.key: tuple[str, int, float] | None = None
        """Who may share a seat: same name, same weight, same lease. None: nobody; it needs one of its own."""
        self.block = 1
        self.plain = False  # the whole room, and nothing beside it that would have to be seen to
        self.soon: Soon | None = None  # how tasks say it, if there is a short way
        shared = capacity == ALL and fair and handoff and at_least is None and not handle
        if shared and (weight == ALL or max_hold is None):
            self.key = name, weight, lease
            if weight == ALL:
                self.block = BLOCK
                self.plain = max_hold is None and on_lost is None

    def but(self, **changes: Any) -> Wish:
        """The same, with something else in its place."""
        same = {word: getattr(self, word) for word in self.__slots__ if word not in WORKED_OUT}
        return Wish(**(same | changes))

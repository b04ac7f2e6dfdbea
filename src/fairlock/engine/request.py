"""Requests: the numbers that make a kind of lock, and the options of a hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..rules.locks import EXCLUSIVE
from ..stores.base import Soon

if TYPE_CHECKING:
    from .grant import LeaseBase

PASSES = 32
BLOCK = PASSES + 1  # fences: one for the first holder, one for each to which it is passed on


WORKED_OUT = ("block", "key", "plain", "soon", "lease_us")


class LockRequest:
    """A request for a lock. Made once for many acquires, so everything that follows from it is computed here."""

    __slots__ = (
        "at_least",
        "block",
        "capacity",
        "fair",
        "handle",
        "handoff",
        "key",
        "lease",
        "lease_us",
        "max_hold",
        "name",
        "note",
        "on_lost",
        "plain",
        "soon",
        "weight",
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
        on_lost: Callable[[LeaseBase], object] | None = None,
        handle: str = "",
    ) -> None:
        self.name = name
        self.capacity = capacity
        self.weight = weight
        self.lease = lease
        self.lease_us = int(lease * 1e6)
        self.fair = fair
        self.handoff = handoff
        self.note = note
        self.max_hold = max_hold
        self.at_least = at_least
        self.on_lost = on_lost
        self.handle = handle  # the end of its tickets, by which others find it with a secret: see handle_secrets.py
        self.key: tuple[str, int, float] | None = None
        """Requests with the same key share a grant: same name, weight and lease. None: it needs a grant of its own."""
        self.block = 1
        self.plain = False  # exclusive, and without any option that needs more work
        self.soon: Soon | None = None  # how tasks send it, if there is a shortcut
        shared = capacity == EXCLUSIVE and fair and handoff and at_least is None and not handle
        if shared and (weight == EXCLUSIVE or max_hold is None):
            self.key = name, weight, lease
            if weight == EXCLUSIVE:
                self.block = BLOCK
                self.plain = max_hold is None and on_lost is None

    def but(self, **changes: Any) -> LockRequest:
        """Return a copy with other values."""
        same = {word: getattr(self, word) for word in self.__slots__ if word not in WORKED_OUT}
        return LockRequest(**(same | changes))

"""The names that are held, and the index of busy names, for stores whose steps do not keep it: `Backend.list_names`.

The keeper calls this about once a second. A hold that is over sooner is never listed, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from .grant import Grant
from .session import Session

FRESH = 60.0  # seconds after which the names are collected again: a lease may have become longer


class HeldNames:
    """The names of the grants of one client, of locks and of pools, each with its longest lease.

    While the grants are the same, so are the mappings: the index then finds at once that there is nothing to write.
    """

    def __init__(self) -> None:
        self._grants: Sequence[Grant] = ()
        self._until = 0.0
        self.locks: dict[str, float] = {}
        self.pools: dict[str, float] = {}

    def collect(self, grants: list[Grant], clock: float) -> None:
        if clock >= self._until or grants != self._grants:
            self._grants, self._until = grants, clock + FRESH
            self.locks, self.pools = _names(grants)


async def list_all(session: Session) -> None:
    """List all that this client holds or waits for, so that its own snapshot shows it."""
    if session.backend.has_index:
        await session.backend.list_names(*_names(list(session.grants.values())))


def _names(grants: list[Grant]) -> tuple[dict[str, float], dict[str, float]]:
    items = [grant for grant in grants if grant.request.pool]
    locks = [grant for grant in grants if not grant.request.pool] if items else grants
    return _longest(locks), _longest(items)


def _longest(grants: list[Grant]) -> dict[str, float]:
    names = {grant.request.name: grant.lease for grant in grants}
    if len(names) < len(grants):
        for grant in grants:
            names[grant.request.name] = max(grant.lease, names[grant.request.name])
    return names

"""Keeps the index of busy names, for stores whose steps do not keep it: see `Backend.list_names`.

The keeper calls this about once a second. A hold that is over sooner is never listed, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from .grant import Grant
from .session import Session

BRIEF = 0.1  # seconds: a hold that may be over in a moment is not listed before the next round


async def list_held(session: Session, grants: Iterable[Grant]) -> None:
    """List the names that are held for longer than a moment."""
    if session.backend.has_index:
        old = session.clock() - BRIEF
        await _list(session, [grant for grant in grants if grant.since <= old])


async def list_all(session: Session) -> None:
    """List all that this client holds or waits for, so that its own snapshot shows it."""
    if session.backend.has_index:
        await _list(session, list(session.grants.values()))


async def _list(session: Session, grants: Iterable[Grant]) -> None:
    locks: dict[str, float] = {}
    pools: dict[str, float] = {}
    for grant in grants:
        names = pools if grant.request.pool else locks
        names[grant.name] = max(grant.lease, names.get(grant.name, 0.0))
    await session.backend.list_names(locks, pools)

"""One name of a snapshot as the page gets it, and the sums over all of them.

Times are seconds at the moment of the snapshot: held for, waited, left. The page counts from there with its own clock,
so that a browser whose clock is wrong still shows a lease as it is. Whether a row has changed is decided by
absolute times of the store's clock, which stay the same while only time passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..engine.snapshots import Holder, Resource, Snapshot

CHIPS = 12  # waiters that a row shows; the panel asks for all
SHOWN_HOLDERS = 12

Json = dict[str, Any]


def is_busy(resource: Resource) -> bool:
    return bool(resource.holders or resource.queue or resource.expired) or resource.kind == "damaged"


def make_row(
    resource: Resource, spark: Sequence[int], lease: Callable[[Holder], float], limit: int | None
) -> Json:
    """Return the row of one name. `limit`: how many waiters and holders are listed; None: all."""
    return {
        "name": resource.name,
        "kind": resource.kind,
        "capacity": resource.capacity if resource.kind in ("semaphore", "pool") else 1,
        "fence": resource.fence,
        "holders": [{**one.as_dict(), "lease": lease(one)} for one in resource.holders[:limit]],
        "held": len(resource.holders),
        "queue": [
            {"owner": one.owner, "note": one.note, "ticket": one.ticket, "weight": one.weight, "waited": one.waited}
            for one in resource.queue[:limit]
        ],
        "waiting": len(resource.queue),
        "pain": sum(one.waited for one in resource.queue),
        "expired": [{**one.as_dict(), "lease": lease(one)} for one in resource.expired[:limit]],
        "spark": spark,
    }


def identity(resource: Resource, now: float) -> object:
    """Return a value that is equal for two snapshots if the page shows them alike. The sparkline is no part of it:
    while nothing changes, the page continues it by itself."""
    return (
        resource.kind,
        resource.capacity,
        resource.fence,
        [(one.ticket, one.owner, round(now + one.expires_in, 2), one.asked) for one in resource.holders],
        [one.ticket for one in resource.queue],
        [one.ticket for one in resource.expired],
    )


def figures(snapshot: Snapshot) -> Json:
    """Return the sums for the strip."""
    waits = [one.waited for resource in snapshot.resources for one in resource.queue]
    return {
        "held": sum(any(one.owner for one in resource.holders) for resource in snapshot.resources),
        "waiting": len(waits),
        "longest": max(waits, default=0.0),
        "stale": sum(bool(resource.expired) for resource in snapshot.resources),
        "damaged": sum(resource.kind == "damaged" for resource in snapshot.resources),
        "names": len(snapshot.resources),
    }

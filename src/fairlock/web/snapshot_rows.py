"""One name of a snapshot as the page gets it, and the sums over all of them.

Times are seconds at the moment of the snapshot: held for, waited, left. The page counts from there with its own clock,
so that a browser whose clock is wrong still shows a lease as it is. Whether a row has changed is decided by
absolute times of the store's clock, which stay the same while only time passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..engine.find_deadlocks import Ring
from ..engine.snapshots import Holder, Resource, Snapshot, Waiter

BUCKETS = 60  # of a sparkline: ten minutes
CHIPS = 12  # waiters, and holders, that a row shows; the panel asks for all

Json = dict[str, Any]


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
        "stale": len(resource.expired),
        "others": others(resource, limit),
        "spark": spark,
    }


def others(resource: Resource, limit: int | None) -> Json | None:
    """Return the owners and the notes that the row leaves out, in which the filter of the page looks, too; None if it
    leaves out none."""
    if limit is None or max(len(resource.holders), len(resource.queue), len(resource.expired)) <= limit:
        return None
    left_out: list[Holder | Waiter] = [*resource.holders[limit:], *resource.queue[limit:], *resource.expired[limit:]]
    return {
        "owners": "\n".join(dict.fromkeys(one.owner for one in left_out)),
        "notes": "\n".join(dict.fromkeys(one.note for one in left_out)),
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


def only(snapshot: Snapshot, names: set[str]) -> Snapshot:
    """Return the snapshot with these names alone: of the others nothing has changed."""
    return snapshot._replace(resources=tuple(one for one in snapshot.resources if one.name in names))


def ring_as_json(ring: Ring) -> Json:
    links = [one._asdict() for one in ring.members]
    return {"possible": not ring.certain, "links": links, "youngest": ring.members.index(ring.youngest)}


def advance_sparks(
    sparks: dict[str, tuple[int, ...]], steps: int, snapshot: Snapshot
) -> dict[str, tuple[int, ...]]:
    """Keep the largest number of waiters in each ten seconds, for names that had any in the last ten minutes. Zeros at
    the beginning are left out."""
    moved = {}
    for name, spark in sparks.items():
        values = (*spark, *(0,) * min(steps, BUCKETS))[-BUCKETS:] if steps else spark
        if any(values):
            moved[name] = values
    for resource in snapshot.resources:
        if resource.queue:
            *earlier, last = moved.get(resource.name, (0,))
            if len(resource.queue) > last:
                moved[resource.name] = (*earlier, len(resource.queue))
    return moved

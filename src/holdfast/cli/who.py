"""Sentences about who is inside and who waits."""

from typing import TYPE_CHECKING

from holdfast.doorman.record import CLOSED

from . import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast import Event, Insider, Locks, PoolCounts, Resource, Waiter


def find(locks: "Locks", name: str) -> "Resource | None":
    """What the store knows about exactly this name."""
    return next((r for r in locks.snapshot(name).resources if r.name == name), None)


def owner(one: "Insider | Waiter") -> str:
    return one.owner or CLOSED


def label(one: "Insider | Waiter") -> str:
    return f"{one.owner} ({one.note})" if one.note else one.owner


def holders(resource: "Resource") -> str:
    """'held by web-3:4117 (ship order) for 41 s', with more of them 'held by a, b and 2 others', or 'kept closed for
    another 3 s' if nobody has it any more."""
    inside = [one for one in resource.inside if one.owner]
    if not inside:
        return f"{CLOSED} for another {say.for_(min(one.left for one in resource.inside))}"
    return f"held by {names(inside)}" + (f" for {say.for_(inside[0].held_for)}" if len(inside) == 1 else "")


def names(inside: "Sequence[Insider]") -> str:
    labels = [label(one) for one in inside[:3]] + ([f"{len(inside) - 3} others"] if len(inside) > 3 else [])
    return f"{', '.join(labels[:-1])} and {labels[-1]}" if len(labels) > 1 else labels[0]


def evicted(resource: "Resource") -> str:
    """'web-3:4117 (ship order), which has held it for 41 s', or with more of them 'a, b and 2 others'."""
    inside = [one for one in resource.inside if one.owner]
    if not inside:
        return f"nobody: it is {holders(resource)}"
    return names(inside) + (f", which has held it for {say.for_(inside[0].held_for)}" if len(inside) == 1 else "")


def waiting_for(resource: "Resource | None", name: str, ticket: str) -> str:
    """Who is in the way, and how many; `ticket` is ours, as snapshots shorten it."""
    if resource is None or not resource.inside:
        return f"waiting for {name!r}."
    mine = [number for number, one in enumerate(resource.line, 1) if one.ticket == ticket]
    place = f"number {mine[0]} of {len(resource.line)} in line" if mine else "waiting"
    return f"{place} for {name!r}, {holders(resource)}."


def counted(counts: "PoolCounts") -> str:
    """'2 free, 1 taken', or '' for a pool without items."""
    return ", ".join(f"{number} {state}" for state, number in counts._asdict().items() if number)


def happened(event: "Event") -> str:
    """An event as a sentence."""
    name = repr(event.name)
    told = {
        "waiting": f"waiting for {name}",
        "acquired": f"{name} acquired, fence {event.fence}",
        "released": f"{name} released",
        "renewed": f"the lease on {name} was renewed",
        "lost": f"the lease on {name} was lost",
        "evicted": f"evicted from {name}",
        "place_lost": f"the place in line for {name} was lost, and taken again at its end",
        "store_down": "the store does not answer",
        "store_up": "the store answers again",
    }
    detail = event.detail.rstrip(".")
    return f"{told.get(event.kind, event.kind)}{': ' + detail if detail else ''}."

"""Sentences about holders, waiters and events."""

from typing import TYPE_CHECKING

from fairlock.engine.run_sync import run
from fairlock.rules.locks.state import CLOSED

from . import output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlock import Event, Holder, Locks, PoolCounts, Resource, Waiter


def find(locks: "Locks", name: str) -> "Resource | None":
    """Return the resource with exactly this name; None if the store has none."""
    return next(iter(run(locks.session.look(name)).resources), None)


def about_pool(locks: "Locks", name: str) -> str:
    """Return how to take items of the pool of this name, as a sentence after a space; '' if none of them is taken."""
    pool = run(locks.session.find_pool_resource(name))
    if pool is None or not pool.holders:
        return ""
    return f" It is a pool: {take_item(name)} A worker that holds a lock of its own, too, can be asked for that one."


def take_item(name: str) -> str:
    """Return the sentence for an operator that would ask or evict the owner of an item. It fits into a line of top."""
    from shlex import quote

    return f"`fairlock pool rm {quote(name)} KEY --force` takes an item and deletes it."


def owner(one: "Holder | Waiter") -> str:
    return one.owner or CLOSED


def summarize(holders: "Sequence[Holder]") -> tuple[str, str, str, str]:
    """Return the cells of a row about them: the first one and the number of the others, how long it has held the lock,
    what is left of its lease, its note."""
    if not holders:
        return "", "", "", ""
    first = holders[0]
    more = f" +{len(holders) - 1}" if len(holders) > 1 else ""
    return owner(first) + more, output.short_duration(first.held_for), time_left(first), first.note


def time_left(one: "Holder") -> str:
    return output.short_duration(one.expires_in) if one.expires_in > 0 else "expired"


def slots(resource: "Resource") -> str:
    """Return '2/3' if two of three slots are held; '' for what has no slots."""
    return f"{len(resource.holders)}/{resource.capacity}" if resource.kind in ("semaphore", "pool") else ""


def label(one: "Holder | Waiter") -> str:
    return f"{one.owner} ({one.note})" if one.note else one.owner


def held_by(resource: "Resource") -> str:
    """Return 'held by web-3:4117 (ship order) for 41 s', for several 'held by a, b and 2 others', or 'kept closed for
    another 3 s' if it has no holder any more."""
    holders = [one for one in resource.holders if one.owner]
    if not holders:
        return f"{CLOSED} for another {output.duration(min(one.expires_in for one in resource.holders))}"
    return f"held by {names(holders)}" + (f" for {output.duration(holders[0].held_for)}" if len(holders) == 1 else "")


def names(holders: "Sequence[Holder]") -> str:
    labels = [label(one) for one in holders[:3]] + ([f"{len(holders) - 3} others"] if len(holders) > 3 else [])
    return f"{', '.join(labels[:-1])} and {labels[-1]}" if len(labels) > 1 else labels[0]


def describe_evicted(resource: "Resource") -> str:
    """Return 'web-3:4117 (ship order), which has held it for 41 s', or for several 'a, b and 2 others'."""
    holders = [one for one in resource.holders if one.owner]
    if not holders:
        return f"no holder: it is {held_by(resource)}"
    if len(holders) > 1:
        return names(holders)
    return f"{names(holders)}, which has held it for {output.duration(holders[0].held_for)}"


def describe_request(resource: "Resource") -> str:
    """Return what happens when its holders are asked to release."""
    return (
        f"Ask to release {resource.name!r}: {describe_evicted(resource)}. "
        "The holder is notified and decides; nothing is taken from it. Esc cancels."
    )


def describe_eviction(resource: "Resource", at_once: bool) -> str:
    """Return what happens when its holders are evicted."""
    then = f"{resource.queue[0].owner} is next" if resource.queue else "no client waits for it"
    if at_once:
        what = f"It is free now; {then}. The holder is NOT stopped: two may work at the same time."
    else:
        left = output.duration(max(one.expires_in for one in resource.holders))
        what = f"The holder is notified and its lease not renewed: free in {left} at most; {then}."
    return f"Evict from {resource.name!r}{' AT ONCE' * at_once}: {describe_evicted(resource)}. {what} Esc cancels."


def asked(one: "Holder") -> str:
    """Return 'asked to release by ops: the disk is full', or ''."""
    return f"asked to release by {one.asked.by or 'somebody'}: {one.asked.reason}" if one.asked is not None else ""


def waiting_for(resource: "Resource | None", name: str, ticket: str) -> str:
    """Describe the wait: the position in the queue and the holder. `ticket` is ours, shortened as in snapshots."""
    if resource is None or not resource.holders:
        return f"waiting for {name!r}."
    mine = [number for number, one in enumerate(resource.queue, 1) if one.ticket == ticket]
    position = f", position {mine[0]} of {len(resource.queue)}" if mine else ""
    return f"waiting for {name!r}{position}: {held_by(resource)}."


def count_items(counts: "PoolCounts") -> str:
    """Return '2 free, 1 taken', or '' for a pool without items."""
    return ", ".join(f"{number} {state}" for state, number in counts._asdict().items() if number)


def describe_event(event: "Event") -> str:
    """Return the event as a sentence."""
    name = repr(event.name)
    texts = {
        "waiting": f"waiting for {name}",
        "acquired": f"{name} acquired, fence {event.fence}",
        "given_up": f"{name} was not acquired ({event.outcome})",
        "released": f"{name} released",
        "detached": f"the lease on {name} goes on without this process",
        "attached": f"the lease on {name} goes on with this process",
        "renewed": f"the lease on {name} was renewed",
        "lost": f"the lease on {name} was lost",
        "evicted": f"evicted from {name}",
        "asked": name,
        "place_lost": f"the position in the queue for {name} was lost; waiting again at its end",
        "store_down": "the store does not reply",
        "store_up": "the store replies again",
    }
    detail = event.detail.rstrip(".")
    return f"{texts.get(event.kind, event.kind)}{': ' + detail if detail else ''}."

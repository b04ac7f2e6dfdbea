"""`holdfast ls` and `holdfast show`: who holds what, who waits. Looking changes nothing.

With --json both print the snapshot as the library gives it, so its keys are those of `holdfast.Snapshot`:
store, now, resources: [{name, kind, capacity, fence,
    inside: [{owner, note, ticket, fence, weight, held_for, left}],
    line: [{owner, note, ticket, weight, waited, left}],
    expired: [as inside]}]
`show` adds pool: the counts of the pool of that name, as `holdfast.PoolCounts`, or null.
"""

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import lock, reach, say, who
from .words import Said

if TYPE_CHECKING:
    from holdfast import Locks, Resource, Snapshot


def look(said: Said) -> int:
    with reach.client(said) as locks:
        if said.command.name == "show":
            show(said, locks, lock.name(said.words[0]))
        elif said["watch"]:
            watch(said, locks)
        else:
            ls(said, locks)
    return 0


def watch(said: Said, locks: "Locks") -> None:
    clear = "\x1b[H\x1b[2J" if sys.stdout.isatty() and not said["json"] else ""
    try:
        while True:
            say.out(clear)
            ls(said, locks)
            time.sleep(1)
    except KeyboardInterrupt:
        pass


def ls(said: Said, locks: "Locks") -> None:
    pattern = said.words[0] if said.words else "*"
    seen = locks.snapshot(pattern)
    seen = seen._replace(resources=tuple(r for r in seen.resources if wanted(said, r)))
    if said["json"]:
        say.json(plain(seen))
        return
    if seen.resources:
        head = ("NAME", "KIND", "HELD BY", "FOR", "LEASE", "LINE", "NOTE")
        say.out(say.table(head, [row(r, bool(said["stale"])) for r in seen.resources]))
    if not said["quiet"]:
        many = len(seen.resources)
        say.out(f"{many or 'no'} name{'s' * (many != 1)} in {say.plain(seen.store)}\n")


def wanted(said: Said, resource: "Resource") -> bool:
    return (
        (not said["held"] or bool(resource.inside))
        and (not said["waited"] or bool(resource.line))
        and (not said["stale"] or bool(resource.expired))
    )


def row(resource: "Resource", stale: bool) -> tuple[str, ...]:
    inside, line = resource.inside, str(len(resource.line) or "")
    kind = f"{resource.kind} {len(inside)}/{resource.capacity}" if resource.kind == "semaphore" else resource.kind
    shown = resource.expired if stale else inside
    if not shown:
        return resource.name, kind, "", "", "", line, ""
    first = shown[0]
    more = f" +{len(shown) - 1}" if len(shown) > 1 else ""
    return resource.name, kind, who.owner(first) + more, say.span(first.held_for), left(first.left), line, first.note


def left(seconds: float) -> str:
    return say.span(seconds) if seconds > 0 else "run out"


def show(said: Said, locks: "Locks", name: str) -> None:
    seen = locks.snapshot(name)
    seen = seen._replace(resources=tuple(r for r in seen.resources if r.name == name))
    items = locks.pool(name).counts()
    there = who.counted(items)
    if said["json"]:
        say.json({**plain(seen), "pool": items._asdict() if there else None})
        return
    if there:
        say.out(f"{name!r} is a pool in {say.plain(seen.store)}: {there}. `holdfast pool ls` lists its items.\n")
    if not seen.resources:
        if not there:
            say.out(f"there is no lock and no pool {name!r} in {say.plain(seen.store)}\n")
        return
    (it,) = seen.resources
    if it.kind == "damaged":
        from shlex import quote

        cure = f"nobody can acquire it until `holdfast doctor --repair {quote(it.name)}` resets it"
        say.out(f"{say.plain(it.name)}: damaged, in {say.plain(seen.store)}; {cure}\n")
        return
    slots = f", {it.capacity} slots" if it.kind == "semaphore" else ""
    say.out(f"{say.plain(it.name)}: {it.kind}{slots}, last fence {it.fence}, in {say.plain(seen.store)}\n")
    if not it.inside:
        say.out("nobody is inside\n")
    for title, some in (("inside", it.inside), ("the lease has run out, and nobody else has come", it.expired)):
        rows = [
            (who.owner(i), i.ticket, str(i.fence), say.span(i.held_for), left(i.left), weight(i.weight, it), i.note)
            for i in some
        ]
        if rows:
            say.out(f"\n{title}\n" + indent(("OWNER", "TICKET", "FENCE", "FOR", "LEASE", "AS", "NOTE"), rows))
    if it.line:
        queue = [
            (str(number), w.owner, w.ticket, say.span(w.waited), weight(w.weight, it), w.note)
            for number, w in enumerate(it.line, 1)
        ]
        say.out("\nin line\n" + indent(("", "OWNER", "TICKET", "FOR", "AS", "NOTE"), queue))


def weight(number: int, resource: "Resource") -> str:
    if resource.kind == "semaphore":
        return f"{number} slot{'s' * (number != 1)}"
    return "reader" if number == 1 else "alone"


def indent(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return "".join(f"  {line}\n" for line in say.table(head, rows).splitlines())


def plain(snapshot: "Snapshot") -> dict[str, Any]:
    """Named tuples as JSON objects."""
    resources = [
        {**r._asdict(), **{part: [one._asdict() for one in getattr(r, part)] for part in ("inside", "line", "expired")}}
        for r in snapshot.resources
    ]
    return {**snapshot._asdict(), "resources": resources}

"""`fairlock ls` and `fairlock show`: names with their holders and waiters. Both only read.

`ls` lists what is busy: held, waited for, damaged, or left with an expired lease. With --all it also lists idle names,
which the store reads in pages.

With --json both print the snapshot of the library, so the keys are those of `fairlock.Snapshot`:
store, now, resources: [{name, kind, capacity, fence,
    holders: [{owner, note, ticket, fence, weight, held_for, expires_in, thread, item, asked: {by, reason} or null}],
    queue: [{owner, note, ticket, weight, waited, expires_in, thread}],
    expired: [as holders], namespace, items}]
`show` adds pool: the counts of the pool of that name, as `fairlock.PoolCounts`, or null; and audit: what operators did
to it, as `fairlock.AuditLine`, the newest first.
"""

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlock.engine import validate
from fairlock.engine.run_sync import run

from . import describe_holders, make_client, output
from .parse_arguments import Arguments

if TYPE_CHECKING:
    from fairlock import AuditLine, Locks, Resource

AUDIT = 10  # of the audit lines are shown


def ls(args: Arguments) -> int:
    with make_client.client(args) as locks:
        if args["watch"]:
            watch(args, locks)
        else:
            list_names(args, locks)
    return 0


def watch(args: Arguments, locks: "Locks") -> None:
    clear = "\x1b[H\x1b[2J" if sys.stdout.isatty() and not args["json"] else ""
    try:
        while True:
            output.out(clear)
            list_names(args, locks)
            time.sleep(1)
    except KeyboardInterrupt:
        pass


def list_names(args: Arguments, locks: "Locks") -> None:
    pattern = args.operands[0] if args.operands else "*"
    every = make_client.every_namespace(args)
    seen = locks.snapshot(pattern, idle=bool(args["all"]), namespaces=every)
    seen = seen._replace(resources=tuple(r for r in seen.resources if wanted(args, r)))
    if args["json"]:
        output.json(seen.as_dict())
        return
    if seen.resources:
        head: tuple[str, ...] = ("NAME", "KIND", "HELD BY", "FOR", "LEASE", "WAITING", "NOTE")
        rows = [row(r, bool(args["stale"])) for r in seen.resources]
        if every:
            head = ("NAMESPACE", *head)
            rows = [(r.namespace, *cells) for r, cells in zip(seen.resources, rows, strict=True)]
        output.out(output.table(head, rows))
    if not args["quiet"]:
        many = len(seen.resources)
        busy = "" if any(args[key] for key in ("all", "held", "waited", "stale")) else "busy "
        output.out(f"{many or 'no'} {busy}name{'s' * (many != 1)} in {output.plain(seen.store)}\n")


def wanted(args: Arguments, resource: "Resource") -> bool:
    return (
        (bool(args["all"]) or resource.busy)
        and (not args["held"] or bool(resource.holders))
        and (not args["waited"] or bool(resource.queue))
        and (not args["stale"] or bool(resource.expired))
    )


def row(resource: "Resource", stale: bool) -> tuple[str, ...]:
    shown = resource.expired if stale else resource.holders or resource.expired
    owner, held_for, lease, note = describe_holders.summarize(shown)
    kind = f"{resource.kind} {describe_holders.slots(resource)}".rstrip()
    return resource.name, kind, owner, held_for, lease, str(len(resource.queue) or ""), note


def show(args: Arguments) -> int:
    name = validate.name(args.operands[0])
    with make_client.client(args) as locks:
        seen = run(locks.session.look(name))
        pool = run(locks.session.find_pool_resource(name))
        lines = locks.audit(name)
    if args["json"]:
        found = (*seen.resources, pool) if pool is not None else seen.resources
        counts = pool.items._asdict() if pool is not None and pool.items is not None else None
        audit = [line._asdict() for line in lines]
        output.json({**seen._replace(resources=found).as_dict(), "pool": counts, "audit": audit})
        return 0
    if not seen.resources and pool is None:
        output.out(f"there is no lock and no pool {name!r} in {output.plain(seen.store)}\n")
    for one in (pool, *seen.resources):
        if one is not None:
            output.out(describe(one, seen.store))
    output.out(describe_audit(lines, seen.now))
    return 0


def describe(it: "Resource", store: str) -> str:
    """Return one name in detail: its holders, its expired leases and its queue."""
    if it.kind == "damaged":
        from shlex import quote

        cure = f"it cannot be acquired until `fairlock doctor --repair {quote(it.name)}` resets it"
        return f"{output.plain(it.name)}: damaged, in {output.plain(store)}; {cure}\n"
    if it.items is not None:
        counts = describe_holders.count_items(it.items) or "no items"
        text = f"{output.plain(it.name)}: pool, {counts}, in {output.plain(store)}\n"
    else:
        slots = f", {it.capacity} slots" if it.kind == "semaphore" else ""
        text = f"{output.plain(it.name)}: {it.kind}{slots}, last fence {it.fence}, in {output.plain(store)}\n"
        if not it.holders:
            text += "no holder\n"
    for title, some in (("holders", it.holders), ("expired leases, not yet taken by another", it.expired)):
        rows = [
            (
                describe_holders.owner(one), one.ticket, str(one.fence), output.short_duration(one.held_for),
                describe_holders.time_left(one), one.item or weight(one.weight, it), one.note,
            )
            for one in some
        ]
        if rows:
            mode = "ITEM" if it.kind == "pool" else "MODE"
            text += f"\n{title}\n" + indent(("OWNER", "TICKET", "FENCE", "FOR", "LEASE", mode, "NOTE"), rows)
        for one in some:
            if one.asked is not None:
                text += f"  {one.ticket} is {output.plain(describe_holders.asked(one))}\n"
    if it.queue:
        queue = [
            (str(number), w.owner, w.ticket, output.short_duration(w.waited), weight(w.weight, it), w.note)
            for number, w in enumerate(it.queue, 1)
        ]
        text += "\nin the queue\n" + indent(("", "OWNER", "TICKET", "FOR", "MODE", "NOTE"), queue)
    return text


def describe_audit(lines: "Sequence[AuditLine]", now: float) -> str:
    """Return what operators did to a name: the newest ones."""
    if not lines:
        return ""
    rows = [
        (f"{output.short_duration(max(now - one.at, 0.0))} ago", one.kind, one.by, one.owner, one.ticket, one.reason)
        for one in lines[:AUDIT]
    ]
    text = "\naudit\n" + indent(("WHEN", "WHAT", "BY", "OWNER", "TICKET", "REASON"), rows)
    return text + (f"  and {len(lines) - AUDIT} older ones: --json prints them\n" if len(lines) > AUDIT else "")


def weight(number: int, resource: "Resource") -> str:
    if resource.kind == "pool":
        return ""
    if resource.kind == "semaphore":
        return output.plural(number, "slot")
    return "shared" if number == 1 else "exclusive"


def indent(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return "".join(f"  {line}\n" for line in output.table(head, rows).splitlines())

"""`fairlock prune`: deletes names that were not used for a day, and items of a pool that are done.

Without -y it only counts. With --json: store, older_than, found, deleted, audit_found, audit_deleted (null: the store
does it by itself); with --done store, pool, older_than, found, deleted.

An idle row has no holder, no waiter, no number of slots that an operator has set, and no tombstone that still counts.
The next fence of a deleted name comes from the clock of the store, so it is greater. A day and not a minute: a clock
that is set back by less than that gives no fence twice. Audit lines outlive their name: they are deleted together, 30
days after the newest one, which is what Redis and SQLite do by themselves.
"""

from fairlock.engine.run_sync import run
from fairlock.rules.locks.audit_lines import KEPT_FOR
from fairlock.rules.pools.state import FINISHED

from . import make_client, output
from .parse_arguments import Arguments

DAY = 86400.0


def prune(args: Arguments) -> int:
    age = DAY if args["older_than"] is None else args["older_than"]
    return prune_items(args, args["done"], age) if args["done"] is not None else prune_names(args, age)


def prune_names(args: Arguments, age: float) -> int:
    with make_client.client(args) as locks:
        store = locks.store
        chosen = args.operands[0] if args.operands else "*", age, bool(args["yes"])
        audit = run(locks.session.prune_audit(*chosen))
        if audit and audit[0] and not (args["json"] or args["quiet"]):
            # Before the names: a store may refuse to delete those.
            which = f"of audit lines older than {output.short_duration(max(age, KEPT_FOR))}"
            output.out(describe(args, audit, "list", which, store) + "\n")
        counts = run(locks.session.prune(*chosen))
    if counts is None and not args["json"]:
        output.out(f"{store} deletes idle names by itself.\n")
        return 0
    (found, deleted), (lines, deleted_lines) = counts or (None, None), audit or (None, None)
    value = {"store": store, "older_than": age, "found": found, "deleted": deleted,
             "audit_found": lines, "audit_deleted": deleted_lines}  # fmt: skip
    text = describe(args, counts, "name", f"not used for {output.short_duration(age)}", store) if counts else ""
    output.result(args, value, text)
    return 0


def prune_items(args: Arguments, pool: str, age: float) -> int:
    """Count or delete items. An item is as old as its last take, which its fence shows. One that was never taken is
    deleted only with 0."""
    with make_client.client(args) as locks:
        items = locks.pool(pool)
        _, now = run(locks.session.read(pool))
        old = [i.key for i in items.items(FINISHED) if (i.fence < now - age * 1e6 if i.fence else age == 0)]
        deleted = sum(items.remove(key) for key in old) if args["yes"] else 0
        store = locks.store
    value = {"store": store, "pool": pool, "older_than": age, "found": len(old), "deleted": deleted}
    which = f"of the pool {pool!r}, done and taken more than {output.short_duration(age)} ago"
    output.result(args, value, describe(args, (len(old), deleted), "item", which, store))
    return 0


def describe(args: Arguments, counts: tuple[int, int], what: str, which: str, store: str) -> str:
    """Return how many were found or, with -y, deleted."""
    found, deleted = counts
    if args["yes"]:
        return f"{output.plural(deleted, what)} deleted, {which}, in {store}"
    hint = "; add -y to delete them" if found else ""
    return f"{output.plural(found, what)} {which}, in {store}{hint}"

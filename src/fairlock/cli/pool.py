"""`fairlock pool add`, `ls`, `done` and `rm`: the items of a pool. (`pool run` is in pool_run.py.)

With --json: add prints pool, added, there; ls prints store, pool, counts, items as the library returns them, without a
name store, pools: [{name, counts}]; done prints pool, done; rm prints pool, removed.
"""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fairlock.engine.run_sync import run
from fairlock.errors import ConfigError, LockTimeout

from . import describe_holders, exit_codes, make_client, output
from .parse_arguments import Arguments

if TYPE_CHECKING:
    from fairlock import Locks, Pool, PoolItem


def read_rows(args: Arguments) -> list[tuple[str, Any]]:
    """Return the items to add: the keys of the command line, else the lines of stdin."""
    keys = args.operands[1:]
    if keys and keys != ["-"]:
        return [(key, args["body"]) for key in keys]
    if args["body"] is not None:
        raise exit_codes.Usage("--body belongs to keys on the command line; a line of stdin has its own body.")
    if sys.stdin.isatty() and not args["quiet"]:
        output.err("Type one item per line: a key, or {\"key\": …, \"body\": …}. Ctrl-D ends.")
    try:
        return list(parse_rows(sys.stdin))
    except UnicodeDecodeError as bad:
        raise exit_codes.Usage(f"stdin is not text in {bad.encoding}. Nothing was added.") from None


def parse_rows(lines: Iterable[str]) -> Iterable[tuple[str, Any]]:
    """Yield the item of each line: a key, or {"key": …, "body": …}."""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        if text[0] not in '{"':
            yield text, None
            continue
        from json import loads

        try:
            row = loads(text)
        except ValueError as bad:
            raise exit_codes.Usage(f"Line {number} is not valid JSON ({bad}). Nothing was added.") from None
        if isinstance(row, str):
            yield row, None
        elif isinstance(row.get("key"), str) and not set(row) - {"key", "body"}:
            yield row["key"], row.get("body")
        else:
            form = '{"key": KEY, "body": …}'
            raise exit_codes.Usage(f"Line {number} needs the form {form}. Nothing was added.")


def add(args: Arguments) -> int:
    rows = read_rows(args)  # before the store is opened: stdin may be slow
    with make_client.client(args) as locks:
        one = locks.pool(args.operands[0])
        new = one.add_many(rows)
    known = f", {len(rows) - new} already in it" if new < len(rows) else ""
    value = {"pool": one.name, "added": new, "there": len(rows) - new}
    output.result(args, value, f"{new} added to {one.name!r}{known}")
    return 0


def ls(args: Arguments) -> int:
    with make_client.client(args) as locks:
        return ls_items(args, locks) if args.operands else ls_pools(args, locks)


def ls_items(args: Arguments, locks: "Locks") -> int:
    one, store = locks.pool(args.operands[0]), locks.store
    counts, items = one.counts(), one.items(args["state"])
    if items and not args["json"]:
        output.out(output.table(("KEY", "STATE", "OWNER", "DUE", "FENCE", "BODY"), [row(item) for item in items]))
    rows = [item._asdict() for item in items]
    value = {"store": store, "pool": one.name, "counts": counts._asdict(), "items": rows}
    found = describe_holders.count_items(counts) or "no items"
    output.result(args, value, f"{found} in the pool {one.name!r} of {output.plain(store)}")
    return 0


def ls_pools(args: Arguments, locks: "Locks") -> int:
    """List the pools that have items."""
    if args["state"]:
        raise exit_codes.Usage("--state is for the items of a pool: fairlock pool ls POOL --state STATE.")
    every = make_client.every_namespace(args)
    found = sorted(run(locks.session.find_pools(every)), key=lambda one: (one.namespace, one.name))
    pools = [(one, one.items) for one in found if one.items is not None]
    if pools and not args["json"]:
        head = ("POOL", "FREE", "RESTING", "TAKEN", "EXPIRED", "DONE", "WAITING")
        cells = [(one.namespace, one.name, *map(str, counts), str(len(one.queue))) for one, counts in pools]
        output.out(output.table(("NAMESPACE", *head) if every else head, [row if every else row[1:] for row in cells]))
    rows = [
        {"namespace": one.namespace, "name": one.name, "counts": counts._asdict(), "waiting": len(one.queue)}
        for one, counts in pools
    ]
    text = f"{len(pools) or 'no'} pool{'s' * (len(pools) != 1)} in {output.plain(locks.store)}"
    output.result(args, {"store": locks.store, "pools": rows}, text)
    return 0


def row(item: "PoolItem") -> tuple[str, ...]:
    from json import dumps

    due = "in " + output.short_duration(item.due_in) if item.due_in > 0 else "now" if item.state != "done" else ""
    body = "" if item.body is None else dumps(item.body, ensure_ascii=False)
    return item.key, item.state, item.owner, due, str(item.fence or ""), body if len(body) <= 60 else body[:60] + "…"


def done(args: Arguments) -> int:
    name, *keys = args.operands
    with make_client.client(args) as locks:
        one = locks.pool(name)
        items = {item.key: item for item in one.items()}
        finished = [key for key in keys if finish(args, one, key, items.get(key))]
    output.result(args, {"pool": one.name, "done": finished})
    return 0


def finish(args: Arguments, one: "Pool", key: str, item: "PoolItem | None") -> bool:
    """Mark an item as done. Return False, with a message, if it is done already."""
    if item is None:
        raise make_absent(one, key)
    if item.state == "done":
        output.err(f"{key!r} of {one.name!r} is already done.")
        return False
    if item.state == "resting":
        rest = f"{key!r} of {one.name!r} rests for another {output.short_duration(item.due_in)}"
        raise exit_codes.Exit(exit_codes.NOT_ACQUIRED, f"{rest} and cannot be taken before. Try again then.")
    try:
        with one.hold(key=key, timeout=0) as taken:
            taken.done(**({} if args["body"] is None else {"body": args["body"]}))
    except LockTimeout as late:
        raise exit_codes.Exit(exit_codes.NOT_ACQUIRED, str(late), expected=True) from None
    return True


def make_absent(one: "Pool", key: str) -> exit_codes.Exit:
    sentence = f"There is no item {key!r} in the pool {one.name!r}. `fairlock pool ls` lists its items."
    return exit_codes.Exit(exit_codes.CONFIG, sentence)


def rm(args: Arguments) -> int:
    name, *keys = args.operands
    with make_client.client(args) as locks:
        one = locks.pool(name)
        for key in keys:
            try:
                found = one.remove(key, force=bool(args["force"]))
            except ConfigError as taken:
                sentence = str(taken).replace("use force=True", "use --force: its owner then loses it")
                raise exit_codes.Exit(exit_codes.NOT_ACQUIRED, sentence) from None
            if not found:
                raise make_absent(one, key)
    output.result(args, {"pool": one.name, "removed": keys})
    return 0

"""`fairlock pool add`, `ls`, `done` and `rm`: the items of a pool. (`pool run` is in pool_run.py.)

With --json: add prints pool, added, there; ls prints store, pool, counts, items as the library returns them, without a
name store, pools: [{name, counts}]; done prints pool, done; rm prints pool, removed.
"""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fairlock.errors import ConfigError, LockTimeout

from . import describe_holders, exit_codes, make_client, output
from .parse_arguments import Arguments

if TYPE_CHECKING:
    from fairlock import Locks, Pool, PoolItem


def run_on_pool(args: Arguments) -> int:
    if args.command.name == "pool run":
        from .pool_run import pool_run

        return pool_run(args)
    rows = read_rows(args) if args.command.name == "pool add" else None  # before the store is opened: stdin may be slow
    with make_client.client(args) as locks:
        if not args.operands:
            return ls_pools(args, locks)
        one = locks.pool(args.operands[0])
        if rows is not None:
            return add(args, one, rows)
        if args.command.name == "pool ls":
            return ls(args, one, locks.store)
        return done(args, one) if args.command.name == "pool done" else rm(args, one)


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


def add(args: Arguments, one: "Pool", rows: list[tuple[str, Any]]) -> int:
    new = one.add_many(rows)
    if args["json"]:
        output.json({"pool": one.name, "added": new, "there": len(rows) - new})
    elif not args["quiet"]:
        known = f", {len(rows) - new} already in it" if new < len(rows) else ""
        output.out(f"{new} added to {one.name!r}{known}\n")
    return 0


def ls(args: Arguments, one: "Pool", store: str) -> int:
    counts, items = one.counts(), one.items(args["state"])
    if args["json"]:
        rows = [item._asdict() for item in items]
        output.json({"store": store, "pool": one.name, "counts": counts._asdict(), "items": rows})
        return 0
    if items:
        output.out(output.table(("KEY", "STATE", "OWNER", "DUE", "FENCE", "BODY"), [row(item) for item in items]))
    if not args["quiet"]:
        found = describe_holders.count_items(counts) or "no items"
        output.out(f"{found} in the pool {one.name!r} of {output.plain(store)}\n")
    return 0


def ls_pools(args: Arguments, locks: "Locks") -> int:
    """List the pools that have items."""
    if args["state"]:
        raise exit_codes.Usage("--state is for the items of a pool: fairlock pool ls POOL --state STATE.")
    every = make_client.every_namespace(args)
    pools = [(one, one.items) for one in make_client.find_pools(locks, every) if one.items is not None]
    if args["json"]:
        rows = [
            {"namespace": one.namespace, "name": one.name, "counts": counts._asdict(), "waiting": len(one.queue)}
            for one, counts in pools
        ]
        output.json({"store": locks.store, "pools": rows})
        return 0
    if pools:
        head = ("POOL", "FREE", "RESTING", "TAKEN", "EXPIRED", "DONE", "WAITING")
        cells = [(one.namespace, one.name, *map(str, counts), str(len(one.queue))) for one, counts in pools]
        output.out(output.table(("NAMESPACE", *head) if every else head, [row if every else row[1:] for row in cells]))
    if not args["quiet"]:
        output.out(f"{len(pools) or 'no'} pool{'s' * (len(pools) != 1)} in {output.plain(locks.store)}\n")
    return 0


def row(item: "PoolItem") -> tuple[str, ...]:
    from json import dumps

    due = "in " + output.short_duration(item.due_in) if item.due_in > 0 else "now" if item.state != "done" else ""
    body = "" if item.body is None else dumps(item.body, ensure_ascii=False)
    return item.key, item.state, item.owner, due, str(item.fence or ""), body if len(body) <= 60 else body[:60] + "…"


def done(args: Arguments, one: "Pool") -> int:
    finished = []
    items = {item.key: item for item in one.items()}
    for key in args.operands[1:]:
        if key not in items:
            raise make_absent(one, key)
        if items[key].state == "done":
            output.err(f"{key!r} of {one.name!r} is already done.")
            continue
        if items[key].state == "resting":
            rest = f"{key!r} of {one.name!r} rests for another {output.short_duration(items[key].due_in)}"
            raise exit_codes.Exit(exit_codes.NOT_ACQUIRED, f"{rest} and cannot be taken before. Try again then.")
        try:
            with one.hold(key=key, timeout=0) as item:
                item.done(**({} if args["body"] is None else {"body": args["body"]}))
        except LockTimeout as late:
            raise exit_codes.Exit(exit_codes.NOT_ACQUIRED, str(late), expected=True) from None
        finished.append(key)
    if args["json"]:
        output.json({"pool": one.name, "done": finished})
    return 0


def make_absent(one: "Pool", key: str) -> exit_codes.Exit:
    sentence = f"There is no item {key!r} in the pool {one.name!r}. `fairlock pool ls` lists its items."
    return exit_codes.Exit(exit_codes.CONFIG, sentence)


def rm(args: Arguments, one: "Pool") -> int:
    removed = []
    for key in args.operands[1:]:
        try:
            found = one.remove(key, force=bool(args["force"]))
        except ConfigError as taken:
            sentence = str(taken).replace("use force=True", "use --force: its owner then loses it")
            raise exit_codes.Exit(exit_codes.NOT_ACQUIRED, sentence) from None
        if not found:
            raise make_absent(one, key)
        removed.append(key)
    if args["json"]:
        output.json({"pool": one.name, "removed": removed})
    return 0

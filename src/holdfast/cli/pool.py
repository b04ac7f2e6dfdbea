"""`holdfast pool add`, `ls`, `done` and `rm`: what is in a pool. (`pool run` is in pool_run.py.)

With --json: add prints pool, added, there; ls prints store, pool, counts, items as the library gives them; done prints
pool, done; rm prints pool, removed.
"""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holdfast.errors import ConfigError, LockTimeout

from . import exits, reach, say, who
from .words import Said

if TYPE_CHECKING:
    from holdfast import Pool, PoolItem


def pool(said: Said) -> int:
    if said.command.name == "pool run":
        from .pool_run import pool_run

        return pool_run(said)
    rows = rows_of(said) if said.command.name == "pool add" else None  # before the store is opened: it may take long
    with reach.client(said) as locks:
        one = locks.pool(said.words[0])
        if rows is not None:
            return add(said, one, rows)
        return {"pool ls": ls, "pool done": done, "pool rm": rm}[said.command.name](said, one)


def rows_of(said: Said) -> list[tuple[str, Any]]:
    """What is to be added: the keys that were typed, else the lines of stdin."""
    keys = said.words[1:]
    if keys and keys != ["-"]:
        return [(key, said["body"]) for key in keys]
    if said["body"] is not None:
        raise exits.Usage("--body goes with keys on the command line; a line of stdin brings its own.")
    if sys.stdin.isatty() and not said["quiet"]:
        say.err("one item a line: a name, or {\"key\": …, \"body\": …}; Ctrl-D ends.")
    try:
        return list(read(sys.stdin))
    except UnicodeDecodeError as bad:
        raise exits.Usage(f"stdin is not text in {bad.encoding}. Nothing was added.") from None


def read(lines: Iterable[str]) -> Iterable[tuple[str, Any]]:
    """One item a line: a name, or {"key": …, "body": …}."""
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
            raise exits.Usage(f"Line {number} begins like JSON and is none ({bad}). Nothing was added.") from None
        if isinstance(row, str):
            yield row, None
        elif isinstance(row.get("key"), str) and not set(row) - {"key", "body"}:
            yield row["key"], row.get("body")
        else:
            raise exits.Usage(f'Line {number} wants {{"key": NAME, "body": …}} and nothing else. Nothing was added.')


def add(said: Said, one: "Pool", rows: list[tuple[str, Any]]) -> int:
    new = one.add_many(rows)
    if said["json"]:
        say.json({"pool": one.name, "added": new, "there": len(rows) - new})
    elif not said["quiet"]:
        there = f", {len(rows) - new} there already" if new < len(rows) else ""
        say.out(f"{new} added to {one.name!r}{there}\n")
    return 0


def ls(said: Said, one: "Pool") -> int:
    counts, items = one.counts(), one.items(said["state"])
    if said["json"]:
        rows = [item._asdict() for item in items]
        say.json({"store": reach.where(one), "pool": one.name, "counts": counts._asdict(), "items": rows})
        return 0
    if items:
        say.out(say.table(("KEY", "STATE", "BY", "DUE", "FENCE", "BODY"), [row(item) for item in items]))
    if not said["quiet"]:
        say.out(f"{who.counted(counts) or 'nothing'} in the pool {one.name!r} of {say.plain(reach.where(one))}\n")
    return 0


def row(item: "PoolItem") -> tuple[str, ...]:
    from json import dumps

    due = "in " + say.span(item.due_in) if item.due_in > 0 else "now" if item.state != "done" else ""
    body = "" if item.body is None else dumps(item.body, ensure_ascii=False)
    return item.key, item.state, item.owner, due, str(item.fence or ""), body if len(body) <= 60 else body[:60] + "…"


def done(said: Said, one: "Pool") -> int:
    met = []
    there = {item.key: item for item in one.items()}
    for key in said.words[1:]:
        if key not in there:
            raise absent(one, key)
        if there[key].state == "done":
            say.err(f"{key!r} of {one.name!r} was done already.")
            continue
        if there[key].state == "resting":
            rest = f"{key!r} of {one.name!r} rests for another {say.span(there[key].due_in)}"
            raise exits.Exit(exits.NOT_ACQUIRED, f"{rest}: nobody has it before, nor finishes it. Try again then.")
        try:
            with one.hold(key=key, timeout=0) as item:
                item.done(**({} if said["body"] is None else {"body": said["body"]}))
        except LockTimeout as late:
            raise exits.Exit(exits.NOT_ACQUIRED, str(late), quietly=True) from None
        met.append(key)
    if said["json"]:
        say.json({"pool": one.name, "done": met})
    return 0


def absent(one: "Pool", key: str) -> exits.Exit:
    return exits.Exit(exits.CONFIG, f"There is no {key!r} in the pool {one.name!r}. `holdfast pool ls` shows what is.")


def rm(said: Said, one: "Pool") -> int:
    met = []
    for key in said.words[1:]:
        try:
            there = one.remove(key, force=bool(said["force"]))
        except ConfigError as taken:
            sentence = str(taken).replace("use force=True", "say --force: its worker then loses it")
            raise exits.Exit(exits.NOT_ACQUIRED, sentence) from None
        if not there:
            raise absent(one, key)
        met.append(key)
    if said["json"]:
        say.json({"pool": one.name, "removed": met})
    return 0

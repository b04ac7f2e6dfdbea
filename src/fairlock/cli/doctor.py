"""`fairlock doctor` and `fairlock schema`: checks of the store, and what it needs.

With --json doctor prints store, scope, checks: [{level, text}]; level is ok, note, warning or error. With --repair it
prints name, done: [sentence]; with --deadlocks store, rings: [{certain, members: [{owner, thread, holds, waits_for,
waited, held_by, ticket}], youngest: its ticket}].
Its exit code is 0, or 69 if the store cannot be reached, or 77 if it refuses, or 78 if something has to be changed;
with --deadlocks 0 if there is none, else 75.
"""

import os
import sys
from typing import TYPE_CHECKING, Any

import fairlock
from fairlock.connect import others_may_read, url_file
from fairlock.engine import validate
from fairlock.engine.run_sync import run
from fairlock.errors import LockError, StoreError

from . import evict_resize, exit_codes, make_client, output
from .parse_arguments import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlock import Locks, Snapshot
    from fairlock.engine.find_deadlocks import Ring

PINGS = 5
BETWEEN_LOOKS = 0.5  # seconds
SLOW = 0.05


def doctor(args: Arguments) -> int:
    if args["repair"] is not None:
        return repair(args)
    if args["rules"]:
        return print_rules(args)
    if args["deadlocks"]:
        return print_deadlocks(args)
    code = 0
    with make_client.client(args) as locks:
        checks = [*check_setup(args, locks)]
        try:
            checks.append(check_latency(locks))
            checks += run(locks.session.backend.doctor())
            checks += find_damage(locks)
        except StoreError as error:
            checks.append(("error", str(error)))
            code = exit_codes.REFUSED if error.refused else exit_codes.UNREACHABLE
        store, scope = locks.store, locks.session.backend.scope
    if not code and any(level == "error" for level, _ in checks):
        code = exit_codes.CONFIG
    if args["json"]:
        found = [{"level": level, "text": text} for level, text in checks]
        output.json({"store": store, "scope": scope, "checks": found})
    else:
        loud = [c for c in checks if c[0] in ("warning", "error")] if args["quiet"] else checks
        output.out("".join(format_check(level, output.plain(text)) for level, text in loud))
    return code


def format_check(level: str, text: str) -> str:
    """Return one check. On a terminal the sentence is folded, so that the first column stays visible."""
    if not sys.stdout.isatty():
        return f"{level:<8} {text}\n"
    from shutil import get_terminal_size
    from textwrap import fill

    width = max(40, get_terminal_size().columns)
    return fill(text, width, initial_indent=f"{level:<8} ", subsequent_indent=" " * 9) + "\n"


def check_setup(args: Arguments, locks: "Locks") -> list[tuple[str, str]]:
    version = ".".join(map(str, sys.version_info[:3]))
    found = [("ok", f"fairlock {fairlock.__version__} on Python {version}.")]
    url = args["url"] or os.environ.get("FAIRLOCK_URL") or None
    file = url_file(url)
    source = "-u" if args["url"] else "FAIRLOCK_URL" if url else "FAIRLOCK_URL_FILE" if file else ""
    held = f", in the file {file[0]!r}" if file else ""
    found.append(("ok", f"The store is {locks.store}, " + (f"chosen by {source}{held}." if source else "the default.")))
    if file and others_may_read(file[0]):
        found.append(("warning", f"All users of this machine may read the URL in the file {file[0]!r}. Use chmod 600."))
    elif not file and "@" in (args["url"] or ""):
        found.append(("note", "`ps` shows the URL after -u to all users, with its password. Use -u @FILE."))
    return found


def find_damage(locks: "Locks") -> list[tuple[str, str]]:
    found = []
    for name in [one.name for one in locks.snapshot(idle=True).resources if one.kind == "damaged"]:
        try:
            run(locks.session.read(name))
        except LockError as damage:
            found.append(("error", str(damage)))
    return found


def check_latency(locks: "Locks") -> tuple[str, str]:
    locks.ping()  # the first ping opens the store
    best = min(locks.ping() for _ in range(PINGS))
    return ("ok" if best < SLOW else "warning", f"It replies in {best * 1000:.2g} ms.")


def repair(args: Arguments) -> int:
    """Reset what is damaged under one name, and nothing else."""
    name = validate.name(args["repair"])
    if not args["yes"]:
        evict_resize.confirm(
            "doctor --repair",
            name,
            f"If something is damaged under {name!r}, this resets it. Its holder loses it and may still be working.\n"
            "Its fences go on rising. Data that can be read is not changed.",
        )
    with make_client.client(args) as locks:
        done = locks.repair(name)
        store = locks.store
    if args["json"]:
        output.json({"name": name, "done": list(done)})
    elif done:
        output.out("".join(f"{output.plain(sentence)}\n" for sentence in done))
    else:
        output.err(f"Nothing is damaged under {name!r} in {store}, so nothing was changed.")
    return 0


def print_rules(args: Arguments) -> int:
    from fairlock.metrics.alert_rules import RULES

    if args["json"]:
        output.json({"rules": RULES})
    else:
        output.out(RULES)
    return 0


def print_deadlocks(args: Arguments) -> int:
    with make_client.client(args) as locks:
        seen, rings = look_for_rings(locks.snapshot)
    if not args["json"]:
        output.out("".join(map(describe_ring, rings)))
    value = {"store": seen.store, "rings": [ring_as_dict(ring) for ring in rings]}
    output.result(args, value, "" if rings else f"no deadlock in {output.plain(seen.store)}")
    return exit_codes.NOT_ACQUIRED if rings else 0


def look_for_rings(look: "Callable[[], Snapshot]") -> "tuple[Snapshot, tuple[Ring, ...]]":
    """Return a snapshot, and the rings that two snapshots agree about. One alone may show a wait and a hold that were
    never there at the same time."""
    import time

    from fairlock.engine.find_deadlocks import find_rings, in_both

    seen = look()
    if rings := find_rings(seen):
        time.sleep(BETWEEN_LOOKS)
        seen = look()
        rings = in_both(rings, find_rings(seen))
    return seen, rings


def ring_as_dict(ring: "Ring") -> dict[str, Any]:
    members = [one._asdict() for one in ring.members]
    return {"certain": ring.certain, "members": members, "youngest": ring.youngest.ticket}


def describe_ring(ring: "Ring") -> str:
    """Return a ring, one line for each member, and what can be done."""
    from shlex import quote

    from fairlock.engine.find_deadlocks import label

    title = "deadlock" if ring.certain else "possible deadlock (a thread is not known, or a semaphore is part of it)"
    lines = [f"{title}: {len(ring.members)} wait for each other"]
    youngest = ring.youngest
    for one in ring.members:
        holds = f"holds {one.holds!r} and " if one.holds else ""
        mark = "  <- the youngest" if one is youngest else ""
        lines.append(f"  {label(one)} {holds}waits for {one.waits_for!r} since {output.duration(one.waited)}{mark}")
    cure = [one for one in ring.members if one.holds]
    if cure:
        one = youngest if youngest.holds else cure[0]
        command = f"fairlock evict {quote(one.holds)} --ticket {one.held_by} --reason deadlock"
        lines.append(f"  To end it, stop one of them, or: {command}")
    return "".join(f"{output.plain(line)}\n" for line in lines)


def schema(args: Arguments) -> int:
    if args.operands:
        args.options["url"] = args.operands[0]
    with make_client.client(args) as locks:
        text = locks.session.backend.schema()
    if args["json"]:
        output.json({"store": locks.store, "schema": text})
    else:
        output.out(text if text.endswith("\n") else text + "\n")
    return 0

"""The store's clock: the kernel's time since boot, plus a base that the first opener of each boot writes down.

    now = CLOCK_BOOTTIME − the offset of this time namespace + base

It does not step when somebody sets the wall clock and goes on counting while the machine sleeps, and all processes of
one kernel agree about it. base = max(wall clock, highest number stored + 1) − time since boot, so numbers look like
times and go on rising over a reboot, even with a wall clock that was set back.

A reboot ends every process. So the first opener of a boot empties all records, except for seats that live without a
process; those start anew with their full length, for nobody knows how long the machine was off. Items of pools are
left to their leases.

Without a boot id (no Linux) a reboot goes unnoticed: the clock falls back, and the rules cut every lease to its own
length from then on. That is safe, only slower.
"""

import json
import os
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ...doorman import Record, wire
from ...sealed import seal, unseal
from .sentences import corrupt

UNKNOWN = "unknown"
SANE = 2**53  # microseconds: the year 2255
INITIAL_TIME_NAMESPACE = "time:[4026531834]"

_nanoseconds: Callable[[], int] = time.monotonic_ns
if hasattr(time, "CLOCK_BOOTTIME"):
    _nanoseconds = partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)


def since_boot() -> int:
    """Whole microseconds since boot, as this time namespace counts them."""
    return _nanoseconds() // 1000


def boot_id() -> str:
    return _text("/proc/sys/kernel/random/boot_id").strip() or UNKNOWN


def namespace_offset() -> int:
    """By how many microseconds this time namespace is ahead of the kernel.

    The file shows the offsets for *children*; they are ours only if our own namespace is the same one.
    """
    try:
        own = os.readlink("/proc/self/ns/time")
    except OSError:
        return 0  # a kernel without time namespaces
    if own == INITIAL_TIME_NAMESPACE:
        return 0
    for pid in ("self", str(os.getppid())):
        try:
            if os.readlink(f"/proc/{pid}/ns/time_for_children") != own:
                continue
        except OSError:
            continue
        for line in _text(f"/proc/{pid}/timens_offsets").splitlines():
            name, seconds, nanoseconds = line.split()
            if name in ("boottime", "7"):
                return int(seconds) * 1_000_000 + int(nanoseconds) // 1000
    return 0


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def after_boot(record: Record, now: int) -> Record:
    """What is left of a record after a reboot: no line, and inside only those who need no process, at full length."""
    return record._replace(
        seen=now,
        inside=tuple(e._replace(expires=now + e.lease, sure=True) for e in record.inside if not e.ear),
        line=(),
        graves=tuple(g._replace(until=now + g.span) for g in record.graves),
    )


def settle(
    execute: Callable[..., sqlite3.Cursor],
    boot: str,
    elapsed: int,
    version: Callable[[], int],
    another_boot_lives: Callable[[], bool],
) -> int:
    """The base for this boot: as written down, or, by the first opener of a boot, made anew in one transaction.

    another_boot_lives: whether a client with another boot id answers at its ear. Then both run on one kernel, which
    has not restarted at all: some containers are given a made-up boot id. The clock must bear that out.
    """
    known = _known(execute)
    if known is not None:
        then, base = known
        if then == boot or boot == UNKNOWN:
            return base
        highest = _highest(execute, "SELECT max(score) FROM holdfast_locks WHERE typeof(score)='integer' AND score<?")
        if base + elapsed >= highest and another_boot_lives():
            return base
    execute("BEGIN IMMEDIATE")
    try:
        known = _known(execute)
        if known is not None and known[0] == boot:
            base = known[1]
        else:
            base = _first_of_boot(execute, boot, elapsed, version)
        execute("COMMIT")
        return base
    except BaseException:
        execute("ROLLBACK")
        raise


def _known(execute: Callable[..., sqlite3.Cursor]) -> tuple[str, int] | None:
    """Boot and base as written down, with a checksum behind the boot: a wrong base would end every lease at once."""
    rows = execute("SELECT boot, base FROM holdfast_meta").fetchall()
    if not rows:
        if execute("SELECT 1 FROM holdfast_locks LIMIT 1").fetchall():
            raise corrupt("the time is missing")
        return None
    try:
        (boot,) = json.loads(unseal(rows[0][0], str(rows[0][1])))
        return boot, int(rows[0][1])
    except (TypeError, ValueError):
        raise corrupt("the time is unreadable") from None


def _highest(execute: Callable[..., sqlite3.Cursor], sql: str) -> int:
    """The highest number of these that can be true. What is damaged must not move the clock."""
    return int(execute(sql, (SANE,)).fetchall()[0][0] or 0)


def _first_of_boot(
    execute: Callable[..., sqlite3.Cursor], boot: str, elapsed: int, version: Callable[[], int]
) -> int:
    rows: list[Any] = execute("SELECT rowid, score, CAST(body AS BLOB) FROM holdfast_locks").fetchall()
    records: list[tuple[int, Record]] = []
    highest = 0
    for key, score, body in rows:
        if type(score) is int and score < SANE:
            highest = max(highest, score)
        try:
            record = wire.decode(body.decode() if type(body) is bytes else body)
        except ValueError:
            continue  # whoever asks for it will be told
        records.append((key, record))
        highest = max(highest, record.fence, record.seen)
    pools = bool(execute("SELECT 1 FROM sqlite_master WHERE name='holdfast_items'").fetchall())
    if pools:
        sane = "SELECT max(fence) FROM holdfast_items WHERE typeof(fence)='integer' AND fence<?"
        highest = max(highest, _highest(execute, sane))
    now = max(time.time_ns() // 1000, highest + 1)
    base = now - elapsed
    for key, record in records:
        if record.inside or record.line or record.graves:
            record = after_boot(record, now)
            execute(
                "UPDATE holdfast_locks SET owner=?, body=?, version=? WHERE rowid=?",
                (wire.owners(record), wire.encode(record), version(), key),
            )
    if pools:  # nobody stands in their lines any more, and no item is due later than its own span from now
        execute("DELETE FROM holdfast_locks WHERE body LIKE '[\"line%'")
        from .item_seals import cut_items

        cut_items(execute, now)
    execute("DELETE FROM holdfast_meta")
    execute("INSERT INTO holdfast_meta (boot, base) VALUES (?, ?)", (seal(json.dumps([boot]), str(base)), base))
    return base

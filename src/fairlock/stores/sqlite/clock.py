"""The store's clock: the kernel's time since boot, plus a base that the first opener of each boot stores.

    now = CLOCK_BOOTTIME − the offset of this time namespace + base

It does not step when the wall clock is set and goes on counting while the machine sleeps, and all processes of
one kernel agree about it. base = max(wall clock, highest number stored + 1) − time since boot, so numbers look like
times and go on rising over a reboot, even with a wall clock that was set back.

A reboot ends every process. So the first opener of a boot empties all records, except for grants that live without a
process; those start over with their full length, because the machine was off for an unknown time. Items of pools are
left to their leases.

Without a boot id (no Linux) a reboot goes unnoticed: the clock falls back, and the rules cut every lease to its own
length from then on. That is safe, only slower.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from ...rules.checksum import seal, unseal
from ...rules.json_text import parse, to_json
from ...rules.locks import LockState, codec
from .errors import corrupt

UNKNOWN = "unknown"
SANE = 2**53  # microseconds: the year 2255
INITIAL_TIME_NAMESPACE = "time:[4026531834]"

nanoseconds: Callable[[], int] = partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)


def boot_id() -> str:
    return _text("/proc/sys/kernel/random/boot_id").strip() or UNKNOWN


def namespace_offset() -> int:
    """Return by how many microseconds this time namespace is ahead of the kernel.

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


def after_boot(record: LockState, now: int) -> LockState:
    """Return a record as it is after a reboot: no queue, and only holders that need no process, at full length."""
    return record._replace(
        seen=now,
        holders=tuple(e._replace(expires=now + e.lease, confirmed=True) for e in record.holders if not e.listener),
        queue=(),
        tombstones=tuple(g._replace(until=now + g.span) for g in record.tombstones),
    )


def settle(
    execute: Callable[..., sqlite3.Cursor],
    boot: str,
    elapsed: int,
    version: Callable[[], int],
    another_boot_lives: Callable[[], bool],
) -> int:
    """Return the base for this boot: as stored, or, for the first opener of a boot, made in one transaction.

    another_boot_lives: whether a client with another boot id answers at its listener. Then both run on one kernel,
    which has not restarted: some containers have a made-up boot id. The clock must agree with that.
    """
    known = _known(execute)
    if known is not None:
        then, base = known
        if then == boot or boot == UNKNOWN:
            return base
        highest = _highest(execute, "SELECT max(score) FROM fairlock_locks WHERE typeof(score)='integer' AND score<?")
        if base + elapsed >= highest and another_boot_lives():
            return base
    with transaction(execute):
        known = _known(execute)
        # Only here: before the transaction another client may have made the time, and a row, between two reads.
        if known is None and execute("SELECT 1 FROM fairlock_locks LIMIT 1").fetchall():
            raise corrupt("the time is missing")
        if known is not None and known[0] == boot:
            return known[1]
        return _first_of_boot(execute, boot, elapsed, version)


@contextmanager
def transaction(execute: Callable[..., sqlite3.Cursor]) -> Iterator[None]:
    """Begin one that writes, and commit it; or roll it back."""
    execute("BEGIN IMMEDIATE")
    try:
        yield
        execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.OperationalError):  # on a full disk SQLite has done so, and must not hide that reason
            execute("ROLLBACK")
        raise


def _known(execute: Callable[..., sqlite3.Cursor]) -> tuple[str, int] | None:
    """Return boot and base as stored, with a checksum after the boot: a wrong base would end every lease at once."""
    rows = execute("SELECT boot, base FROM fairlock_meta").fetchall()
    if not rows:
        return None
    try:
        (boot,) = parse(unseal(rows[0][0], str(rows[0][1])))
        return boot, int(rows[0][1])
    except (TypeError, ValueError):
        raise corrupt("the time is unreadable") from None


def _highest(execute: Callable[..., sqlite3.Cursor], sql: str) -> int:
    """Return the highest of these numbers that can be true. Damaged data must not move the clock."""
    return int(execute(sql, (SANE,)).fetchall()[0][0] or 0)


def _first_of_boot(
    execute: Callable[..., sqlite3.Cursor], boot: str, elapsed: int, version: Callable[[], int]
) -> int:
    rows: list[Any] = execute("SELECT rowid, score, CAST(body AS BLOB) FROM fairlock_locks").fetchall()
    records: list[tuple[int, LockState]] = []
    highest = 0
    for key, score, body in rows:
        if type(score) is int and score < SANE:
            highest = max(highest, score)
        try:
            record = codec.decode(body.decode() if type(body) is bytes else body)
        except ValueError:
            continue  # the next request for it raises an error
        records.append((key, record))
        highest = max(highest, record.fence, record.seen)
    pools = bool(execute("SELECT 1 FROM sqlite_master WHERE name='fairlock_items'").fetchall())
    if pools:
        sane = "SELECT max(fence) FROM fairlock_items WHERE typeof(fence)='integer' AND fence<?"
        highest = max(highest, _highest(execute, sane))
    now = max(time.time_ns() // 1000, highest + 1)
    base = now - elapsed
    for key, record in records:
        if record.holders or record.queue or record.tombstones:
            record = after_boot(record, now)
            execute(
                "UPDATE fairlock_locks SET owner=?, body=?, version=? WHERE rowid=?",
                (codec.owners(record), codec.encode(record), version(), key),
            )
    if pools:  # their queues are empty now, and no item is due later than its own lease from now
        from ...rules.pools.codec import QUEUE_START
        from .item_checksums import cut_items

        execute("DELETE FROM fairlock_locks WHERE body LIKE ?", (QUEUE_START + "%",))
        cut_items(execute, now)
    execute("DELETE FROM fairlock_meta")
    execute("INSERT INTO fairlock_meta (boot, base) VALUES (?, ?)", (seal(to_json([boot]), str(base)), base))
    return base

"""`fairlock doctor` for SQLite: the file, its rights, the clock, other processes, and how a lock could be lost."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...errors import LockError
from . import clock, errors, file_permissions, location
from .maintenance import COMMIT, SMALL, TRUNCATE, file_size, free_space

if TYPE_CHECKING:
    from .store import SqliteStore

Finding = tuple[str, str]  # ok, note, warning or error; a sentence

BUG = ((3, 7, 0), (3, 51, 3))  # from, and before: two connections may both think that the log was reset by the other
SAMPLES = 30
CHECKABLE = 64 << 20  # bytes; reading more than this takes too long
LOSSES = (
    "Could a lock be lost here? Yes: when the files are deleted or overwritten while they are in use, and when a "
    "holder is stopped for longer than its lease (the fence shows it, if the resource checks the fence).",
    "A crash of the machine may undo the last writes. It ends every process that held a lock here, so only leases "
    "without a process (fairlock acquire) can be affected.",
    "These locks work on this machine only. For several machines use a store with a server.",
)


async def examine(store: "SqliteStore") -> list[Finding]:
    found: list[Finding] = [_version()]
    try:
        await store.ping()
    except LockError as bad:
        return [*found, ("error", str(bad))]
    path = store._db.real
    found += _file(path)
    found += _rights(path)
    found += _clock()
    found += _company(store)
    try:
        found += await _speed(store)
        found += await _health(store)
    except LockError as bad:
        found.append(("error", str(bad)))
    return found + [("note", loss) for loss in LOSSES]


def _version() -> Finding:
    version = sqlite3.sqlite_version
    if BUG[0] <= sqlite3.sqlite_version_info < BUG[1]:
        return (
            "note",
            f"SQLite {version} has a rare bug in resetting its log (fixed in 3.51.3). fairlock keeps clear of it: one "
            "client at a time does that, right after a commit of its own.",
        )
    return "ok", f"SQLite {version}."


def _file(path: str) -> Iterator[Finding]:
    size, log = os.stat(path).st_size, file_size(path + "-wal")
    yield "ok", f"{path} has {_amount(size)}, its log {_amount(log)}."
    if log > 4 * TRUNCATE:
        yield "warning", f"The log has grown to {_amount(log)}: a process reads without end, or none may cut it."
    left = free_space(path)
    if left < max(log, SMALL):
        yield "warning", (
            f"The disk has {_amount(left)} left. When it is full no lock can be acquired: make room there."
        )
    mount = location.find_mount(path)
    if mount is None:
        yield "note", "The file system of the database is not known here. It must not be a network one."
    else:
        yield "ok", f"It lies on {mount.kind}, mounted at {mount.point}."
        if mount.kind in ("tmpfs", "ramfs"):
            yield "note", "That is memory: leases without a process are gone after a reboot."
    if any(path.startswith(cleaned) for cleaned in ("/tmp/", "/var/tmp/")):
        yield "warning", f"Cleaners delete old files below {os.path.dirname(path)}. Use another directory."


def _rights(path: str) -> Iterator[Finding]:
    there, folder = os.stat(path), os.path.dirname(path)
    above, own = os.stat(folder), file_permissions.users(there)
    owner, group = errors.user(own.uid), errors.group(own.gid)
    if own.everybody:
        yield "warning", f"All users of this machine may write {path}, so all of them may take or evict any lock."
    elif own.group:
        yield "ok", f"{owner}, {group} and root can share these locks.".replace("user", "User", 1)
        yield from _sharing(path, own, above)
    else:
        yield "ok", f"Only {f'{owner} and root' if own.uid else 'root'} can use these locks."
    if (there.st_mode & 0o044) & ~own.mode(own.gid):
        yield (
            "warning",
            f"Users that may not write {path} may read it, and a lock that they put on its files stops every writer: "
            f"chmod {oct(own.mode(own.gid))[2:]} '{path}' '{path}'-*.",
        )
    if file_permissions.outsiders_write(above, own):
        do = "create" if above.st_mode & stat.S_ISVTX else "delete"
        yield (
            "warning",
            f"Users that may not write the database can {do} files in {folder}, and so stop all users"
            f"{'' if do == 'create' else ' or take any lock'}. Move it to a directory that only its users may write.",
        )
    if location.is_default(path):
        yield (
            "note",
            f"This is the default store of {errors.user(os.geteuid())}. Other users, root and its cron jobs among "
            "them, have others: they and you do not exclude each other. Name one store for all with FAIRLOCK_URL.",
        )


def _sharing(path: str, own: file_permissions.Users, above: os.stat_result) -> Iterator[Finding]:
    """Yield what the group that may write the file lacks."""
    group = errors.group(own.gid)
    name = group.removeprefix("group ")
    if not (above.st_gid == own.gid and above.st_mode & 0o2030 == 0o2030):
        folder = os.path.dirname(path)
        yield "note", f"For other users of {group} to share them: chgrp {name} '{folder}'; chmod g+rwxs '{folder}'."
    for end in (".wakeups", "-wal", "-shm"):
        try:
            there = os.stat(path + end)
        except OSError:
            continue
        if there.st_gid != own.gid or there.st_mode & 0o060 != 0o060:
            rest = "rwxs" if end == ".wakeups" else "rw"
            yield (
                "warning",
                f"{path}{end} is closed to {group}, which may write the database: chgrp {name} '{path}{end}'; "
                f"chmod g+{rest} '{path}{end}'.",
            )


def _clock() -> Iterator[Finding]:
    if clock.boot_id() == clock.UNKNOWN:
        yield "note", "This system has no boot id: after a reboot, leases last up to their full length once more."
        return
    made_up = location.find_mount("/proc/sys/kernel/random/boot_id")
    if made_up is not None and made_up.point == "/proc/sys/kernel/random/boot_id":
        yield (
            "warning",
            "This container has a made-up boot id. If the database is shared with others outside it, a start while "
            "none of them runs looks like a reboot: leases without a process then start over.",
        )
    offset = clock.namespace_offset()
    if offset:
        yield "ok", f"This time namespace is {offset / 1e6:g} s off; that is taken into account."


def _company(store: "SqliteStore") -> Iterator[Finding]:
    if store.open_listener():
        yield "ok", "Waiters are woken by datagram, and a killed process is noticed within milliseconds."
    else:
        yield (
            "warning",
            f"No socket can be made beside the database ({store._listeners.problem or 'no directory'}): waiters "
            "poll, and a killed process is noticed only when its lease ends.",
        )
    others = [e for e in store._listeners.names() if e != store.listener]
    alive = sorted({int(e.split("-")[0]) for e in others if not store._listeners.is_dead(e)})
    if alive:
        shown = ", ".join(map(str, alive[:10])) + (", …" if len(alive) > 10 else "")
        yield "ok", f"Open in {len(alive)} other process{'es' * (len(alive) > 1)}: {shown}."
    else:
        yield "ok", "No other process has it open."
    writer = errors.writer(store._db.real)
    if writer is not None and writer[2]:
        pid, name, _ = writer
        yield "error", f"Process {pid} ({name}) is stopped in the middle of a write: kill -CONT {pid}, or end it."


async def _speed(store: "SqliteStore") -> list[Finding]:
    reads, writes = [], []
    for _ in range(SAMPLES):
        began = store._clock()
        await store._run(store._db.rows, "SELECT boot FROM fairlock_meta")
        between = store._clock()
        await store._run(store._db.change, COMMIT, ())
        reads.append(between - began)
        writes.append(store._clock() - between)
    read, write = sorted(reads)[SAMPLES // 2] * 1e6, sorted(writes)[SAMPLES // 2] * 1e6
    slow = write > 10_000
    return [("warning" if slow else "ok", f"A read takes {read:.0f} µs, a write {write:.0f} µs (median of {SAMPLES}).")]


async def _health(store: "SqliteStore") -> list[Finding]:
    count = (await store._run(store._db.rows, "SELECT count(*) FROM fairlock_locks"))[0][0]
    found = [("ok", f"{count} name{'s' * (count != 1)} on record. Those that are not used for a day are deleted.")]
    if file_size(store._db.real) > CHECKABLE:
        return [*found, ("note", "The file is too large for a quick look at its integrity: PRAGMA integrity_check.")]
    result = (await store._run(store._db.rows, "PRAGMA quick_check(1)"))[0][0]
    if result != "ok":
        return [*found, ("error", f"The file is damaged ({result}). Move it away, and its -wal and -shm with it.")]
    return [*found, ("ok", "The file is whole.")]


def _amount(size: int) -> str:
    return f"{size / (1 << 20):.1f} MB" if size >= 1 << 20 else f"{size / 1024:.0f} kB"

"""SQLite's error codes as sentences with the cure in them."""

import os
import sqlite3
import stat

from ...errors import ConfigError, LockError, StoreError, refused

BUSY, LOCKED, NOMEM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, PROTOCOL, AUTH, NOTADB, PERM = (
    5, 6, 7, 8, 10, 11, 13, 14, 15, 23, 26, 3,
)  # fmt: skip
IOERR_SHMSIZE = IOERR | 19 << 8
IOERR_WRITE = IOERR | 3 << 8
WRITE_LOCK = "120"  # the byte of the shared-memory file that a writer locks


def code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) or 0


def corrupt(what: str) -> sqlite3.DatabaseError:
    """Return SQLite's own error for damage that it has not noticed, or that it reports in bytes that are no text."""
    error = sqlite3.DatabaseError(what)
    error.sqlite_errorcode = CORRUPT
    return error


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether another client has locked it: try again. LOCKED and PROTOCOL are the same in rarer places."""
    return code(error) & 0xFF in (BUSY, LOCKED, PROTOCOL)


def is_full(error: sqlite3.Error) -> bool:
    """Return whether the disk is full."""
    return code(error) & 0xFF == FULL or code(error) == IOERR_SHMSIZE


def is_lasting(error: sqlite3.Error) -> bool:
    """Return whether the connection may be broken. After a full disk it is not, and it can still read."""
    number = code(error)
    return number & 0xFF in (IOERR, CORRUPT, NOTADB) and number not in (IOERR_SHMSIZE, IOERR_WRITE)


def explain(error: sqlite3.Error, path: str) -> LockError:
    """Return what went wrong with the database at this path, and what to do about it."""
    number = code(error)
    kind = number & 0xFF
    if kind in (NOTADB, CORRUPT):
        return ConfigError(
            f"{path} is damaged or not a SQLite database ({error}). "
            f"Move it away, and its -wal and -shm with it; a new one is created by the next use."
        )
    if is_full(error):
        return StoreError(f"The disk that holds {path} is full. It works again by itself once there is room.")
    if number == IOERR_WRITE:
        return StoreError(
            f"{path} cannot be written ({error}): the disk or quota is full, the file may not grow further "
            "(ulimit -f), or the disk is failing. It works again by itself once that is over."
        )
    if kind in (READONLY, PERM, AUTH):
        return closed(path)
    if kind == CANTOPEN:
        return _cannot_open(path)
    if kind == NOMEM:
        return StoreError(f"There is not enough memory to open {path}.")
    name = getattr(error, "sqlite_errorname", "") or type(error).__name__
    return StoreError(f"{path} does not work: {error} ({name}). 'fairlock doctor' looks closer.")


def stuck(path: str, seconds: float) -> StoreError:
    """Return the error for a database that another process keeps locked."""
    found = writer(path)
    if found is None:
        return StoreError(
            f"{path} was busy for {seconds:g} s. Some process writes without pause or is stopped in the middle of "
            "a write. Find it with 'fairlock doctor' or 'fuser'."
        )
    pid, name, stopped = found
    if stopped:
        return StoreError(
            f"{path} was busy for {seconds:g} s: process {pid} ({name}) is stopped in the middle of a write. "
            f"Continue it with 'kill -CONT {pid}', or end it."
        )
    return StoreError(
        f"{path} was busy for {seconds:g} s: process {pid} ({name}) is writing. Check what it does, or end it."
    )


def writer(path: str) -> tuple[int, str, bool] | None:
    """Return which process has SQLite's write lock: pid, name, whether it is stopped; None if that is unknown."""
    try:
        shared = os.stat(path + "-shm")
        inode = f"{os.major(shared.st_dev):02x}:{os.minor(shared.st_dev):02x}:{shared.st_ino}"
        with open("/proc/locks", encoding="utf-8") as lines:
            for line in lines:
                parts = line.split()
                # 1: POSIX ADVISORY WRITE 4117 08:01:123456 120 120      ('->' after the number: only waiting)
                if len(parts) == 8 and parts[3] == "WRITE" and parts[5] == inode and parts[6] == WRITE_LOCK:
                    pid = int(parts[4])
                    return (pid, *_process(pid)) if pid > 0 else None
    except (OSError, ValueError):
        pass
    return None


def _process(pid: int) -> tuple[str, bool]:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return "gone", False
    name = text[text.index("(") + 1 : text.rindex(")")]
    return name, text[text.rindex(")") + 2] in "Tt"


def _cannot_open(path: str) -> LockError:
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        return ConfigError(f"There is no directory {parent} for the database. Make it first: mkdir -p '{parent}'.")
    if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK):
        return closed(path)
    if not os.access(parent, os.W_OK | os.X_OK):
        return closed(parent)  # the log of the database lies there, too
    return StoreError(
        f"{path} cannot be opened. Perhaps this process has too many files open (ulimit -n), or one of {path}-wal and "
        f"{path}-shm belongs to another user."
    )


def exchangeable(path: str, database: os.stat_result, step: str, there: os.stat_result) -> StoreError:
    """Return the error for root: another user than its owner can replace the database by this link or directory."""
    link = stat.S_ISLNK(there.st_mode)
    mover = user(there.st_uid) if there.st_uid else "everybody" if there.st_mode & 0o002 else group(there.st_gid)
    alone = "root" if not database.st_uid else f"root and {user(database.st_uid)}"
    cure = f"Move it below directories that only {alone} may write"
    if link:
        cure = "Name the database by its own path, without the link"
    elif mover == "everybody":
        cure = f"Close it to them: chmod o-w '{step}'"
    elif not os.path.exists(path):
        cure += f", or let {mover} use it first"
    elif not database.st_uid:
        cure += f", or give it to {mover}: "
        cure += f"chown {there.st_uid} '{path}'" if there.st_uid else f"chown USER:{there.st_gid} '{path}', chmod 660"
    owned = "belongs to" if os.path.exists(path) else "would belong to"
    what = f"the link {step}, which leads there" if link else f"what lies in {step}"
    return refused(
        f"{path} {owned} {user(database.st_uid)}, and {mover} can exchange {what}: root might read one database "
        f"with the log of another. {cure}."
    )


def exchanged(path: str) -> StoreError:
    return refused(f"A directory or link on the way to {path} is exchanged while it is opened. Try again.")


def closed(path: str) -> StoreError:
    """Return the error for a directory or file that this user may not enter or write, with the cure."""
    me = user(os.geteuid())
    try:
        there = os.stat(path)
    except OSError:  # the one above it is closed
        return closed(os.path.dirname(path)) if path != "/" else refused(f"{path} is closed to {me}.")
    folder = stat.S_ISDIR(there.st_mode)
    what = "written" if os.access(path, os.X_OK) or not folder else "entered"
    needs = 0o030 if folder else 0o020
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        cure = "Its file system is mounted for reading only: mount it with rw"
    elif there.st_uid == os.geteuid():
        cure = f"Give yourself the right: chmod u+rw{'x' * folder} '{path}'"
    elif there.st_mode & needs == needs and there.st_gid not in (os.getegid(), *os.getgroups()):
        which = group(there.st_gid)
        cure = f"Join its {which} (usermod -aG {which.removeprefix('group ')} {me.removeprefix('user ')}) and log in"
    else:
        line = f"chgrp GROUP '{path}', chmod {2770 if folder else 660} '{path}'"
        line += "" if folder else f", rm -r '{path}.wakeups', and the same group and chmod 2770 for its directory"
        cure = f"Ask its owner to open it to a group of both of you, while no process uses it: {line}"
    owner = "" if there.st_uid == os.geteuid() else f"; it belongs to {user(there.st_uid)}"
    return refused(
        f"{path} may not be {what} by {me}{owner}. {cure}; or name another store: "
        "FAIRLOCK_URL=sqlite:////absolute/path.db."
    )


def user(uid: int) -> str:
    try:
        import pwd

        return f"user {pwd.getpwuid(uid).pw_name}"
    except (ImportError, KeyError):
        return f"user {uid}"


def group(gid: int) -> str:
    try:
        import grp

        return f"group {grp.getgrgid(gid).gr_name}"
    except (ImportError, KeyError):
        return f"group {gid}"

"""SQLite's error codes as sentences with the cure in them."""

import os
import sqlite3

from ...errors import BackendError, ConfigError, LockError

BUSY, LOCKED, NOMEM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, PROTOCOL, AUTH, NOTADB, PERM = (
    5, 6, 7, 8, 10, 11, 13, 14, 15, 23, 26, 3,
)  # fmt: skip
IOERR_SHMSIZE = IOERR | 19 << 8
IOERR_WRITE = IOERR | 3 << 8
WRITE_LOCK = "120"  # the byte of the shared-memory file that a writer locks


def code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) or 0


def corrupt(what: str) -> sqlite3.DatabaseError:
    """As SQLite says it, of what it has not noticed itself, or says in bytes that are no text."""
    error = sqlite3.DatabaseError(what)
    error.sqlite_errorcode = CORRUPT
    return error


def is_busy(error: sqlite3.Error) -> bool:
    """Somebody else is at it: try again. LOCKED and PROTOCOL are the same thing in rarer places."""
    return code(error) & 0xFF in (BUSY, LOCKED, PROTOCOL)


def is_full(error: sqlite3.Error) -> bool:
    """The disk has no room."""
    return code(error) & 0xFF == FULL or code(error) == IOERR_SHMSIZE


def is_lasting(error: sqlite3.Error) -> bool:
    """Whether the connection may be of no more use. A full disk is none of its fault, and it can still read."""
    number = code(error)
    return number & 0xFF in (IOERR, CORRUPT, NOTADB) and number not in (IOERR_SHMSIZE, IOERR_WRITE)


def explain(error: sqlite3.Error, path: str) -> LockError:
    """What went wrong with the database at this path, and what to do about it."""
    number = code(error)
    kind = number & 0xFF
    if kind in (NOTADB, CORRUPT):
        return ConfigError(
            f"{path} is damaged or not a SQLite database ({error}). "
            f"Move it away, and its -wal and -shm with it; a new one is made by the next use."
        )
    if is_full(error):
        return BackendError(f"The disk that holds {path} is full. It goes on by itself once there is room.")
    if number == IOERR_WRITE:
        return BackendError(
            f"{path} cannot be written ({error}): the disk or quota is full, the file may not grow further "
            "(ulimit -f), or the disk is failing. It goes on by itself once that is over."
        )
    if kind in (READONLY, PERM, AUTH, CANTOPEN) and (owner := _below_another_user(path)):
        return refused(
            f"{path} belongs to root, and its directory to {user(owner)}. Root uses what lies there with the rights of "
            f"that user only: chown {owner} '{path}', or move it to a directory of root."
        )
    if kind in (READONLY, PERM, AUTH):
        return refused(f"{path} may not be written by {_me()}{_owner(path)}. {_cure(path)}")
    if kind == CANTOPEN:
        return _cannot_open(path)
    if kind == NOMEM:
        return BackendError(f"There is not enough memory to open {path}.")
    name = getattr(error, "sqlite_errorname", "") or type(error).__name__
    return BackendError(f"{path} does not work: {error} ({name}). 'holdfast doctor' looks closer.")


def foreign(path: str, application: int) -> ConfigError:
    whose = f"another application (id {application})" if application else "another application"
    return ConfigError(f"{path} is a database of {whose}. Give the locks a file of their own.")


def newer(path: str, found: int, known: int) -> ConfigError:
    return ConfigError(
        f"{path} was made by a newer holdfast (schema {found}; this one knows {known}). "
        "Upgrade holdfast here, or use another file."
    )


def not_wal(path: str, mode: str) -> ConfigError:
    return ConfigError(
        f"{path} cannot be used with a write-ahead log (SQLite stays with '{mode}'), which holdfast needs. "
        "Put it on a local file system."
    )


def forked_amid(path: str) -> BackendError:
    return BackendError(
        f"This process was forked while {path} was in use, in a way that Python could not prepare for; SQLite would "
        "lose writes. Connect after the fork."
    )


def stuck(path: str, seconds: float) -> BackendError:
    """Nobody could write for so long, because somebody is in the middle of it."""
    who = writer(path)
    if who is None:
        return BackendError(
            f"{path} was busy for {seconds:g} s. Some process writes without pause or is stopped in the middle of "
            "a write. Find it with 'holdfast doctor' or 'fuser'."
        )
    pid, name, stopped = who
    if stopped:
        return BackendError(
            f"{path} was busy for {seconds:g} s: process {pid} ({name}) is stopped in the middle of a write. "
            f"Continue it with 'kill -CONT {pid}', or end it."
        )
    return BackendError(
        f"{path} was busy for {seconds:g} s: process {pid} ({name}) is writing. Look what it does, or end it."
    )


def writer(path: str) -> tuple[int, str, bool] | None:
    """Who holds SQLite's write lock right now: pid, name, and whether it is stopped; None if that cannot be told."""
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
        return refused(f"{path} may not be opened by {_me()}{_owner(path)}. {_cure(path)}")
    if not os.access(parent, os.W_OK | os.X_OK):
        return refused(
            f"{parent} may not be written by {_me()}{_owner(parent)}; the log of the database lies there too. "
            f"{_cure(parent)}"
        )
    return BackendError(
        f"{path} cannot be opened. Perhaps this process has too many files open (ulimit -n), or one of {path}-wal and "
        f"{path}-shm belongs to somebody else."
    )


def _below_another_user(path: str) -> int:
    """Who owns the directory in which root has this file; 0 if it is root's own, or we are not root."""
    try:
        return os.stat(os.path.dirname(path)).st_uid if os.geteuid() == os.stat(path).st_uid == 0 else 0
    except OSError:
        return 0


def refused(sentence: str) -> BackendError:
    error = BackendError(sentence)
    error.refused = True
    return error


def _cure(path: str) -> str:
    return "Give this user the right to write there, or name another store: HOLDFAST_URL=sqlite:////absolute/path.db."


def _me() -> str:
    return user(os.geteuid())


def _owner(path: str) -> str:
    try:
        owner = os.stat(path).st_uid
    except OSError:
        return ""
    return "" if owner == os.geteuid() else f"; it belongs to {user(owner)}"


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

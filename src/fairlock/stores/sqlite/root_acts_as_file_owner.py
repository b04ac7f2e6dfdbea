"""Root uses a database of another user with the rights of that user.

SQLite opens the database, its log and its index by path, one after another, and as root it gives the log to the owner
of the database. A user that can replace a file or a directory on that path can thus make root join the log of one
database to another one, or give a file away. Two rules prevent that:

- If another user than root can replace something on the path, a directory or a link, root makes, opens, checkpoints
  and closes the database with the rights of its owner, in this thread only. So that user can do nothing through root
  that is not possible without it. That includes a directory like /tmp: there the owner of the database can replace the
  log, by a hard link of a file of root where the system permits that.
- Only that owner, or a group that may write the database anyway, may be able to replace something there. All else is
  refused: a database of root below a directory of another user or behind a link of one, a database of one user below
  another's.

Rejected alternatives: comparing the inodes of what was opened before the first write (SQLite plays a journal back
while it opens); opening through a pinned directory (SQLite resolves every link of a path itself, /proc/self/fd too).
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ...errors import refused
from . import errors
from .walked_path import WalkedPath

ALL_USERS = 2**32 - 1


class Owner(NamedTuple):
    uid: int
    gid: int


def owner(way: WalkedPath, database: os.stat_result | None = None) -> Owner | None:
    """Return the user whose rights this process must use for this database at the end of this path; None: its own.

    StoreError if root cannot use it safely. None for the database: root makes it for the owner of the directory.
    """
    if os.geteuid():
        return None
    above, nobody = way.directory(), _unmapped()
    database = database or above
    shared = [step for step in way.steps if others_move(step.there) and step.there.st_uid != nobody]
    if not shared and (not above.st_mode & 0o022 or above.st_uid == nobody):
        return None
    for step in reversed(shared):
        if not database.st_uid or not _may_exchange(step.there, database):
            raise errors.exchangeable(way.real, database, *step)
    return Owner(database.st_uid, database.st_gid) if database.st_uid else None


def others_move(there: os.stat_result) -> bool:
    """Return whether another user than root can replace this link, or what root has in this directory."""
    open_to_others = stat.S_ISDIR(there.st_mode) and there.st_mode & 0o022 and not there.st_mode & stat.S_ISVTX
    return bool(there.st_uid or open_to_others)


def _unmapped() -> int:
    """Return the uid as which users outside of this user namespace appear, the real root too; -1 if there are none.

    Root of such a namespace is a plain user of the machine, and has no rights that could be borrowed.
    """
    try:
        with open("/proc/self/uid_map", encoding="utf-8") as lines:
            if sum(int(line.split()[2]) for line in lines) >= ALL_USERS:
                return -1
        with open("/proc/sys/kernel/overflowuid", encoding="utf-8") as number:
            return int(number.read())
    except (OSError, ValueError):
        return -1


def _may_exchange(folder: os.stat_result, database: os.stat_result) -> bool:
    """Return whether all users that can replace files in this directory are users of the database."""
    if folder.st_uid:
        return folder.st_uid == database.st_uid  # the owner alone decides about others there
    if folder.st_mode & 0o002:
        return False
    return folder.st_gid == database.st_gid and bool(database.st_mode & 0o020)


@contextmanager
def use_rights(one: Owner | None) -> Iterator[None]:
    """Open and close files with the rights of this user, in this thread. None changes nothing."""
    system = _system() if one is not None else None  # only root with a database of another user pays for that import
    if one is None or system is None:
        yield
        return
    try:
        system.setfsgid(one.gid)
        system.setfsuid(one.uid)
        if system.setfsuid(-1) & 0xFFFFFFFF != one.uid:  # where it is not allowed, it does nothing and reports nothing
            raise refused(f"Root may not act as {errors.user(one.uid)} here. Run this as that user.")
        yield
    finally:
        system.setfsuid(os.geteuid())
        system.setfsgid(os.getegid())


def _system() -> Any:
    """Return the C library if it has setfsuid, which only Linux does; else None."""
    try:
        import ctypes

        system = ctypes.CDLL(None)
        return system if system.setfsuid and system.setfsgid else None
    except (ImportError, OSError, AttributeError):
        return None

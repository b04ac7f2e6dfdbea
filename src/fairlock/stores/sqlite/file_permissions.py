"""The users of a database, and the files beside it.

The *users* of a database are those that may write its file: its owner, its group if the group may write, root. They may
do anything to the locks in it. Every other user of the machine is an outsider, and is kept out by four rules:

- The file and the directory of the sockets are created for the users only. To read is a right as well: a read lock on
  the log's index stops every writer.
- What lies beside the file (log, sockets) is used only if no outsider can have put it there.
- Root opens a database of another user with the rights of that user (`root_acts_as_file_owner`).
- Modes and owners are set only on what was just made inside a `private` directory. A user of the database can replace
  anything beside it by a link to something else at any moment, and root must not give that something away.
"""

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from ...errors import refused
from . import errors

DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
PLACE = DIRECTORY | getattr(os, "O_PATH", 0)  # needs no right to list what is in it
BESIDE = (".wakeups", "-wal", "-shm", "-journal")
NEW = "new"
OTHERS = 0o077  # every right of users other than the owner


class Users(NamedTuple):
    uid: int
    gid: int
    group: bool  # whether the group may use it, too
    everybody: bool

    def mode(self, gid: int) -> int:
        """Return the mode of a file of this group that the users may read and write, and no other user."""
        return 0o600 | (0o060 if self.group and gid == self.gid else 0) | (0o006 if self.everybody else 0)


def users(there: os.stat_result) -> Users:
    """Return the users of the database file with this stat."""
    mode = there.st_mode
    return Users(there.st_uid, there.st_gid, mode & 0o060 == 0o060, mode & 0o006 == 0o006)


def ours_alone() -> Users:
    """Return the users of a file that does not exist yet."""
    return Users(os.geteuid(), -1, False, False)


# -- the file itself

_creating = threading.Lock()


def create(path: str) -> None:
    """Make an empty file if there is none: for the group if the umask lets it write, and never for others to read.

    Root leaves it to the owner of the directory, or root's first use would lock that user out. What goes wrong here is
    explained by SQLite when it opens the file.
    """
    with _creating, suppress(OSError):  # one at a time: closing the file drops the locks that SQLite has on it
        parent = os.open(os.path.dirname(path), PLACE)
        try:
            mode = 0o600 if _umask() & 0o060 else 0o660
            file = os.open(os.path.basename(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode, dir_fd=parent)
            try:
                above = os.fstat(parent)
                if os.geteuid() == 0 and above.st_uid:
                    os.fchown(file, above.st_uid, above.st_gid)
            finally:
                os.close(file)
        finally:
            os.close(parent)


def _umask() -> int:
    """Read, not set and set back: it belongs to all threads of the process."""
    try:
        with open("/proc/self/status", "rb") as lines:
            return next(int(line.split()[1], 8) for line in lines if line.startswith(b"Umask:"))
    except (OSError, ValueError, StopIteration):
        return OTHERS


# -- what lies beside it


def refuse_strangers(path: str) -> None:
    """StoreError if something beside the database may have been put there by an outsider."""
    try:
        own, above = users(os.stat(path)), os.stat(os.path.dirname(path))
    except OSError:
        return  # SQLite explains it
    for end in BESIDE:
        try:
            there = os.lstat(path + end)
        except OSError:
            continue
        if problem := strange(path + end, there, own, above):
            raise refused(problem)


def strange(path: str, there: os.stat_result, own: Users, above: os.stat_result) -> str:
    """Return why this must not be used beside the database of these users; '' if it may."""
    if there.st_uid not in (0, own.uid, os.geteuid()) and outsiders_write(above, own):
        return (
            f"{path} belongs to {errors.user(there.st_uid)}, and users that may not write the database can create "
            f"files in {os.path.dirname(path)}. Remove it, and move the database to a directory that only its users "
            "may write."
        )
    if stat.S_ISREG(there.st_mode) and there.st_nlink > 1:
        return (
            f"{path} has {there.st_nlink} names (hard links), so it may be a file of something else that would be "
            "overwritten. Remove this name of it."
        )
    if stat.S_ISDIR(there.st_mode) and outsiders_write(there, own):
        return (
            f"{path} may be written by users that may not write the database. Close it to them: "
            f"chmod {'o' if own.group and there.st_gid == own.gid else 'go'}-w '{path}'."
        )
    return ""


def outsiders_write(there: os.stat_result, own: Users) -> bool:
    """Return whether users that may not write the database may write here."""
    if own.everybody:
        return False
    group = own.group and there.st_gid == own.gid
    return bool(there.st_mode & (0o002 if group else 0o022))


# -- making things there


@contextmanager
def private(parent: int) -> Iterator[int]:
    """Make a new directory in this one that only we can enter, gone at the end. What is made in it (NEW) is certainly
    ours.

    Others may replace it between its creation and our opening it; but only by another one of ours that is empty and
    closed to them, or it is refused.
    """
    name = f".{os.getpid()}-{os.urandom(8).hex()}"
    os.mkdir(name, 0o700, dir_fd=parent)
    inner = -1
    try:
        inner = _open_private(name, parent)
        yield inner
    finally:
        _discard(name, parent, inner)


def _open_private(name: str, parent: int) -> int:
    inner = os.open(name, DIRECTORY, dir_fd=parent)
    there = os.fstat(inner)
    if there.st_uid != os.geteuid() or there.st_mode & OTHERS or os.listdir(inner):
        os.close(inner)  # what is in it is not ours to remove
        raise PermissionError(errno.EPERM, "a directory was replaced by another one while in use")
    return inner


def discard(name: str, parent: int) -> None:
    """Remove a private directory that a killed process of ours has left."""
    with suppress(OSError):
        _discard(name, parent, os.open(name, DIRECTORY, dir_fd=parent))


def _discard(name: str, parent: int, inner: int) -> None:
    if inner >= 0:
        for remove in (os.unlink, os.rmdir):
            with suppress(OSError):
                remove(NEW, dir_fd=inner)
        os.close(inner)
    with suppress(OSError):
        os.rmdir(name, dir_fd=parent)


def share(inner: int, own: Users) -> os.stat_result:
    """Open what we have just made in this private directory to the users of the database; its stat afterwards.

    Root leaves it to the owner of the database, as SQLite does with its own files.
    """
    with suppress(OSError):  # not a member of that group
        os.chown(NEW, own.uid if os.geteuid() == 0 else -1, own.gid, dir_fd=inner, follow_symlinks=False)
    there = os.stat(NEW, dir_fd=inner, follow_symlinks=False)
    mode = own.mode(there.st_gid)
    if stat.S_ISDIR(there.st_mode):
        mode |= (mode & 0o444) >> 2 | (stat.S_ISGID if mode & 0o060 else 0)
    os.chmod(NEW, mode, dir_fd=inner)
    return there


def make_directory(name: str, parent: int, own: Users) -> None:
    """Make a directory for the users of the database. If something else has that name, nothing happens."""
    with private(parent) as inner, suppress(OSError):
        os.mkdir(NEW, 0o700, dir_fd=inner)
        share(inner, own)
        os.rename(NEW, name, src_dir_fd=inner, dst_dir_fd=parent)

"""How clients of one database hear each other, and how they know who is alive: one datagram socket per client.

The sockets lie in a directory beside the database, `locks.db.ears/`, one file each: `<pid>-<boot>-<random>`. That name
is the client's *ear* and stands in every record it enters. Two things come from it:

- **Hints.** Whoever lets somebody in sends its ticket, place and fence to that ear, after the write. A hint may be
  lost, late or doubled. Whoever could forge one has the rights of the database, and could as well write there.
- **Life.** A socket ends with its process, however that ends. Nobody there (ECONNREFUSED) means dead, at once and
  whatever the pid namespace; no right to send, or a full queue, means alive. Whoever holds a copy of the file
  descriptor keeps the client alive (`holdfast run` gives one to its guard).

A missing file (ENOENT) means dead, too, unless the file was taken away from a living one: so only if the process is
gone as well, and our own file still lies there.

They are bound and reached as `/proc/self/fd/<directory>/<name>`: a socket's path may have 108 bytes at most, and this
one is short however deep the database lies. It works across namespaces of every kind; abstract sockets do not.
"""

import _socket as socket  # without `socket` around it: enum classes that cost a fifth of a start of Python
import errno
import os
import re
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress

_NAME = re.compile(r"(\d{1,10})-\w{1,8}-\w{1,16}", re.ASCII)
_STALE_AFTER = 3600.0  # seconds; a dead ear is proof of death as long as its file lies there
_PIDFDS = 64
MANY = 10  # a socket's queue holds about so many: after that some hints may have been refused


class Ears:
    """Our own ear, and what can be done with the others'."""

    def __init__(self, path: str, boot: Callable[[], str]) -> None:
        self.path = path
        self.name = ""  # '' = we have none (yet)
        self.problem = ""  # why not
        self.socket: socket.socket | None = None
        self._boot = boot
        self._voice: socket.socket | None = None
        self._folder = -1
        self._prefix = ""
        self._inode = 0
        self._pidfds: dict[str, int] = {}
        self._making = threading.Lock()

    @property
    def directory(self) -> str:
        """Beside the real file, whatever symbolic link led to it, for all must meet there."""
        return os.path.realpath(self.path) + ".ears"

    # -- our own

    def open(self) -> str:
        """Bind our ear if that was not tried yet; its name, or '' if it cannot be."""
        if not self.name and not self.problem:
            try:
                self._bind(f"{os.getpid()}-{self._tag()}-{os.urandom(4).hex()}")
            except (OSError, AttributeError) as bad:  # AttributeError: a system that has no such sockets
                self.drop()
                if not isinstance(bad, FileNotFoundError):  # a missing directory may yet be made
                    self.problem = getattr(bad, "strerror", "") or str(bad)
        return self.name

    def _tag(self) -> str:
        return re.sub(r"\W", "", self._boot())[:8] or "0"

    def _bind(self, name: str) -> None:
        mode, owner = _rights(self.path)
        directory = self.directory
        try:
            os.mkdir(directory)
            if mode is not None:
                os.chmod(directory, _searchable(mode))
                _give(directory, owner)
        except FileExistsError:
            pass
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        self._set_folder(folder)
        ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            ear.setblocking(False)
            ear.bind(self._prefix + name)
            if mode is not None:
                os.chmod(self._prefix + name, mode | 0o600)
                _give(self._prefix + name, owner)
            self._inode = os.stat(self._prefix + name).st_ino
        except BaseException:
            ear.close()
            raise
        self.socket = ear
        self.name = name

    def _set_folder(self, folder: int) -> None:
        if self._folder >= 0:
            os.close(self._folder)
        self._folder = folder
        self._prefix = f"/proc/self/fd/{folder}/"
        if not os.path.isdir(self._prefix):
            self._prefix = self.directory + "/"

    def heal(self) -> None:
        """Put our file back if somebody took it away; the name stays, for it stands in records."""
        if self.name and not self._is_there():
            name, old = self.name, self.socket
            try:
                self._bind(name)
            except OSError:
                return  # try again next time
            if old is not None:
                old.close()

    def _is_there(self) -> bool:
        try:
            same = os.stat(self._prefix + self.name).st_ino == self._inode
            return same and os.stat(self.directory).st_ino == os.fstat(self._folder).st_ino
        except OSError:
            return False

    def close(self) -> None:
        """Take our ear away: from now on we count as gone."""
        if self.name:
            try:
                os.unlink(self._prefix + self.name)
            except OSError:
                pass
        self.drop()
        self.problem = "closed"

    def in_child(self) -> None:
        """After a fork, in the child: the parent's ear is not ours, and our copy must not keep it alive."""
        self._making = threading.Lock()
        self.drop()
        self.problem = ""

    def drop(self) -> None:
        """Close everything and leave the file where it is: whoever knocks is refused, which proves that we are gone."""
        for end in (self.socket, self._voice):
            if end is not None:
                end.close()
        self.socket = self._voice = None
        self.name = ""
        for fd in (*self._pidfds.values(), self._folder):
            if fd >= 0:
                os.close(fd)
        self._pidfds.clear()
        self._folder = -1

    # -- the others'

    def send(self, ear: str, ticket: str) -> None:
        """Send a hint. Nothing is said about whether it arrives."""
        mouth = self._voice or self._mouth()
        if mouth is not None and _NAME.fullmatch(ear):
            try:
                mouth.sendto(ticket.encode("utf-8", "surrogatepass"), self._prefix + ear)
            except OSError:
                pass  # gone; or its queue is full, and then it is awake and will look at everything

    def receive(self) -> list[str]:
        """The tickets of all hints that have arrived."""
        tickets: list[str] = []
        ear = self.socket
        while ear is not None and len(tickets) < 64:
            try:
                tickets.append(ear.recv(1024).decode("utf-8", "replace"))
            except OSError:
                break
        return tickets

    def is_dead(self, ear: str) -> bool:
        """Whether the process behind this ear is gone for certain."""
        if not ear or ear == self.name:
            return False
        match = _NAME.fullmatch(ear)
        mouth = self._voice or self._mouth()
        if match is None or mouth is None:
            return False  # not one of ours: whoever wrote that, its lease decides
        try:
            mouth.connect(self._prefix + ear)
            return False
        except ConnectionRefusedError:
            return True
        except FileNotFoundError:
            return self._is_there() and not _runs(int(match[1]))
        except OSError:
            return False

    def _mouth(self) -> socket.socket | None:
        """An unbound socket for sending and probing, and the directory to reach the others through."""
        with self._making, suppress(OSError):  # two threads may find at once that there is none
            if self._folder < 0:
                self._set_folder(os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
            if self._voice is None:
                voice = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                voice.setblocking(False)
                self._voice = voice
        return self._voice

    def watch(self, ear: str) -> tuple[int, bool]:
        """A file descriptor that becomes readable when the process behind this ear ends, or -1; and whether it is new.

        The pid in the name may be one of another pid namespace. Then this watches a stranger, which does no harm:
        death is only ever concluded from the ear itself.
        """
        fd = self._pidfds.get(ear)
        if fd is not None:
            return fd, False
        match = _NAME.fullmatch(ear)
        if match is not None and hasattr(os, "pidfd_open") and int(match[1]) != os.getpid():
            try:
                fd = self._pidfds[ear] = os.pidfd_open(int(match[1]))
                return fd, True
            except OSError:
                pass
        return -1, True

    def watched(self, ears: set[str]) -> dict[int, str]:
        """The file descriptors under watch, of these ears."""
        return {self._pidfds[e]: e for e in ears if e in self._pidfds}

    def watches_many(self) -> bool:
        return len(self._pidfds) > _PIDFDS

    def unwatch(self, ear: str) -> None:
        fd = self._pidfds.pop(ear, None)
        if fd is not None:
            os.close(fd)

    def forget_unwatched(self, watched: set[str]) -> None:
        """Keep the number of open file descriptors within bounds."""
        for ear in [e for e in self._pidfds if e not in watched]:
            self.unwatch(ear)

    def another_boot_lives(self) -> bool:
        """Whether somebody answers whose name carries another boot id than ours."""
        ours = self._tag()
        return any(not self.is_dead(e) for e in self.names() if e.split("-")[1] != ours)

    def names(self) -> list[str]:
        try:
            return [e for e in os.listdir(self.directory) if _NAME.fullmatch(e)]
        except OSError:
            return []

    def clean(self, limit: int = 100) -> None:
        """Remove the files of those who died long ago."""
        then = time.time() - _STALE_AFTER
        for ear in self.names():
            try:
                file = self._prefix + ear
                there = os.stat(file)
                if stat.S_ISSOCK(there.st_mode) and there.st_mtime < then and self.is_dead(ear):
                    os.unlink(file)
                    limit -= 1
            except OSError:
                pass
            if not limit:
                break


def _rights(path: str) -> tuple[int | None, tuple[int, int]]:
    """Who may use the database may also knock at our ear: its mode and owner. (None, …): it does not exist yet."""
    try:
        there = os.stat(path)
    except OSError:
        return None, (-1, -1)
    return there.st_mode & 0o666, (there.st_uid, there.st_gid)


def _searchable(mode: int) -> int:
    """The mode of a directory for those who may write a file of this mode: rwx for each rw."""
    result = 0o700
    for read, write, full in ((0o040, 0o020, 0o070), (0o004, 0o002, 0o007)):
        if mode & read and mode & write:
            result |= full
        elif mode & read:
            result |= full & 0o055
    return result


def _give(path: str, owner: tuple[int, int]) -> None:
    """Root leaves things to the owner of the database, as SQLite does with its own files."""
    if os.geteuid() == 0:
        try:
            os.chown(path, *owner)
        except OSError:
            pass


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as bad:
        return bad.errno != errno.ESRCH
    return True

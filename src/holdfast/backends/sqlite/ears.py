"""How clients of one database reach each other, and how they know which of them are alive: one datagram socket each.

The sockets lie in a directory beside the database, `locks.db.ears/`, one file each: `<pid>-<boot>-<inode>`. That name
is the client's *ear* and stands in every record it enters. Two things come from it:

- **Hints.** A client that lets another one in sends its ticket, place and fence to that ear, after the write. A hint
  may be lost, late or doubled. The directory is open to the users of the database only (`rights`).
- **Life.** A socket ends with its process, however that ends. Nobody there (ECONNREFUSED) means dead, at once and
  whatever the pid namespace; no right to send, or a full queue, means alive. A process that holds a copy of the file
  descriptor keeps the client alive (`holdfast run` gives one to its guard).

Death is proven by the socket that the name means, not by any file of that name. A living socket keeps its inode, even
if its file is removed, so no other file can have that number: a refusal by that very inode is proof, and nobody can
arrange it. If another file has the name, or none, the client is dead only if its process is gone as well, and our own
file still lies there.

Everything here is reached through the descriptor of the directory, which is checked when it is opened, and no link is
followed. `/proc/self/fd/<directory>/<name>` is also short, however deep the database lies: a socket's path may have 108
bytes at most. It works across namespaces of every kind; abstract sockets do not.
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

from . import rights
from .deaths import NAME, Deaths, runs

_THIS = "/proc/self/fd/"
_STALE_AFTER = 3600.0  # seconds; a dead ear is proof of death as long as its file lies there
MANY = 10  # a socket's queue holds about so many: after that some hints may have been refused


class Ears(Deaths):
    """Our own ear, and what can be done with the others'."""

    def __init__(self, path: str, boot: Callable[[], str]) -> None:
        super().__init__()
        self.path = path
        self.name = ""  # '' = we have none (yet)
        self.problem = ""  # why not
        self.socket: socket.socket | None = None
        self._boot = boot
        self._voice: socket.socket | None = None
        self._folder = -1
        self._prefix = ""
        self._inode = 0
        self._making = threading.Lock()

    @property
    def directory(self) -> str:
        """Beside the real file, whatever symbolic link led to it, for all must meet there."""
        return os.path.realpath(self.path) + ".ears"

    # -- our own

    def open(self) -> str:
        """Bind our ear if that was not tried yet; its name, or '' if it cannot be."""
        for _ in range(3):  # the directory may be removed under our hands
            if self.name or self.problem:
                break
            try:
                self.name = self._bind()
            except (OSError, AttributeError) as bad:  # AttributeError: a system that has no such sockets
                self.drop()
                if not isinstance(bad, FileNotFoundError):  # a missing directory may yet be made
                    self.problem = getattr(bad, "strerror", "") or str(bad)
        return self.name

    def _tag(self) -> str:
        return re.sub(r"\W", "", self._boot())[:8] or "0"

    def _bind(self, name: str = "") -> str:
        """Bind a socket to this name, or to one of its own. It gets its mode and owner before anybody can see it."""
        if not os.path.isdir(_THIS):
            raise OSError(errno.ENOSYS, f"this system has no {_THIS}")
        folder, users = self._open_folder(make=True)
        ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            ear.setblocking(False)
            with rights.private(folder) as inside:
                ear.bind(f"{_THIS}{inside}/{rights.NEW}")
                inode = rights.share(inside, users).st_ino
                name = name or f"{os.getpid()}-{self._tag()}-{inode:x}"
                os.rename(rights.NEW, name, src_dir_fd=inside, dst_dir_fd=folder)
        except BaseException:
            ear.close()
            os.close(folder)
            raise
        self._set_folder(folder)
        self._inode = inode
        self.socket = ear
        return name

    def _open_folder(self, make: bool) -> tuple[int, rights.Users]:
        """The directory of the ears, checked, and the users of the database. OSError if there is none to be used."""
        path = self.directory
        name = os.path.basename(path)
        parent = os.open(os.path.dirname(path), rights.PLACE)
        try:
            try:
                users = rights.users(os.stat(name.removesuffix(".ears"), dir_fd=parent, follow_symlinks=False))
            except FileNotFoundError:
                users = rights.ours_alone()
            try:
                folder = os.open(name, rights.DIRECTORY, dir_fd=parent)
            except FileNotFoundError:
                if not make:
                    raise
                rights.make_directory(name, parent, users)
                folder = os.open(name, rights.DIRECTORY, dir_fd=parent)
            if problem := rights.strange(path, os.fstat(folder), users, os.fstat(parent)):
                os.close(folder)
                raise PermissionError(errno.EACCES, problem)
            return folder, users
        finally:
            os.close(parent)

    def _set_folder(self, folder: int) -> None:
        if self._folder >= 0:
            os.close(self._folder)
        self._folder = folder
        self._prefix = f"{_THIS}{folder}/"

    def heal(self) -> None:
        """Put our file back if it was removed; the name stays, because it stands in records."""
        if self.name and not self._is_there():
            old = self.socket
            try:
                self._bind(self.name)
            except OSError:
                return  # try again next time
            if old is not None:
                old.close()

    def _is_there(self) -> bool:
        try:
            same = os.stat(self.name, dir_fd=self._folder, follow_symlinks=False).st_ino == self._inode
            return same and os.path.samestat(os.lstat(self.directory), os.fstat(self._folder))
        except OSError:
            return False

    def reopen(self) -> int:
        """The directory of the ears again, with a lock of its own; -1 if we have none."""
        return os.open(".", rights.DIRECTORY, dir_fd=self._folder) if self._mouth() is not None else -1

    def close(self) -> None:
        """Take our ear away: from now on we count as gone."""
        if self.name:
            try:
                os.unlink(self.name, dir_fd=self._folder)
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
        self.forget_unwatched(set())
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    # -- the others'

    def send(self, ear: str, ticket: str) -> None:
        """Send a hint. Nothing is said about whether it arrives."""
        mouth = self._voice or self._mouth()
        if mouth is not None and NAME.fullmatch(ear):
            with suppress(OSError):  # gone; or its queue is full, and then it is awake and will look at everything
                fd = os.open(ear, os.O_PATH | os.O_NOFOLLOW, dir_fd=self._folder)
                try:
                    mouth.sendto(ticket.encode("utf-8", "surrogatepass"), f"{_THIS}{fd}")
                finally:
                    os.close(fd)

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
        match = NAME.fullmatch(ear)
        mouth = self._voice or self._mouth()
        if match is None or mouth is None:
            return False  # not one of ours: whoever wrote that, its lease decides
        try:
            mouth.connect(self._prefix + ear)
            return False
        except (ConnectionRefusedError, FileNotFoundError):
            return self._is_proven(mouth, ear, int(match[1]), match[2])
        except OSError:
            return False

    def _is_proven(self, mouth: socket.socket, ear: str, pid: int, inode: str) -> bool:
        """Nobody answers at this name: whether that proves the death of the process that it means."""
        fd = -1
        try:
            fd = os.open(ear, os.O_PATH | os.O_NOFOLLOW, dir_fd=self._folder)
            mouth.connect(f"{_THIS}{fd}")
            return False
        except ConnectionRefusedError:
            there = os.fstat(fd)
            if stat.S_ISSOCK(there.st_mode) and f"{there.st_ino:x}" == inode:  # what is no socket refuses as well
                return True
        except FileNotFoundError:
            pass
        except OSError:
            return False
        finally:
            if fd >= 0:
                os.close(fd)
        return self._is_there() and not runs(pid)

    def _mouth(self) -> socket.socket | None:
        """An unbound socket for sending and probing, and the directory to reach the others through."""
        with self._making, suppress(OSError):  # two threads may find at once that there is none
            if self._folder < 0:
                self._set_folder(self._open_folder(make=False)[0])
            if self._voice is None:
                voice = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                voice.setblocking(False)
                self._voice = voice
        return self._voice

    def another_boot_lives(self) -> bool:
        """Whether somebody answers whose name carries another boot id than ours."""
        ours = self._tag()
        return any(not self.is_dead(e) for e in self.names() if e.split("-")[1] != ours)

    def names(self) -> list[str]:
        return [e for e in self._entries() if NAME.fullmatch(e)]

    def _entries(self) -> list[str]:
        try:
            return os.listdir(self._prefix) if self._mouth() is not None else []
        except OSError:
            return []

    def clean(self, limit: int = 100) -> None:
        """Remove the files of clients that died long ago."""
        then = time.time() - _STALE_AFTER
        for name in self._entries():
            try:
                there = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
                if there.st_mtime >= then:
                    continue
                if stat.S_ISSOCK(there.st_mode) and self.is_dead(name):
                    os.unlink(name, dir_fd=self._folder)
                    limit -= 1
                elif stat.S_ISDIR(there.st_mode) and there.st_uid == os.geteuid():
                    rights.discard(name, self._folder)
            except OSError:
                pass
            if not limit:
                break

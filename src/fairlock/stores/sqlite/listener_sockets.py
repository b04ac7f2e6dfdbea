"""One datagram socket per client: wake-ups between clients of one database, and proof which of them are alive.

The sockets lie in a directory beside the database, `locks.db.wakeups/`, one file each: `<pid>-<boot>-<inode>`. That
name is the client's *listener* and is part of each of its entries in a record. It has two uses:

- **Wake-ups.** A client that grants a lock to another one sends ticket, place and fence to its listener, after the
  write. A wake-up may be lost, late or doubled. The directory is open to the users of the database only
  (`file_permissions`).
- **Liveness.** A socket ends with its process, however that ends. ECONNREFUSED means dead, at once and in any pid
  namespace; no right to send, or a full buffer, means alive. A process that holds a copy of the file
  descriptor keeps the client alive (`fairlock run` gives one to its watchdog).

Death is proven by the socket that the name means, not by any file of that name. A living socket keeps its inode, even
if its file is removed, so no other file can have that number: a refusal by that very inode is proof, and no other
user can forge it. If another file has the name, or none, the client is dead only if its process is gone as well, and
our own file still lies there.

Everything here is reached through the descriptor of the directory, which is checked when it is opened, and no link is
followed. It is opened beside the database that is open, wherever the path of that leads by now.
`/proc/self/fd/<directory>/<name>` is also short, however deep the database lies: a socket's path may have 108 bytes at
most. It works across namespaces of every kind; abstract sockets do not.
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

from . import file_permissions
from .location import Place
from .process_watch import NAME, ProcessDeaths, runs

SOCKETS = ".wakeups"  # behind the name of the database
_THIS = "/proc/self/fd/"
_STALE_AFTER = 3600.0  # seconds; a dead listener is proof of death as long as its file lies there
MANY = 10  # a socket's buffer holds about this many: after that some wake-ups may have been refused


class WakeupSockets(ProcessDeaths):
    """Our own listener, and the operations on those of other clients."""

    def __init__(self, place: Callable[[], Place | None], boot: Callable[[], str]) -> None:
        super().__init__()
        self.name = ""  # '' = there is none (yet)
        self.problem = ""  # why not
        self.socket: socket.socket | None = None
        self._place = place
        self._boot = boot
        self._sender: socket.socket | None = None
        self._connected = ""  # the listener to which it is connected
        self._folder = -1
        self._prefix = ""
        self._inode = 0
        self._guard = threading.Lock()

    def _database(self) -> Place:
        place = self._place()
        if place is None:
            raise FileNotFoundError(errno.ENOENT, "the database was never open")
        return place

    # -- our own

    def open(self) -> str:
        """Bind our listener if that was not tried yet. Return its name, or '' if that is not possible."""
        for _ in range(3):  # the directory may be removed meanwhile
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
        """Bind a socket to this name, or to a new one. It gets its mode and owner before others can see it."""
        if not os.path.isdir(_THIS):
            raise OSError(errno.ENOSYS, f"this system has no {_THIS}")
        folder, users = self._open_folder(make=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            listener.setblocking(False)
            with file_permissions.private(folder) as private:
                listener.bind(f"{_THIS}{private}/{file_permissions.NEW}")
                inode = file_permissions.share(private, users).st_ino
                name = name or f"{os.getpid()}-{self._tag()}-{inode:x}"
                os.rename(file_permissions.NEW, name, src_dir_fd=private, dst_dir_fd=folder)
        except BaseException:
            listener.close()
            os.close(folder)
            raise
        self._set_folder(folder)
        self._inode = inode
        self.socket = listener
        return name

    def _open_folder(self, make: bool) -> tuple[int, file_permissions.Users]:
        """Open and check the directory of the listeners. Return it and the database's users. OSError: unusable."""
        place = self._database()
        path, parent = place.real + SOCKETS, place.directory.fd
        name = os.path.basename(path)
        try:
            users = file_permissions.users(place.stat())
        except FileNotFoundError:
            users = file_permissions.ours_alone()
        try:
            folder = os.open(name, file_permissions.DIRECTORY, dir_fd=parent)
        except FileNotFoundError:
            if not make:
                raise
            file_permissions.make_directory(name, parent, users)
            folder = os.open(name, file_permissions.DIRECTORY, dir_fd=parent)
        if problem := file_permissions.strange(path, os.fstat(folder), users, os.fstat(parent)):
            os.close(folder)
            raise PermissionError(errno.EACCES, problem)
        return folder, users

    def _set_folder(self, folder: int) -> None:
        if self._folder >= 0:
            os.close(self._folder)
        self._folder = folder
        self._prefix = f"{_THIS}{folder}/"

    def heal(self) -> None:
        """Put our file back if it was removed; the name stays, because records contain it."""
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
            return same and os.path.samestat(self._database().stat(SOCKETS), os.fstat(self._folder))
        except OSError:
            return False

    def reopen(self) -> int:
        """Open the directory of the listeners again, with a lock of its own; -1 if there is none."""
        return os.open(".", file_permissions.DIRECTORY, dir_fd=self._folder) if self._open_sender() is not None else -1

    def close(self) -> None:
        """Remove our listener: from now on this client counts as gone."""
        if self.name:
            try:
                os.unlink(self.name, dir_fd=self._folder)
            except OSError:
                pass
        self.drop()
        self.problem = "closed"

    def in_child(self) -> None:
        """After a fork, in the child: the parent's listener is not ours, and our copy must not keep it alive."""
        self._guard = threading.Lock()
        self.drop()
        self.problem = ""

    def drop(self) -> None:
        """Close everything and leave the file: it refuses connections, which proves that this client is gone."""
        for end in (self.socket, self._sender):
            if end is not None:
                end.close()
        self.socket = self._sender = None
        self.name = self._connected = ""
        self.forget_unwatched(set())
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    # -- those of other clients

    def send(self, listener: str, ticket: str) -> None:
        """Send a wake-up. It may not arrive."""
        sender = self._sender or self._open_sender()
        if sender is None or not NAME.fullmatch(listener):
            return
        data = ticket.encode("utf-8", "surrogatepass")
        with self._guard, suppress(OSError):  # gone; or its buffer is full, and then it is awake and reads everything
            if self._connected == listener:  # `is_dead` was asked just before
                with suppress(ConnectionRefusedError):  # else it may have bound a new socket: `heal`
                    sender.send(data)
                    return
            if self._connect(sender, listener) is None:
                sender.send(data)

    def _connect(self, sender: socket.socket, listener: str) -> os.stat_result | None:
        """Under the guard: connect the sender to this listener, and return None; if no socket answers at its name,
        return what lies there. OSError if that is not possible; FileNotFoundError if nothing lies there."""
        self._connected = ""
        fd = os.open(listener, os.O_PATH | os.O_NOFOLLOW, dir_fd=self._folder)
        try:
            sender.connect(f"{_THIS}{fd}")
            self._connected = listener
            return None
        except ConnectionRefusedError:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def receive(self) -> list[str]:
        """Return the texts of all wake-ups that have arrived."""
        texts: list[str] = []
        listener = self.socket
        while listener is not None and len(texts) < 64:
            try:
                texts.append(listener.recv(1024).decode("utf-8", "replace"))
            except OSError:
                break
        return texts

    def is_dead(self, listener: str) -> bool:
        """Return whether the process behind this listener is gone for certain."""
        if not listener or listener == self.name:
            return False
        match = NAME.fullmatch(listener)
        sender = self._sender or self._open_sender()
        if match is None or sender is None:
            return False  # not a name of ours: its lease decides
        try:
            with self._guard:
                there = self._connect(sender, listener)
            if there is None:
                return False
            if stat.S_ISSOCK(there.st_mode) and f"{there.st_ino:x}" == match[2]:  # what is no socket refuses as well
                return True
        except FileNotFoundError:
            pass
        except OSError:
            return False
        return self._is_there() and not runs(int(match[1]))

    def _open_sender(self) -> socket.socket | None:
        """Return an unbound socket for sending and probing. Open it, and the directory, if needed."""
        with self._guard, suppress(OSError):  # two threads may find at once that there is none
            if self._folder < 0:
                self._set_folder(self._open_folder(make=False)[0])
            if self._sender is None:
                sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                sender.setblocking(False)
                self._sender = sender
        return self._sender

    def another_boot_lives(self) -> bool:
        """Return whether a client whose name contains another boot id than ours answers."""
        ours = self._tag()
        return any(not self.is_dead(e) for e in self.names() if e.split("-")[1] != ours)

    def names(self) -> list[str]:
        return [e for e in self._entries() if NAME.fullmatch(e)]

    def _entries(self) -> list[str]:
        try:
            return os.listdir(self._prefix) if self._open_sender() is not None else []
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
                    file_permissions.discard(name, self._folder)
            except OSError:
                pass
            if not limit:
                break

"""Where the database lies: URLs, the default path, and file systems on which SQLite would lose locks.

SQLite's write-ahead log is coordinated through shared memory and POSIX locks of one kernel. On a network file system
both exist in name only, so such a location is refused.
"""

import errno
import os
import re
import stat
from typing import NamedTuple

from ...errors import ConfigError, StoreError, refused
from . import errors, file_permissions, root_acts_as_file_owner
from .walked_path import walk

NETWORK = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "lustre", "glusterfs", "ocfs2", "gfs2", "vboxsf",
    "drvfs", "afs", "coda", "beegfs", "gpfs", "prl_fs", "vmhgfs", "orangefs", "pvfs2", "ncpfs",
)  # fmt: skip
LOCAL_FUSE = ("fuse.fuse-overlayfs",)  # any other fuse.* may be a network in disguise


class Mount(NamedTuple):
    kind: str
    point: str


class Directory:
    """An open directory. It is closed when the last that uses it forgets it."""

    def __init__(self, path: str) -> None:
        self.fd = -1
        self.fd = os.open(path, file_permissions.PLACE)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


class Place(NamedTuple):
    """Where a database lies, wherever its path leads by now."""

    real: str  # without symbolic links
    directory: Directory
    owner: root_acts_as_file_owner.Owner | None = None  # the user whose rights root uses

    def stat(self, end: str = "") -> os.stat_result:
        """Return the stat of the database, or of what lies beside it with this end of the name."""
        return os.stat(os.path.basename(self.real) + end, dir_fd=self.directory.fd, follow_symlinks=False)


def parse(target: str | os.PathLike[str]) -> tuple[str, dict[str, str]]:
    """Return absolute path and parameters of 'sqlite:///relative.db', 'sqlite:////absolute.db' or a plain path.

    ConfigError if it names no file. Nothing on disk is touched.
    """
    text = os.fspath(target)
    options: dict[str, str] = {}
    path = text
    if text.startswith("sqlite:"):
        rest, _, query = text[len("sqlite:") :].partition("?")
        for part in query.split("&") if query else ():
            name, _, value = part.partition("=")
            options[name] = value
        if ":" in rest.replace("%40", "@").rpartition("@")[0]:
            raise ConfigError(
                "This sqlite:// URL looks as if it held a user and a password, and SQLite has neither. Its forms are "
                "sqlite:///relative.db and sqlite:////absolute/path.db. A file of such a name is given as pathlib.Path."
            )
        if rest.startswith("///"):
            path = rest[3:]
        elif rest in ("", "//"):
            path = ":memory:"
        else:
            raise ConfigError(
                "This sqlite:// URL names a host, but SQLite is a file on this machine. "
                "Use sqlite:///relative.db or sqlite:////absolute/path.db."
            )
    shown = text.partition("?")[0]
    if path == ":memory:" or path.startswith("file:") or options.get("mode") == "memory":
        raise ConfigError(
            f"{shown!r} is not a file that other processes can open. "
            "Use memory:// for locks inside one process, or sqlite:////absolute/path.db."
        )
    if not path or path.endswith("/") or "\0" in path:
        raise ConfigError(f"{shown!r} does not name a file. Use sqlite:///relative.db or sqlite:////absolute/path.db.")
    return os.path.abspath(path), options


def default_path() -> str:
    """Return the path of this user's store on this machine. ConfigError if the user has no home."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # the specification ignores a relative one
        home = os.environ.get("HOME") or _home_by_passwd()
        if not home or not os.path.isabs(home):
            raise ConfigError(
                "There is no default place for locks: HOME is not set and this user has no entry in the passwd file. "
                "Set HOME or XDG_STATE_HOME, or name a store: FAIRLOCK_URL=sqlite:////absolute/path.db."
            )
        state = os.path.join(home, ".local", "state")
    return os.path.join(state, "fairlock", "locks.db")


def _home_by_passwd() -> str:
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        return ""


def is_default(path: str) -> bool:
    try:
        return path == default_path()
    except ConfigError:
        return False


def prepare(path: str) -> Place:
    """Check the location, and make an empty database if there is none.

    The directory of the default store is made, any other one must exist.
    """
    if is_default(path):
        _make_default(path)
    parent = os.path.dirname(path)
    try:
        way = walk(path)
        real, parent = way.real, os.path.dirname(way.real)
        place = Place(real, Directory(parent))
        above = os.fstat(place.directory.fd)
        database = _database(place)
        _check_mount(real)
    except FileNotFoundError:
        raise ConfigError(
            f"There is no directory {parent} for the database {os.path.basename(path)}. "
            f"Make it first: mkdir -p '{parent}'."
        ) from None
    except PermissionError:
        raise errors.closed(parent) from None
    except OSError as bad:
        if bad.errno in (errno.EMFILE, errno.ENFILE):
            many = "there are too many files open, in this process (ulimit -n) or at all"
            raise StoreError(f"{path} cannot be opened: {many}.") from None
        raise ConfigError(f"{path} cannot be a database: {bad.strerror}. Name another path.") from None
    if not os.path.samestat(above, way.directory()):
        raise errors.exchanged(path)
    one = root_acts_as_file_owner.owner(way, database)  # root makes nothing where it would be refused
    with root_acts_as_file_owner.use_rights(one):
        file_permissions.create(os.path.basename(real), place.directory.fd)
    file_permissions.refuse_strangers(real, place.directory.fd)
    return place._replace(owner=one)


def _make_default(path: str) -> None:
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        try:
            with root_acts_as_file_owner.use_rights(root_acts_as_file_owner.owner(walk(path))):
                os.makedirs(folder, mode=0o700, exist_ok=True)
        except OSError as bad:
            raise refused(
                f"The default place for locks, {folder}, cannot be made: {bad.strerror}. "
                "Name a store that this user may write: FAIRLOCK_URL=sqlite:////absolute/path.db."
            ) from None


def _database(place: Place) -> os.stat_result | None:
    """Return the stat of the database, None if there is none. ConfigError for what cannot be one."""
    try:
        there = place.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(there.st_mode):
        raise ConfigError(f"{place.real} is not a plain file, so it cannot be a database. Name another path.")
    if there.st_nlink > 1:
        raise ConfigError(
            f"{place.real} has {there.st_nlink} names (hard links). Under each of them it would have another log, and "
            "clients would not exclude each other. Remove all names but one (find -samefile lists them), or make "
            "symbolic links of them."
        )
    return there


def _check_mount(real: str) -> None:
    """ConfigError if this path lies where no database can be used."""
    mount = find_mount(real)
    if mount and (mount.kind in NETWORK or (mount.kind.startswith("fuse.") and mount.kind not in LOCAL_FUSE)):
        raise ConfigError(
            f"{real} lies on a network file system ({mount.kind} at {mount.point}), where SQLite cannot keep two "
            "processes apart. Use a local disk for one machine, or a store with a server for several."
        )
    if mount and mount.point == real:
        raise ConfigError(
            f"{real} is mounted as a single file, so its log would lie in another directory for each process that sees "
            "it elsewhere. Mount the directory that contains it."
        )


def find_mount(path: str, table: str = "/proc/self/mountinfo") -> Mount | None:
    """Return the mount that holds this path; None if the system does not show it."""
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as lines:
            mounts = [_mount(line) for line in lines]
    except OSError:
        return None
    found: Mount | None = None
    for _, mount in mounts:
        point = mount.point
        if path == point or path.startswith(point if point.endswith("/") else point + "/"):
            if found is None or len(point) >= len(found.point):  # of two on one point the later one is on top
                found = mount
    try:
        there = os.stat(path if os.path.exists(path) else os.path.dirname(path)).st_dev
    except OSError:
        return found
    device = f"{os.major(there)}:{os.minor(there)}"
    if found is None or not any(d == device and m == found for d, m in mounts):
        # Path and device disagree (a chroot, a mount that hides another): the device is right, if it is listed at
        # all; subvolumes are not.
        for d, mount in mounts:
            if d == device:
                return mount
    return found


def _mount(line: str) -> tuple[str, Mount]:
    fields, _, rest = line.partition(" - ")
    parts = fields.split(" ")
    # mountinfo writes space, tab, newline and backslash as octal
    point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), parts[4])
    return parts[2], Mount(rest.split(" ", 1)[0], point)

"""Where a database may lie, how it is named, and the sentence for each place that will not do."""

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlock.errors import ConfigError, StoreError
from fairlock.stores.sqlite import SqliteStore, default_path, location
from tests.sqlite.processes import ThreadRuntime, get, put, python, run, store_at

Client = Callable[..., SqliteStore]


def test_urls_are_read_as_sqlalchemy_reads_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert location.parse("sqlite:////var/lib/locks.db") == ("/var/lib/locks.db", {})
    assert location.parse("sqlite:///relative.db") == (f"{tmp_path}/relative.db", {})
    assert location.parse("sqlite:///a/../b.db") == (f"{tmp_path}/b.db", {})
    assert location.parse("plain.db") == (f"{tmp_path}/plain.db", {})
    assert location.parse("/with space/ü%20.db") == ("/with space/ü%20.db", {})
    assert location.parse("sqlite:////x.db?busy_timeout=2") == ("/x.db", {"busy_timeout": "2"})


def test_a_relative_path_means_where_we_were_when_connecting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("sqlite:///locks.db", ThreadRuntime())
    monkeypatch.chdir(tmp_path / "there")
    put(store, "k")
    run(store.close())
    assert (tmp_path / "locks.db").exists()


@pytest.mark.parametrize(
    "target", [":memory:", "sqlite://", "sqlite:", "sqlite:///:memory:", "sqlite:///x?mode=memory", "file::memory:"]
)
def test_memory_is_refused(target: str) -> None:
    with pytest.raises(ConfigError, match="Use memory:// for locks inside one process"):
        SqliteStore(target, ThreadRuntime())


@pytest.mark.parametrize("target", ["", "sqlite:///", "/tmp/", "sqlite:////tmp/\0x", "x/"])
def test_what_names_no_file_is_refused(target: str) -> None:
    with pytest.raises(ConfigError, match="does not name a file"):
        SqliteStore(target, ThreadRuntime())


def test_a_host_is_refused() -> None:
    with pytest.raises(ConfigError, match="names a host"):
        SqliteStore("sqlite://localhost/x.db", ThreadRuntime())


@pytest.mark.parametrize("query", ["busy=1", "mode=ro", "busy_timeout=1&x=2", "x"])
def test_an_unknown_parameter_is_refused(query: str) -> None:
    with pytest.raises(ConfigError, match=r"Known: busy_timeout"):
        SqliteStore(f"sqlite:////tmp/x.db?{query}", ThreadRuntime())


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "inf", ""])
def test_a_busy_timeout_that_is_no_time_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="busy_timeout is a number of seconds, at most 86400"):
        SqliteStore(f"sqlite:////tmp/x.db?busy_timeout={value}", ThreadRuntime())


def test_the_busy_timeout_of_the_url_counts() -> None:
    assert SqliteStore("sqlite:////tmp/x.db?busy_timeout=0.5", ThreadRuntime()).busy_timeout == 0.5
    assert SqliteStore("sqlite:////tmp/x.db?busy_timeout=0.5", ThreadRuntime(), busy_timeout=2).busy_timeout == 2
    assert SqliteStore("sqlite:////tmp/x.db", ThreadRuntime()).busy_timeout == 5


# -- the default


def test_the_default_lies_in_the_state_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert default_path() == "/state/fairlock/locks.db"
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    assert default_path() == "/home/me/.local/state/fairlock/locks.db"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert default_path() == "/home/me/.local/state/fairlock/locks.db"


def test_the_default_directory_is_made_for_this_user_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    for target in (None, default_path()):
        store = SqliteStore(target, ThreadRuntime())
        put(store, "k")
        run(store.close())
    directory = tmp_path / ".local" / "state" / "fairlock"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert (directory / "locks.db").exists()


def test_nobody_without_a_home_gets_a_directory_called_tilde(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import pwd

    def nobody(uid: int) -> object:
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert default_path().startswith("/")
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for home in (None, "", "relative"):
        if home is not None:
            monkeypatch.setenv("HOME", home)
        with pytest.raises(ConfigError, match=r"HOME is not set.*FAIRLOCK_URL"):
            SqliteStore(None, ThreadRuntime())
    assert list(tmp_path.iterdir()) == []


def test_a_default_directory_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(StoreError, match=r"cannot be made: Not a directory.*FAIRLOCK_URL") as caught:
        put(SqliteStore(None, ThreadRuntime()), "k")
    assert caught.value.refused


# -- directories and files


def test_a_missing_directory_is_not_made(tmp_path: Path) -> None:
    store = store_at(tmp_path / "missing" / "x.db")
    assert store.open_listener() == ""
    with pytest.raises(ConfigError, match=r"There is no directory .*/missing for the database x.db. Make it first"):
        put(store, "k")
    assert not (tmp_path / "missing").exists()
    (tmp_path / "missing").mkdir()
    put(store, "k")
    assert store.open_listener() != "", "once there is a location, there is an listener"
    run(store.close())


def test_a_directory_is_not_a_database(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a plain file"):
        put(store_at(tmp_path), "k")


def test_a_file_is_not_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"not a directory|cannot be a database"):
        put(store_at(tmp_path / "file" / "x.db"), "k")


def test_a_loop_of_links_is_not_a_database(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises((ConfigError, StoreError)):
        put(store_at(tmp_path / "loop"), "k")


def test_a_file_with_two_names_is_refused_under_each_of_them(path: Path) -> None:
    """It would have a log for each name, and nobody would see what is written under the other one."""
    put(first := store_at(path), "k")
    other = path.with_name("other.db")
    other.hardlink_to(path)
    for name in (path, other):
        with pytest.raises(ConfigError, match=rf"{name} has 2 names \(hard links\).*symbolic links"):
            put(store_at(name), "k")
    put(first, "k")  # it was there before the second name, and nobody can come in under that
    other.unlink()
    put(again := store_at(path), "k")
    for store in (first, again):
        run(store.close())


as_somebody_else = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def said_by_nobody(path: Path) -> str:
    """Return the error of a user without rights that uses this store."""
    done = python(
        """
        from fairlock.errors import LockError
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
        store = store_at(sys.argv[1])
        try:
            put(store, "k")
            print("it worked")
        except LockError as bad:
            print(type(bad).__name__, getattr(bad, "refused", None), bad)
        """,
        path,
    )
    return done.communicate(timeout=60)[0]


@as_somebody_else
def test_a_directory_that_may_not_be_written_is_refused(public: Path) -> None:
    said = said_by_nobody(public)
    assert said.startswith("StoreError True ")
    assert "may not be written by user nobody; it belongs to user root" in said
    assert "FAIRLOCK_URL" in said


@as_somebody_else
def test_another_users_file_is_refused(client: Client, public: Path) -> None:
    store = client(path=public)
    put(store, "k", "mine")
    public.parent.chmod(0o777)
    said = said_by_nobody(public)
    assert said.startswith("StoreError True ")
    assert "user nobody; it belongs to user root" in said
    row = get(store, "k").row
    assert row is not None
    assert row.body == "mine"


@as_somebody_else
def test_a_file_that_may_not_be_read_is_refused(client: Client, public: Path) -> None:
    put(client(path=public), "k")
    public.chmod(0o600)
    said = said_by_nobody(public)
    assert said.startswith("StoreError True ")
    assert "user nobody" in said


@as_somebody_else
def test_root_leaves_the_listeners_to_the_owner_of_the_database(public: Path) -> None:
    """As SQLite does with its own files; else root's first use would lock the owner out."""
    public.touch(mode=0o600)
    public.parent.chmod(0o777)
    os.chown(public, 65534, 65534)
    os.chown(public.parent, 65534, 65534)
    store = store_at(public)
    assert store.open_listener()
    put(store, "k")
    assert Path(f"{public}.wakeups").stat().st_uid == 65534
    said = said_by_nobody(public)
    run(store.close())
    assert said.strip() == "it worked"


# -- file systems

TABLE = r"""22 28 0:21 / / rw shared:7 - ext4 /dev/sda rw
30 22 0:44 / /mnt/nfs rw - nfs4 server:/export rw
31 22 0:45 / /mnt/with\040space rw shared:3 master:1 - cifs //server/x rw
32 22 0:46 / /mnt/fuse rw - fuse.sshfs me@there: rw
33 22 0:47 / /mnt/rootless rw - fuse.fuse-overlayfs x rw
34 22 0:48 / /mnt/nfs/local rw - tmpfs none rw
35 22 0:49 / /mnt/top rw - ext4 x rw
36 35 0:50 / /mnt/top rw - virtiofs x rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/x.db", "ext4"),
        ("/mnt/nfs/x.db", "nfs4"),
        ("/mnt/nfsx/x.db", "ext4"),
        ("/mnt/with space/x.db", "cifs"),
        ("/mnt/fuse/a/b/x.db", "fuse.sshfs"),
        ("/mnt/rootless/x.db", "fuse.fuse-overlayfs"),
        ("/mnt/nfs/local/x.db", "tmpfs"),
        ("/mnt/top/x.db", "virtiofs"),
    ],
)
def test_the_file_system_is_that_of_the_nearest_mount(tmp_path: Path, path: str, kind: str) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(TABLE)
    found = location.find_mount(path, str(table))
    assert found is not None
    assert found.kind == kind


def test_the_device_decides_where_the_path_misleads(tmp_path: Path) -> None:
    there = os.stat(tmp_path).st_dev
    table = tmp_path / "mountinfo"
    table.write_text(
        f"22 28 0:9999 / / rw - ext4 /dev/sda rw\n"
        f"23 28 {os.major(there)}:{os.minor(there)} / /elsewhere rw - nfs server:/ rw\n"
    )
    found = location.find_mount(str(tmp_path / "x.db"), str(table))
    assert found is not None
    assert found.kind == "nfs"


@pytest.mark.parametrize(
    "kind",
    ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "lustre", "fuse.glusterfs", "ocfs2", "gfs2", "vboxsf",
     "drvfs", "fuse.sshfs", "fuse.s3fs", "fuse.anything"],
)  # fmt: skip
def test_network_file_systems_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(location, "find_mount", lambda path: location.Mount(kind, "/mnt"))
    store = store_at(path)
    with pytest.raises(ConfigError, match=rf"network file system \({kind} at /mnt\)"):
        put(store, "k")
    assert store.open_listener() == ""
    run(store.close())
    assert list(path.parent.iterdir()) == [], "nothing was made there"


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuse.fuse-overlayfs", "f2fs"])
def test_local_file_systems_are_not(client: Client, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(location, "find_mount", lambda path: location.Mount(kind, "/mnt"))
    put(client(), "k")


def test_a_real_tmpfs_and_this_disk_are_recognised(tmp_path: Path) -> None:
    found = location.find_mount("/dev/shm/x.db")
    assert found is None or found.kind in ("tmpfs", "overlay", "ext4")
    here = location.find_mount(str(tmp_path / "x.db"))
    assert here is not None
    wanted = subprocess.run(
        ["findmnt", "-n", "-o", "FSTYPE", "-T", str(tmp_path)], capture_output=True, text=True, check=False
    ).stdout.strip()
    assert here.kind == wanted or not wanted


def test_a_system_that_tells_nothing_about_mounts_is_trusted(path: Path, tmp_path: Path) -> None:
    assert location.find_mount(str(path), str(tmp_path / "missing")) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_single_mounted_file_is_refused(path: Path, tmp_path: Path) -> None:
    """Its log would lie beside the mount point: everybody who sees the file elsewhere has another log."""
    store = store_at(path)
    put(store, "k")
    run(store.close())
    (tmp_path / "container").mkdir()
    (tmp_path / "container" / "locks.db").touch()
    done = python(
        """
        import subprocess
        from fairlock.errors import ConfigError
        if subprocess.run(["mount", "--bind", sys.argv[1], sys.argv[2]]).returncode:
            print("no mount")
            sys.exit()
        try:
            put(store_at(sys.argv[2]), "k")
        except ConfigError as bad:
            print(bad)
        """,
        path,
        tmp_path / "container" / "locks.db",
        before=["unshare", "--mount"],
    )
    said = done.communicate(timeout=60)[0]
    if "no mount" in said or not said:
        pytest.skip("mounting is not allowed here")
    assert "is mounted as a single file" in said
    assert "Mount the directory that contains it" in said

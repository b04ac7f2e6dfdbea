"""`doctor` for a SQLite file, and the schema."""

import grp
import os
import pwd
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlock.stores.sqlite import SqliteStore, doctor, location
from tests.sqlite.processes import ThreadRuntime, put, python, run, stop

Client = Callable[..., SqliteStore]


def said(store: SqliteStore) -> str:
    found = run(store.doctor())
    assert all(level in ("ok", "note", "warning", "error") for level, _ in found)
    assert all(sentence.endswith(".") and sentence[0] == sentence[0].upper() for _, sentence in found)
    return "\n".join(f"{level}: {sentence}" for level, sentence in found)


def test_a_healthy_store(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    store = client()
    put(store, "k")
    text = said(store)
    assert sqlite3.sqlite_version in text
    assert "ok: The file is whole." in text
    assert "ok: 1 name on record" in text
    assert "ok: No other process has it open." in text
    assert "noticed within milliseconds" in text
    assert "Could a lock be lost here?" in text
    assert "This machine only" in text or "this machine only" in text
    assert "error:" not in text


def test_it_looks_without_changing_a_record(client: Client) -> None:
    store = client()
    version = put(store, "k").version
    said(store)
    assert run(store.read("k")).version == version


@pytest.mark.parametrize(
    ("version", "level"),
    [((3, 6, 9), "ok"), ((3, 7, 0), "note"), ((3, 40, 1), "note"), ((3, 51, 2), "note"), ((3, 51, 3), "ok")],
)
def test_the_versions_with_the_bug_are_named(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], level: str
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
    assert doctor._version()[0] == level


def test_which_other_processes_have_it_open(client: Client, path: Path) -> None:
    store = client()
    other = python("store = store_at(sys.argv[1]); print(store.open_listener(), flush=True); sys.stdin.read()", path)
    assert other.stdout is not None
    other.stdout.readline()
    try:
        assert f"Open in 1 other process: {other.pid}." in said(store)
    finally:
        other.kill()
        other.communicate()
    assert "No other process has it open." in said(store)


def test_a_process_stopped_in_the_middle_of_a_write(client: Client, path: Path) -> None:
    store = client(busy_timeout=0.05)
    put(store, "k")
    other = python(
        """
        con = sqlite3.connect(sys.argv[1], isolation_level=None)
        con.execute("BEGIN IMMEDIATE")
        print("in", flush=True)
        time.sleep(60)
        """,
        path,
    )
    assert other.stdout is not None
    other.stdout.readline()
    stop(other.pid)
    try:
        text = said(store)
    finally:
        other.kill()
        other.communicate()
    assert f"error: Process {other.pid} " in text
    assert f"kill -CONT {other.pid}" in text


def test_the_default_store_is_one_users_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    store = SqliteStore(None, ThreadRuntime())
    text = said(store)
    run(store.close())
    assert "do not exclude each other" in text
    assert "root and its cron jobs" in text


def test_a_file_for_everybody(client: Client, path: Path) -> None:
    store = client()
    put(store, "k")
    path.chmod(0o666)
    assert "warning: All users of this machine may write" in said(store)


def test_which_users_can_share_the_locks(client: Client, path: Path) -> None:
    store = client()
    put(store, "k")
    path.chmod(0o600)
    me = pwd.getpwuid(os.geteuid()).pw_name
    group = grp.getgrgid(path.stat().st_gid).gr_name
    only = "root" if me == "root" else f"user {me} and root"
    assert f"ok: Only {only} can use these locks." in said(store)
    path.chmod(0o660)
    text = said(store)
    assert f"ok: User {me}, group {group} and root can share these locks." in text
    assert f"note: For other users of group {group} to share them: chgrp {group} '{path.parent}'; chmod g+rwxs" in text
    assert f"warning: {path}.wakeups is closed to group {group}, which may write the database" in text
    assert f"warning: {path}-wal is closed to group {group}" in text
    path.parent.chmod(0o2770)
    Path(f"{path}.wakeups").chmod(0o2770)
    Path(f"{path}-wal").chmod(0o660)
    Path(f"{path}-shm").chmod(0o660)
    text = said(store)
    assert "closed to group" not in text
    assert "For other users" not in text


@pytest.mark.parametrize(("mode", "cure"), [(0o644, "600"), (0o640, "600"), (0o664, "660")])
def test_read_access_of_users_that_may_not_write(client: Client, path: Path, mode: int, cure: str) -> None:
    store = client()
    put(store, "k")
    assert "may read it" not in said(store)
    path.chmod(mode)
    text = said(store)
    assert f"warning: Users that may not write {path} may read it" in text
    assert f"chmod {cure} '{path}' '{path}'-*." in text


def test_a_directory_in_which_others_may_write(client: Client, path: Path) -> None:
    store = client()
    put(store, "k")
    path.parent.chmod(0o1777)
    assert f"can create files in {path.parent}, and so stop all users. Move it" in said(store)
    path.parent.chmod(0o777)
    assert f"can delete files in {path.parent}, and so stop all users or take any lock. Move it" in said(store)
    path.parent.chmod(0o755)
    assert "Move it" not in said(store)


def test_two_names_for_one_file(client: Client, path: Path) -> None:
    put(client(), "k")
    os.link(path, path.with_name("another.db"))
    assert f"error: {path} has 2 names" in said(client())


def test_a_damaged_file(client: Client, path: Path) -> None:
    store = client()
    for i in range(200):
        put(store, f"key {i}", "x" * 500)
    run(store.close())
    whole = path.read_bytes()
    path.write_bytes(whole[: 40 * 2048] + os.urandom(len(whole) - 40 * 2048))
    assert "error:" in said(client())
    assert "amaged" in said(client())


def test_a_store_that_cannot_be_opened(client: Client, tmp_path: Path) -> None:
    assert "error: There is no directory" in said(client(path=tmp_path / "missing" / "x.db"))


def test_a_network_file_system(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(location, "find_mount", lambda path: location.Mount("nfs4", "/mnt"))
    assert "error:" in (text := said(client()))
    assert "network file system" in text


def test_a_made_up_boot_id(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    boot = "/proc/sys/kernel/random/boot_id"
    monkeypatch.setattr(location, "find_mount", lambda path: location.Mount("tmpfs", boot if path == boot else "/"))
    assert "made-up boot id" in said(client())


def test_no_listener(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, name: str = "") -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("fairlock.stores.sqlite.listener_sockets.WakeupSockets._bind", refuse)
    assert "warning: No socket can be made beside the database (Permission denied)" in said(client())


def test_a_log_that_grows(client: Client, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = client()
    put(store, "k")
    monkeypatch.setattr(doctor, "file_size", lambda path: 100 << 20 if path.endswith("-wal") else 1)
    assert "warning: The log has grown to 100.0 MB" in said(store)


def test_a_disk_with_little_room(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    store = client()
    put(store, "k")
    assert "The disk has" not in said(store)
    monkeypatch.setattr(doctor, "free_space", lambda path: 10_000)
    assert "warning: The disk has 10 kB left. When it is full no lock can be acquired: make room there." in said(store)


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm")
def test_memory(client: Client) -> None:
    folder = Path("/dev/shm") / f"fairlock-{os.getpid()}"
    folder.mkdir()
    try:
        store = client(path=folder / "x.db")
        text = said(store)
        run(store.close())
    finally:
        shutil.rmtree(folder)
    mount = location.find_mount("/dev/shm/x")
    assert mount is None or mount.kind != "tmpfs" or "That is memory" in text

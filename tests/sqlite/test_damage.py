"""A file that is damaged, foreign, newer, gone or on a full disk: a sentence each, and it goes on where it can."""

import logging
import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fairlock
from fairlock.errors import ConfigError, StoreError
from fairlock.stores.sqlite import SqliteStore, errors
from tests.sqlite.processes import ThreadRuntime, enter, get, put, python, run, step, stop, store_at

Client = Callable[..., SqliteStore]


def test_text_is_not_a_database(path: Path) -> None:
    path.write_text("this is not a database, it is a shopping list\n" * 100)
    store = store_at(path)
    with pytest.raises(ConfigError, match=r"is damaged or not a SQLite database.*Move it away"):
        put(store, "k")
    assert path.read_text().startswith("this is not"), "nothing was written to it"
    path.unlink()
    put(store, "k")
    run(store.close())


def test_a_damaged_page_is_reported(path: Path) -> None:
    store = store_at(path)
    for i in range(200):
        put(store, f"key number {i}", "x" * 500)
    run(store.close())
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + os.urandom(len(whole) - 4096))
    with pytest.raises(ConfigError, match="is damaged or not a SQLite database"):
        for i in range(200):
            put(store_at(path), f"key number {i}")


def test_an_empty_file_becomes_a_database(client: Client, path: Path) -> None:
    path.touch()
    put(client(), "k")


def test_a_database_of_another_application_is_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as theirs:
        theirs.execute("CREATE TABLE customers (name TEXT)")
    theirs.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=r"is a database of another application. Give the locks a file of their own"):
        put(store_at(path), "k")
    assert path.read_bytes() == before


def test_a_foreign_application_id_is_refused(path: Path) -> None:
    with sqlite3.connect(path) as theirs:
        theirs.execute("PRAGMA application_id=12345")
        theirs.execute("CREATE TABLE x (y)")
    theirs.close()
    with pytest.raises(ConfigError, match=r"another application \(id 12345\)"):
        put(store_at(path), "k")


def test_a_newer_schema_is_refused_and_nothing_is_lost(client: Client, path: Path) -> None:
    store = client()
    put(store, "k", "precious")
    run(store.close())
    with sqlite3.connect(path) as newer:
        newer.execute("PRAGMA user_version=7")
    newer.close()
    with pytest.raises(ConfigError, match=r"newer fairlock \(schema 7; this one knows 1\). Upgrade"):
        put(store_at(path), "k")
    with sqlite3.connect(path) as newer:
        assert newer.execute("SELECT body FROM fairlock_locks").fetchone() == ("precious",)
    newer.close()


def test_an_upgrade_that_was_cut_short_is_made_again(client: Client, path: Path) -> None:
    """Killed between the first byte and the last table: no table is there, so the next one makes them."""
    with sqlite3.connect(path) as half:
        half.execute("PRAGMA journal_mode=WAL")
    half.close()
    put(client(), "k")


# -- gone


@pytest.mark.parametrize("gone", [["", "-wal", "-shm"], [""], ["-wal"], ["-wal", "-shm"], ["-shm"]])
def test_files_deleted_under_us_are_noticed_and_logged(
    client: Client, path: Path, caplog: pytest.LogCaptureFixture, gone: list[str]
) -> None:
    store = client()
    put(store, "k", "old")
    for end in gone:
        os.unlink(f"{path}{end}")
    store._check_at = 0.0  # 200 ms later
    with caplog.at_level(logging.WARNING, "fairlock"):
        put(store, "k", "new")
    assert "was deleted or replaced while in use" in caplog.text
    other = client()
    row = get(other, "k").row
    assert row is not None
    assert row.body == "new", "both look at the same file again"


def test_a_database_that_was_replaced_is_noticed(client: Client, path: Path) -> None:
    store = client()
    put(store, "k", "old")
    elsewhere = path.with_name("new.db")
    other = store_at(elsewhere)
    put(other, "k", "new")
    run(other.close())
    for end in ("-wal", "-shm"):  # or SQLite itself would put the old log on top of the new file
        os.unlink(f"{path}{end}")
    os.rename(elsewhere, path)
    store._check_at = 0.0
    row = get(store, "k").row
    assert row is not None
    assert row.body == "new"


def test_a_write_prepared_from_the_old_file_is_not_put_into_the_new_one(client: Client, path: Path) -> None:
    from fairlock.stores.base import Row, RowSnapshot

    store = client()
    seen = get(store, "k")
    for end in ("", "-wal", "-shm"):
        os.unlink(f"{path}{end}")
    store._check_at = 0.0
    result = run(store.write(Row("k", 1, "", "x"), seen.version, seen.now, ()))
    assert isinstance(result, RowSnapshot)
    assert result.row is None


def test_nobody_looks_at_the_files_more_often_than_every_200_ms(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = client()
    put(store, "k")
    looks: list[int] = []
    monkeypatch.setattr(store._db, "replaced", lambda: bool(looks.append(1)))
    for _ in range(50):
        store._check_at = store._clock() + 100
        put(store, "k")
    assert not looks
    store._check_at = 0.0
    put(store, "k")
    put(store, "k")
    assert len(looks) == 1


def test_a_deleted_directory_is_a_sentence(client: Client, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    store = client(path=tmp_path / "d" / "x.db")
    put(store, "k")
    shutil.rmtree(tmp_path / "d")
    store._check_at = 0.0
    with pytest.raises(ConfigError, match="There is no directory"):
        put(store, "k")
    (tmp_path / "d").mkdir()
    put(store, "k")


# -- full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True)
    if done.returncode:
        if os.environ.get("CI") == "true" and os.geteuid() == 0:
            pytest.fail(f"no small disk: {done.stderr!r}")
        pytest.skip("a small disk needs the right to mount")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def fill(disk: Path) -> None:
    filler = os.open(disk / "filler", os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(filler, b"x" * 1024)
    except OSError:
        pass
    finally:
        os.close(filler)


def test_a_full_disk_is_reported_and_the_store_continues_by_itself(small_disk: Path) -> None:
    store = store_at(small_disk / "locks.db")
    step(store, "k", enter("A", store.open_listener()))
    held = get(store, "k").row
    fill(small_disk)
    with pytest.raises(StoreError, match=r"is full. It works again by itself once there is room") as caught:
        for i in range(100):
            put(store, f"k{i}", "x" * 3000)
    assert not caught.value.refused
    assert get(store, "k").row == held, "reading goes on, and nothing is lost"
    os.unlink(small_disk / "filler")
    put(store, "again")
    assert get(store, "k").row == held
    run(store.close())


def test_a_log_does_not_fill_a_small_disk(small_disk: Path) -> None:
    """Beside an idle holder, by clients that make few writes each."""
    url = f"sqlite:///{small_disk}/locks.db"
    with fairlock.connect(url) as idle, idle.lock("idle"):
        for _ in range(60):
            with fairlock.connect(url) as locks, locks.lock("job"):
                pass
    with fairlock.connect(url) as locks, locks.lock("idle", timeout=0):
        pass


def test_on_a_full_disk_the_room_of_the_log_is_used(small_disk: Path) -> None:
    store = store_at(small_disk / "locks.db")
    put(store, "k")
    assert store._maintenance.checkpoint()
    for _ in range(20):
        put(store, "k", "x" * 100)
    fill(small_disk)
    for _ in range(200):
        put(store, "k", "x" * 100)
    run(store.close())


def test_a_disk_that_is_full_from_the_start(small_disk: Path) -> None:
    fill(small_disk)
    store = store_at(small_disk / "locks.db")
    with pytest.raises(StoreError, match=r"is full|cannot be written|cannot be opened"):
        put(store, "k")
    os.unlink(small_disk / "filler")
    put(store, "k")
    run(store.close())


def test_a_disk_that_fills_up_while_the_tables_are_made_is_named_as_full(small_disk: Path) -> None:
    """SQLite ends that transaction itself; before, the sentence was that there is none to roll back."""
    failures = []
    for size in range(4, 100, 4):
        subprocess.run(["mount", "-o", f"remount,size={size}k", small_disk], check=True)
        store = store_at(small_disk / f"{size}.db")
        try:
            put(store, "k")
        except StoreError as error:
            failures.append(str(error))
        run(store.close())
        for file in small_disk.iterdir():
            file.unlink()
    assert failures
    assert [text for text in failures if "is full" not in text and "cannot be" not in text] == []


def test_a_file_that_may_not_grow_is_a_sentence(path: Path) -> None:
    """ulimit -f: like a full disk, without the right to mount one."""
    done = python(
        """
        import resource
        from fairlock.errors import StoreError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        store = store_at(sys.argv[1])
        put(store, "k", "held")
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))
        try:
            for i in range(100):
                put(store, f"k{i}", "x" * 3000)
        except StoreError as bad:
            print(bad.refused, bad)
        print(get(store, "k").row.body)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        put(store, "again")
        print("went on")
        """,
        path,
    )
    refused, held, on = done.communicate(timeout=60)[0].splitlines()
    assert refused.startswith("False ")
    assert "works again by itself" in refused
    assert (held, on) == ("held", "went on")


def test_too_many_open_files_is_a_sentence(client: Client) -> None:
    store = client()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        while True:
            try:
                opened.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                break
        with pytest.raises(StoreError, match="too many files open"):
            put(store, "k")
    finally:
        for fd in opened:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    put(store, "k")


# -- SQLite's other codes


def error(code: int) -> sqlite3.OperationalError:
    made = sqlite3.OperationalError("something")
    made.sqlite_errorcode = code
    made.sqlite_errorname = f"SQLITE_{code}"
    return made


@pytest.mark.parametrize("code", [3, 7, 8, 8 | 4 << 8, 10, 10 | 3 << 8, 10 | 19 << 8, 11, 13, 14, 23, 26, 1, 0, 999])
def test_every_code_becomes_a_sentence_with_the_path(path: Path, code: int) -> None:
    said = errors.explain(error(code), str(path))
    assert isinstance(said, (StoreError, ConfigError))
    assert str(path) in str(said) or str(path.parent) in str(said)
    assert str(said).endswith(".")
    rights = code & 0xFF in (3, 8, 23)
    assert getattr(said, "refused", False) == rights


@pytest.mark.parametrize("code", [5, 5 | 1 << 8, 5 | 2 << 8, 6, 15])
def test_busy_is_not_an_error_but_a_reason_to_try_again(code: int) -> None:
    assert errors.is_busy(error(code))
    assert not errors.is_busy(error(13))


def test_a_stopped_writer_is_named(client: Client, path: Path) -> None:
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
    assert errors.writer(str(path)) == (other.pid, Path(f"/proc/{other.pid}/comm").read_text().strip(), False)
    stop(other.pid)
    with pytest.raises(StoreError, match=rf"process {other.pid} .* is stopped in the middle of a write.*kill -CONT"):
        put(store, "k")
    other.kill()
    other.communicate()
    put(store, "k")
    assert errors.writer(str(path)) is None


def test_a_statement_that_fails_in_an_unknown_way_opens_the_file_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(str(path), ThreadRuntime())
    put(store, "k")

    def broken(sql: str, values: object = ()) -> int:
        raise error(10)

    with monkeypatch.context() as patch:
        patch.setattr(store._db, "change", broken)
        with pytest.raises(StoreError, match="fairlock doctor"):
            put(store, "k")
    assert store._db.cursor is None
    put(store, "k")
    run(store.close())

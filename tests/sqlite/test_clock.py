"""The store's clock: steady over wall-clock steps, reboots and time namespaces."""

import json
import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fairlock.rules.checksum import unseal
from fairlock.rules.locks import EXCLUSIVE, Detach, Entry, Granted, LockState, Queued, Release, Tombstone, Why, codec
from fairlock.stores.base import Row
from fairlock.stores.sqlite import SqliteStore, clock, location
from tests.sqlite.processes import enter, get, put, python, run, step, store_at

Client = Callable[..., SqliteStore]


def time_of(store: SqliteStore) -> int:
    return get(store, "?").now


def reboot(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time since boot starts over."""
    start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    monkeypatch.setattr(clock, "nanoseconds", lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME) - start)


def set_wall_clock(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(clock.time, "time_ns", lambda: int(seconds * 1e9))


def test_all_clients_of_a_boot_agree(client: Client) -> None:
    one, two = client(), client()
    first, second, third = time_of(one), time_of(two), time_of(one)
    assert first <= second <= third < first + 10_000_000


def test_a_time_that_another_client_makes_between_two_reads_is_not_missing(path: Path) -> None:
    """Two clients open a new file: one reads that there is no time yet, then the other makes it and acquires a lock."""
    first = store_at(path)
    step(first, "x", enter("A", first.open_listener()))
    early = True

    def execute(sql: str, *values: Any) -> Any:
        nonlocal early
        if early and sql.startswith("SELECT boot"):
            early = False
            return cursor.execute(sql + " WHERE 0")
        return cursor.execute(sql, *values)

    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        cursor = database.cursor()
        ((boot, base),) = cursor.execute("SELECT boot, base FROM fairlock_meta").fetchall()
        (name,) = json.loads(unseal(boot, str(base)))
        assert clock.settle(execute, name, 0, lambda: 1, lambda: False) == base
        assert not early
        database.execute("DELETE FROM fairlock_meta")
        with pytest.raises(sqlite3.DatabaseError, match="the time is missing"):
            clock.settle(execute, name, 0, lambda: 1, lambda: False)
    run(first.close())


def test_a_step_of_the_wall_clock_changes_nothing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    first = time_of(client())
    set_wall_clock(monkeypatch, time.time() - 86400)
    assert first <= time_of(client()) < first + 10_000_000


def test_a_reboot_empties_grants_and_queues_but_not_grants_without_a_process(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = store_at(path, boot_id="aaaa")
    step(before, "job", enter("A", before.open_listener()))
    assert isinstance(step(before, "job", enter("B", before.open_listener())), Queued)
    kept = step(before, "kept", enter("C", before.open_listener()))
    assert isinstance(kept, Granted)
    step(before, "kept", Detach("C", kept.fence, 60_000_000))
    step(before, "kept", enter("D", before.open_listener()))
    step(before, "tombstone", Release("E", leave_tombstone=True))
    version = get(before, "job").version
    run(before.close())
    reboot(monkeypatch)

    after = store_at(path, boot_id="bbbb")
    row = get(after, "job").row
    assert row is not None
    job = codec.decode(row.body)
    assert (job.holders, job.queue, row.owner) == ((), (), "")
    assert get(after, "job").version != version
    seen = get(after, "kept")
    assert seen.row is not None
    record = codec.decode(seen.row.body)
    assert [e.ticket for e in record.holders] == ["C"]
    assert record.queue == ()
    assert 59_000_000 < record.holders[0].expires - seen.now <= 60_000_000, "it starts again at full length"
    assert record.holders[0].fence == kept.fence
    assert isinstance(step(after, "kept", enter("F", after.open_listener())), Queued)
    tombstone = get(after, "tombstone").row
    assert tombstone is not None
    assert [g.ticket for g in codec.decode(tombstone.body).tombstones] == ["E"]
    run(after.close())


@pytest.mark.parametrize("wall", ["right", "years behind", "years ahead"])
def test_fences_rise_over_a_reboot_whatever_the_wall_clock_is(
    path: Path, monkeypatch: pytest.MonkeyPatch, wall: str
) -> None:
    before = store_at(path, boot_id="aaaa")
    fences = []
    for name in ("x", "y", "x"):
        reply = step(before, name, enter(f"A{len(fences)}", before.open_listener()))
        assert isinstance(reply, Granted)
        fences.append(reply.fence)
        step(before, name, Release(f"A{len(fences) - 1}"))
    last = time_of(before)
    run(before.close())
    reboot(monkeypatch)
    set_wall_clock(monkeypatch, time.time() + {"right": 0, "years behind": -1e8, "years ahead": 1e8}[wall])
    after = store_at(path, boot_id="bbbb")
    for name in ("y", "never seen", "x"):
        reply = step(after, name, enter("B" + name, after.open_listener()))
        assert isinstance(reply, Granted)
        fences.append(reply.fence)
    assert fences == sorted(set(fences))
    assert time_of(after) > fences[2]
    assert time_of(after) > last - 1_000_000
    run(after.close())


def test_a_second_opener_of_the_boot_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(store_at(path, boot_id="aaaa").ping())
    first, second = store_at(path, boot_id="bbbb"), store_at(path, boot_id="bbbb")
    step(first, "job", enter("A", first.open_listener()))
    before = get(first, "job")
    assert get(second, "job")[:2] == before[:2]
    run(first.close())
    run(second.close())


def test_a_made_up_boot_id_in_a_container_empties_nothing_while_others_live(client: Client) -> None:
    """Some containers get a boot id of their own. A living listener proves that the kernel has not restarted."""
    host, container = client(boot_id="aaaa"), client(boot_id="cccc")
    step(host, "job", enter("A", host.open_listener()))
    before = get(host, "job")
    assert get(container, "job")[:2] == before[:2]
    assert abs(time_of(container) - time_of(host)) < 10_000_000
    assert isinstance(step(container, "job", enter("B", container.open_listener())), Queued)


def test_two_first_openers_of_a_boot_do_not_take_each_other_for_survivors(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = store_at(path, boot_id="aaaa")
    step(old, "job", enter("A", old.open_listener()))
    run(old.close())
    one, two = store_at(path, boot_id="bbbb"), store_at(path, boot_id="bbbb")
    for store in (one, two):  # both are bound before either opens the database
        store._db.place = location.prepare(str(path))
        assert store._listeners.open()
    row = get(one, "job").row
    assert row is not None
    assert codec.decode(row.body).holders == ()
    run(one.close())
    run(two.close())


def test_rows_that_cannot_be_read_survive_a_reboot_untouched(path: Path) -> None:
    old = store_at(path, boot_id="aaaa")
    run(old.write(Row("strange", 5_000_000_000_000_000, "", '[99,"from the future"]'), None, 0, ()))
    run(old.close())
    new = store_at(path, boot_id="bbbb")
    seen = get(new, "strange")
    assert seen.row == Row("strange", 5_000_000_000_000_000, "", '[99,"from the future"]')
    assert seen.now > 5_000_000_000_000_000, "its number counts all the same"
    run(new.close())


def test_without_a_boot_id_the_base_stays(path: Path) -> None:
    store = store_at(path, boot_id="aaaa")
    step(store, "job", enter("A", store.open_listener()))
    run(store.close())
    again = store_at(path, boot_id=clock.UNKNOWN)
    row = get(again, "job").row
    assert row is not None
    assert [e.ticket for e in codec.decode(row.body).holders] == ["A"]
    run(again.close())


def test_what_a_reboot_leaves_of_a_record() -> None:
    grant = Entry("t", 1, 5, 3, 1, "listener", "o", "n", 0, 10, 15, 10, True)
    record = LockState(
        EXCLUSIVE, True, 10, 4, 12, (grant, grant._replace(ticket="k", listener="", confirmed=False)), (grant,),
        (Tombstone("g", 20, 7, Why("left")),),
    )  # fmt: skip
    after = clock.after_boot(record, 100)
    assert after == LockState(
        EXCLUSIVE, True, 10, 4, 100, (grant._replace(ticket="k", listener="", confirmed=True, expires=105),), (),
        (Tombstone("g", 107, 7, Why("left")),),
    )  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="a time namespace needs root")
def test_a_time_namespace_that_is_a_day_ahead_agrees_about_the_time(client: Client, path: Path) -> None:
    unshare = shutil.which("unshare")
    probe = subprocess.run([unshare or "false", "--time", "--boottime", "86400", "true"], capture_output=True)
    if probe.returncode:
        pytest.skip("this kernel gives no time namespaces")
    store = client()
    put(store, "k")
    before = time_of(store)
    other = python(
        """
        store = store_at(sys.argv[1])
        print(get(store, "k").now, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000)
        """,
        path,
        before=[str(unshare), "--fork", "--time", "--boottime", "86400"],
    )
    out, _ = other.communicate(timeout=60)
    there, elapsed = map(int, out.split())
    assert elapsed > 86_400_000_000, "the namespace is really shifted"
    assert before <= there <= time_of(store)

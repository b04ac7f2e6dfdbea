"""What goes wrong at OCI's NoSQL service, on a fake of it: a sentence with the cure, and nothing lost."""

import os
import time
from pathlib import Path

import pytest

import fairlock
from fairlock import ConfigError, RecordDamaged, StoreError
from fairlock.engine.run_sync import run
from fairlock.stores.oci_nosql.row_format import table_key
from tests.machine_load import within
from tests.servers.fake_nosql import COLUMNS, FakeNosql, FakeTable
from tests.servers.nosql_sql import Column, Refused


def connect(fake: FakeNosql, table: str = "locks", **options: object) -> fairlock.Locks:
    return fairlock.connect(fake.url(table), **{"timeout": 0.5, "owner": "me", **options})


def test_a_table_that_is_not_there(fake_nosql: FakeNosql) -> None:
    with connect(fake_nosql, "nowhere") as locks, pytest.raises(ConfigError, match=r"not there.*fairlock schema") as no:
        locks.lock("x").acquire()
    assert "nowhere" in str(no.value)


def test_a_table_with_other_columns(fake_nosql: FakeNosql) -> None:
    fake_nosql.tables["people"] = FakeTable((COLUMNS[0], Column("name", "STRING"), Column("age", "NUMBER")))
    with connect(fake_nosql, "people") as locks:
        with pytest.raises(ConfigError, match=r"invalid \(400 InvalidParameter: .*'fairlock doctor'"):
            locks.lock("x").acquire()
        told = run(locks._session.backend.doctor())
    assert [level for level, _ in told] == ["ok", "error"]
    assert "key STRING, name STRING, age NUMBER" in told[1][1] and "score NUMBER NOT NULL DEFAULT 0" in told[1][1]


def test_a_table_in_which_something_else_is_kept(fake_nosql: FakeNosql) -> None:
    fake_nosql.tables["other"] = FakeTable()
    fake_nosql.tables["other"].rows["x"] = {"key": "x", "score": 1, "owner": None, "body": {"a": 1}}, "AAAA"
    with connect(fake_nosql, "other") as locks, pytest.raises(RecordDamaged, match="is damaged"):
        locks.lock("x").acquire()


SHAPES = {
    "half a score": {"score": 1.5}, "no body": {"body": None}, "text": {"body": "x"},
    "no owner and no body": {"owner": None, "body": None}, "another object": {"body": {"name": 5, "record": []}},
}  # fmt: skip


@pytest.mark.parametrize("change", SHAPES.values(), ids=SHAPES)
def test_a_row_of_another_shape_costs_one_name(fake_nosql: FakeNosql, change: dict[str, object]) -> None:
    """Also of a name that does not fit into a key, and then its row has lost the name."""
    with connect(fake_nosql) as locks:
        for bad in ("bad", "ä" * 100):
            with locks.lock("good"), locks.lock(bad) as lease:
                before = lease.fence
            fake_nosql.edit(table_key(bad), **change)
            shown = {r.name: r.kind for r in locks.snapshot(idle=True).resources}
            assert shown["good"] == "lock"
            if "body" in change:
                assert "damaged" in shown.values()
                with pytest.raises(RecordDamaged) as caught:
                    locks.lock(bad).acquire()
                assert caught.value.name == bad
                assert locks.repair(bad)
            with locks.lock(bad) as lease:
                assert lease.fence > before


def test_a_row_of_another_shape_costs_one_item(fake_nosql: FakeNosql) -> None:
    with connect(fake_nosql) as locks:
        jobs = locks.pool("jobs")
        jobs.add_many(["a", "b"])
        (key,) = [key for key in fake_nosql.tables["locks"].rows if key.endswith("a")]
        row, _ = fake_nosql.tables["locks"].rows[key]
        for change in SHAPES.values():
            fake_nosql.edit(key, **row)
            fake_nosql.edit(key, **change)
            assert [(i.key, i.state) for i in jobs.items()] == [("a", "damaged"), ("b", "free")]
            with jobs.hold(timeout=0) as item:
                assert item.key == "b"


def test_nobody_there(fake_nosql: FakeNosql) -> None:
    url = fake_nosql.url().replace(fake_nosql.endpoint, "http://127.0.0.1:9")
    with fairlock.connect(url) as locks, pytest.raises(StoreError, match=r"does not reply.*no connection"):
        locks.lock("x").acquire()


def test_no_credentials(tmp_path: Path) -> None:
    url = f"oci-nosql://eu-frankfurt-1/c/locks?config_file={tmp_path}/none"
    with fairlock.connect(url) as locks, pytest.raises(ConfigError, match="no credentials for OCI"):
        locks.lock("x").acquire()


def test_too_many_requests_are_waited_out(fake_nosql: FakeNosql) -> None:
    with connect(fake_nosql) as locks:
        fake_nosql.faults["PUT"].extend([429, 429])
        fake_nosql.faults["GET"].append(429)
        with locks.lock("x"):
            assert fake_nosql.asked["PUT"] >= 3
        assert not locks.lock("x").locked()


def test_too_many_requests_for_too_long_are_an_error(fake_nosql: FakeNosql, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlock.stores.oci_nosql.table_requests.RETRY_FOR", 0.1)
    with connect(fake_nosql) as locks:
        fake_nosql.faults["GET"].extend([429] * 50)
        with pytest.raises(StoreError, match=r"refuses requests.*units"):
            locks.lock("x").acquire()
        fake_nosql.heal()
        assert locks.lock("x").acquire()


@pytest.mark.parametrize("fault", ["lost", 500, 503])
def test_a_write_without_a_reply_is_repeated(fake_nosql: FakeNosql, fault: int | str) -> None:
    """The write may or may not have been done: there is one holder, once, and it leaves nothing behind."""
    with connect(fake_nosql) as locks, connect(fake_nosql) as others:
        fake_nosql.faults["PUT"].append(fault)
        lease = locks.lock("x").acquire(timeout=5)
        assert lease is not None
        assert others.lock("x").acquire(blocking=False) is None
        fake_nosql.faults["PUT"].append(fault)
        lease.release()
        with others.lock("x").hold(timeout=5) as next_one:
            assert next_one.fence > lease.fence
        assert not others.snapshot("x").resources[0].holders


def test_a_write_that_arrives_late_grants_nothing(fake_nosql: FakeNosql) -> None:
    with connect(fake_nosql, timeout=0.2) as locks, connect(fake_nosql) as others:
        others.lock("x").acquire().release()  # there is a row
        fake_nosql.faults["PUT"].append("late")
        lease = locks.lock("x").acquire(timeout=5)
        assert lease is not None
        lease.release()
        time.sleep(0.4)  # now it has arrived, with an etag of long ago
        assert others.lock("x").acquire(blocking=False) is not None


def test_a_read_that_fails_is_told_and_nothing_is_held(fake_nosql: FakeNosql) -> None:
    with connect(fake_nosql) as locks:
        fake_nosql.faults["GET"].append(500)
        with pytest.raises(StoreError, match="fault of its own"):
            locks.lock("x").acquire()
        assert locks.lock("x").acquire(blocking=False)


def test_a_fault_of_the_service_hides_its_internals(fake_nosql: FakeNosql) -> None:
    """The store behind it is down: the service reports that after a while, with a paragraph about its own nodes."""
    fake_nosql.store_down = 0.05
    with connect(fake_nosql) as locks:
        for action in (lambda: locks.lock("x").acquire(), locks.snapshot, lambda: locks.pool("jobs").add("a")):
            with pytest.raises(StoreError, match="500 InternalServerError") as no:
                action()
            assert "oracle." not in str(no.value) and "10.0" not in str(no.value)
        fake_nosql.store_down = None
        assert locks.lock("x").acquire(blocking=False)


@pytest.mark.parametrize(
    ("code", "kind", "cure"),
    [("KeySizeLimitExceeded", ConfigError, "choose a shorter name"),
     ("RowSizeLimitExceeded", StoreError, "let fewer clients wait"),
     ("RequestSizeLimitExceeded", StoreError, "keep less in the body"),
     ("SizeLimitExceeded", StoreError, "more storage"),
     ("CannotParseRequest", ConfigError, "fairlock doctor"),
     ("InvalidParameter", ConfigError, "fairlock doctor")],
)  # fmt: skip
def test_a_refusal_of_the_service_is_reported_by_its_code(
    fake_nosql: FakeNosql, code: str, kind: type[Exception], cure: str
) -> None:
    with connect(fake_nosql) as locks:
        locks.ping()
        fake_nosql.faults["PUT"].extend([Refused(400, code, "what it is\nand more")] * 2)
        with pytest.raises(kind, match=f"{code}.*{cure}") as no:
            locks.lock("x").acquire()
        assert "and more" not in str(no.value)


def test_a_table_that_was_there_and_is_gone_is_told_at_once(fake_nosql: FakeNosql) -> None:
    with connect(fake_nosql) as locks:
        locks.ping()
        del fake_nosql.tables["locks"]
        begun = time.monotonic()
        with pytest.raises(ConfigError, match="not there"):
            locks.lock("x").acquire()
        assert time.monotonic() - begun < within(0.9, below=4)


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [(401, StoreError, "refuses these credentials .* prints the rights"),
     (403, StoreError, "refuses these credentials .* prints the rights"),
     (404, ConfigError, "not there, or may not be seen .* which rights it takes"),
     (400, ConfigError, "refuses a request as invalid .400 InvalidParameter: no")],
)  # fmt: skip
def test_a_right_that_is_taken_away_and_given_back_loses_nothing(
    fake_nosql: FakeNosql, status: int, kind: type[Exception], said: str
) -> None:
    """The same is true of a table; the service itself distinguishes the two only in part."""
    with connect(fake_nosql) as locks:
        lease = locks.lock("x").acquire()
        locks.pool("jobs").add("a")
        item = locks.pool("jobs").acquire(blocking=False)
        assert lease is not None and item is not None
        fake_nosql.faults["PUT"].extend([status] * 99)  # also for the keeper, who goes on trying
        for action in (lease.renew, lease.release, item.done):
            with pytest.raises(kind, match=said):
                action()
        fake_nosql.heal()
        assert not lease.lost and not item.lost
        item.done()
        lease.release()
        assert locks.pool("jobs").counts().done == 1
        assert locks.lock("x").acquire(blocking=False)


def test_a_service_that_hangs_is_no_hanging_client(fake_nosql: FakeNosql) -> None:
    with connect(fake_nosql, timeout=0.3) as locks:
        fake_nosql.faults["GET"].append("hang")
        begun = time.monotonic()
        with pytest.raises(StoreError, match="no reply in time"):
            locks.lock("x").acquire()
        assert time.monotonic() - begun < 10


def test_no_entry_is_dropped_by_an_estimated_time(fake_nosql: FakeNosql) -> None:
    """The clock goes back by a minute: what was guessed from the last answer is ahead now, and drops nobody."""
    with connect(fake_nosql, lease=5) as locks, connect(fake_nosql) as others:
        others.lock("x").acquire().release()
        lease = locks.lock("x").acquire()
        backend = others._session.backend
        backend.store.clock._server._last = (int(time.time() * 1e6) + 60_000_000, *[backend.runtime.clock()] * 2)
        assert others.lock("x").acquire(blocking=False) is None
        assert lease is not None
        lease.renew()
        lease.release()


def test_a_forked_child_makes_connections_of_its_own(fake_nosql: FakeNosql) -> None:
    with connect(fake_nosql) as locks, locks.lock("x"):
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if locks.lock("x").acquire(blocking=False) is None else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0


def test_the_columns_are_those_of_the_schema() -> None:
    from fairlock.stores.oci_nosql import table_requests

    assert all(f"{column.name} {column.type}" in table_requests.COLUMNS for column in COLUMNS)

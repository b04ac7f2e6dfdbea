"""Locks in a table of OCI's NoSQL service, on a fake of it: what a cycle costs, clients of one's own, the tool."""

import asyncio
import json
import subprocess
import sys
import time
from typing import Any

import pytest

import fairlock
from fairlock import ConfigError, aio
from fairlock.engine.run_sync import run
from fairlock.rules.locks import Granted, Renew
from fairlock.stores.base import OutcomeUnknown
from tests.engine.test_renewals_in_batches import hold
from tests.servers.fake_nosql import FakeNosql


@pytest.mark.parametrize("delay", [0.0, 0.05])
def test_a_cycle_is_two_puts_however_slow_the_network_is(fake_nosql: FakeNosql, delay: float) -> None:
    """From another region a reply takes 50 ms, or 200."""
    fake_nosql.delay = delay
    with fairlock.connect(fake_nosql.url()) as locks:
        lock = locks.lock("x")
        with lock:
            pass
        fake_nosql.asked.clear()
        for _ in range(5):
            with lock:
                pass
        assert fake_nosql.asked == {"PUT": 10}


def test_a_table_by_its_ocid_is_looked_up_once(fake_nosql: FakeNosql) -> None:
    ocid = fake_nosql.ocid("locks")
    with fairlock.connect(fake_nosql.url(ocid)) as locks, fairlock.connect(fake_nosql.client(), table=ocid) as others:
        with locks.lock("x"):
            assert others.lock("x").acquire(blocking=False) is None
        assert [each.name for each in others.snapshot(idle=True).resources] == ["x"]
        locks.pool("jobs").add("a")
        assert fake_nosql.asked["get_table"] == 2, "one for each client"
    assert "x" in fake_nosql.tables["locks"].rows


def test_names_with_separators_come_back_intact(fake_nosql: FakeNosql) -> None:
    """A namespace and a pool are kept with a control character in their keys, which the service sends raw."""
    with fairlock.connect(fake_nosql.url(), namespace="prod") as locks:
        with locks.lock("x"):
            assert [each.name for each in locks.snapshot().resources] == ["x"]
        locks.pool("jobs").add("a", {"n": "\x01"})
        item = locks.pool("jobs").acquire(blocking=False)
        assert item is not None and (item.key, item.body) == ("a", {"n": "\x01"})


def test_a_new_table_is_used_by_what_schema_prints(fake_nosql: FakeNosql) -> None:
    """And at once, although the service does not find it for a moment."""
    from oci.nosql.models import CreateTableDetails, TableLimits

    with fairlock.connect(fake_nosql.url("fresh")) as locks:
        ddl, _, rights = locks._session.backend.schema().partition("\n\n")
        assert "INDEX" not in ddl and "nosql-rows" in rights
        limits = TableLimits(max_read_units=50, max_write_units=50, max_storage_in_g_bs=1)
        details = {"name": "fresh", "compartment_id": fake_nosql.compartment, "table_limits": limits}
        fake_nosql.client().create_table(CreateTableDetails(ddl_statement=ddl, **details))
        with locks.lock("x"):
            assert "x" in fake_nosql.tables["fresh"].rows


def test_one_row_tells_who_holds_it(fake_nosql: FakeNosql) -> None:
    with fairlock.connect(fake_nosql.url(), owner="web-3") as locks, locks.lock("orders") as lease:
        row, _ = fake_nosql.tables["locks"].rows["orders"]
        assert row["owner"] == "web-3"
        assert lease.fence <= row["score"] < lease.fence + 100  # the last fence of those reserved for this client
        assert isinstance(row["body"], list)


def test_somebody_elses_client_is_used_without_its_retries(fake_nosql: FakeNosql) -> None:
    """And its circuit breaker stays shut for us, whatever it does for others."""
    client = fake_nosql.client()
    with fairlock.connect(client, table="locks", compartment=fake_nosql.compartment) as locks:
        fake_nosql.faults["PUT"].extend([429] * 4)
        with locks.lock("x"):
            ours = locks._session.backend.store.table._client  # type: ignore[attr-defined]
            assert type(ours.retry_strategy).__name__ == "NoneRetryStrategy"
            assert ours.base_client.circuit_breaker_name is None
            assert ours is not client


@pytest.mark.parametrize(
    "options, said",
    [({}, "name one"), ({"table": "my-locks"}, "letters, digits and _"), ({"table": "t", "timeout": 0}, "timeout"),
     ({"table": "t", "runtime": "red"}, "not an option")],
)  # fmt: skip
def test_what_makes_no_sense_is_said_at_once(fake_nosql: FakeNosql, options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        fairlock.connect(fake_nosql.client(), **options)


def test_a_worker_alone_does_not_search_for_each_item(fake_nosql: FakeNosql) -> None:
    """All that is due comes with one search, and is remembered for a while."""
    with fairlock.connect(fake_nosql.url()) as locks:
        pool = locks.pool("jobs")
        pool.add_many([(f"{number:02}", None) for number in range(40)])
        locks.ping()
        fake_nosql.asked.clear()
        for number in range(40):
            item = pool.acquire(blocking=False)
            assert item is not None and item.key == f"{number:02}"
        assert fake_nosql.asked["POST"] <= 4, "one search, two pages, and one more if the machine is slow"


@pytest.mark.parametrize(
    "url", ["oci-nosql://", "oci-nosql://region/locks", "oci-nosql://me:secret@region/c/locks", "oci-nosql://region//locks"]
)
def test_a_url_that_cannot_be_read_is_told_without_its_secrets(url: str) -> None:
    with pytest.raises(ConfigError, match="oci-nosql://REGION/COMPARTMENT/TABLE") as no:
        fairlock.connect(url)
    assert "secret" not in str(no.value)


def test_items_come_in_the_order_of_adding(fake_nosql: FakeNosql) -> None:
    fake_nosql.page_size = 2  # however many pages it takes
    with fairlock.connect(fake_nosql.url()) as locks:
        pool = locks.pool("jobs")
        assert pool.add_many([(key, None) for key in "cabde"]) == 5
        assert [item.key for item in iter(lambda: pool.acquire(blocking=False), None)] == list("cabde")
        assert pool.counts().taken == 5


def test_an_added_item_of_which_the_answer_was_lost_is_new(fake_nosql: FakeNosql) -> None:
    with fairlock.connect(fake_nosql.url()) as locks:
        locks.ping()
        fake_nosql.faults["PUT"].append("lost")
        assert locks.pool("jobs").add("a") is True
        assert locks.pool("jobs").add("a") is False


def test_the_tool_works_by_its_url_alone(fake_nosql: FakeNosql) -> None:
    def tool(*args: str) -> "subprocess.CompletedProcess[str]":
        words = [sys.executable, "-m", "fairlock", "-u", fake_nosql.url(), *args]
        return subprocess.run(words, capture_output=True, text=True, timeout=60)

    assert tool("run", "x", "--", "echo", "in").stdout == "in\n"
    assert "x" in tool("ls", "--all").stdout + tool("ls").stdout
    doctor = tool("doctor", "--json")
    assert doctor.returncode == 0, doctor.stderr
    assert {check["level"] for check in json.loads(doctor.stdout)["checks"]} <= {"ok", "note"}
    assert "index" not in doctor.stdout
    assert "CREATE TABLE" in tool("schema").stdout
    assert tool("pool", "add", "jobs", "one").returncode == 0
    assert tool("pool", "run", "jobs", "-c", "echo $FAIRLOCK_ITEM").stdout == "one\n"
    assert "1 done" in tool("pool", "ls", "jobs").stdout


@pytest.mark.parametrize("face", ["threads", "tasks"])
def test_renewals_are_sent_eight_at_a_time(face: str, fake_nosql: FakeNosql) -> None:
    async def work(backend: Any) -> None:
        calls = [(f"o{n}", Renew(f"t{n}", await hold(backend, f"o{n}", f"t{n}"))) for n in range(8)]
        fake_nosql.asked.clear()
        fake_nosql.delay, began = 0.25, time.monotonic()
        outcomes = await backend.call_many(calls)
        took, fake_nosql.delay = time.monotonic() - began, 0.0
        assert all(isinstance(outcome.reply, Granted) for outcome in outcomes)
        assert fake_nosql.asked == {"GET": 8, "PUT": 8}
        assert took < 2.5, "one after the other they take four seconds"

    if face == "threads":
        with fairlock.connect(fake_nosql.url()) as locks:
            run(work(locks._session.backend))
        return

    async def main() -> None:
        async with aio.connect(fake_nosql.url()) as locks:
            await work(locks._session.backend)

    asyncio.run(main())


def test_a_request_that_fails_costs_no_other_renewal(fake_nosql: FakeNosql, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cannot be read, and the reply to the write of another is lost."""

    async def work(backend: Any) -> None:
        calls = [(f"f{n}", Renew(f"t{n}", await hold(backend, f"f{n}", f"t{n}"))) for n in range(8)]
        get, put = backend.store._get, backend.store.table.put

        async def read(key: str) -> Any:
            if key == "f2":
                raise fairlock.StoreError("because a test wants it so")
            return await get(key)

        async def write(value: Any, etag: Any) -> Any:
            done = await put(value, etag)
            if value["key"] == "f5":
                raise OutcomeUnknown("lost, because a test wants it so")
            return done

        with monkeypatch.context() as patch:
            patch.setattr(backend.store, "_get", read)
            patch.setattr(backend.store.table, "put", write)
            outcomes = await backend.call_many(calls)
        assert isinstance(outcomes.pop(5), OutcomeUnknown)
        assert isinstance(outcomes.pop(2), fairlock.StoreError)
        assert all(isinstance(outcome.reply, Granted) for outcome in outcomes)
        again = await backend.call_many(calls)
        assert all(isinstance(outcome.reply, Granted) for outcome in again)

    with fairlock.connect(fake_nosql.url()) as locks:
        run(work(locks._session.backend))

"""Locks in a table of OCI's NoSQL service, on a fake of it: what a cycle costs, clients of one's own, the tool."""

import json
import subprocess
import sys

import pytest

import holdfast
from holdfast import ConfigError
from tests.servers.fake_nosql import FakeNosql, FakeTable


def test_a_cycle_that_nobody_disturbs_is_two_puts(fake_nosql: FakeNosql, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.backends.oci_nosql.clock.VAGUE", 60.0)  # or, on a busy machine, it asks for the time
    with holdfast.connect(fake_nosql.url()) as locks:
        lock = locks.lock("x")
        with lock:
            pass
        fake_nosql.asked.clear()
        for _ in range(5):
            with lock:
                pass
        assert fake_nosql.asked == {"PUT": 10}


def test_one_row_tells_who_holds_it(fake_nosql: FakeNosql) -> None:
    with holdfast.connect(fake_nosql.url(), owner="web-3") as locks, locks.lock("orders") as lease:
        row, _ = fake_nosql.tables["locks"].rows["orders"]
        assert row["owner"] == "web-3"
        assert lease.fence <= row["score"] < lease.fence + 100  # the last fence of those reserved for this client
        assert isinstance(row["body"], list)


def test_somebody_elses_client_is_used_without_its_retries(fake_nosql: FakeNosql) -> None:
    """And its circuit breaker stays shut for us, whatever it does for others."""
    client = fake_nosql.client()
    with holdfast.connect(client, table="locks", compartment=fake_nosql.compartment) as locks:
        fake_nosql.faults["PUT"].extend([429] * 4)
        with locks.lock("x"):
            ours = locks._desk.backend.store.table._client  # type: ignore[attr-defined]
            assert type(ours.retry_strategy).__name__ == "NoneRetryStrategy"
            assert ours.base_client.circuit_breaker_name is None
            assert ours is not client


@pytest.mark.parametrize(
    "options, said",
    [({}, "say which"), ({"table": "t", "colour": "red"}, "not an option"), ({"table": "t", "timeout": 0}, "timeout")],
)
def test_what_makes_no_sense_is_said_at_once(fake_nosql: FakeNosql, options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        holdfast.connect(fake_nosql.client(), **options)


@pytest.mark.parametrize(
    "url", ["oci-nosql://", "oci-nosql://region/locks", "oci-nosql://me:secret@region/c/locks", "oci-nosql://region//locks"]
)
def test_a_url_that_cannot_be_read_is_told_without_its_secrets(url: str) -> None:
    with pytest.raises(ConfigError, match="oci-nosql://REGION/COMPARTMENT/TABLE") as no:
        holdfast.connect(url)
    assert "secret" not in str(no.value)


@pytest.mark.parametrize("indexed", [False, True])
def test_items_come_in_order_with_an_index_and_without(fake_nosql: FakeNosql, indexed: bool) -> None:
    fake_nosql.tables["locks"] = FakeTable(indexed=indexed)
    fake_nosql.page_size = 2  # and however many pages it takes
    with holdfast.connect(fake_nosql.url()) as locks:
        pool = locks.pool("jobs")
        assert pool.add_many([(key, None) for key in "cabde"]) == 5
        assert [item.key for item in iter(lambda: pool.acquire(blocking=False), None)] == list("cabde")
        assert pool.counts().taken == 5


def test_an_added_item_of_which_the_answer_was_lost_is_new(fake_nosql: FakeNosql) -> None:
    with holdfast.connect(fake_nosql.url()) as locks:
        locks.ping()
        fake_nosql.faults["PUT"].append("lost")
        assert locks.pool("jobs").add("a") is True
        assert locks.pool("jobs").add("a") is False


def test_the_tool_works_by_its_url_alone(fake_nosql: FakeNosql) -> None:
    def tool(*args: str) -> "subprocess.CompletedProcess[str]":
        words = [sys.executable, "-m", "holdfast", "-u", fake_nosql.url(), *args]
        return subprocess.run(words, capture_output=True, text=True, timeout=60)

    assert tool("run", "x", "--", "echo", "in").stdout == "in\n"
    assert "x" in tool("ls", "--all").stdout + tool("ls").stdout
    doctor = tool("doctor", "--json")
    assert doctor.returncode == 0, doctor.stderr
    assert {check["level"] for check in json.loads(doctor.stdout)["checks"]} <= {"ok", "note"}
    assert "CREATE TABLE" in tool("schema").stdout
    assert tool("pool", "add", "jobs", "one").returncode == 0
    assert tool("pool", "run", "jobs", "-c", "echo $HOLDFAST_ITEM").stdout == "one\n"
    assert "1 done" in tool("pool", "ls", "jobs").stdout

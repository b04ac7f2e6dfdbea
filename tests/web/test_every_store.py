"""`ls`, `show`, `top` and the page work with every store of the contract by its URL alone, here in this process."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fairlock
from fairlock.cli import main
from fairlock.web.event_journal_file import Journal
from fairlock.web.snapshot_poller import Poller, Reader
from tests.contract.conftest import STORES

FIXTURES = {
    "redis": "redis_alone", "oci_nosql": "fake_nosql", "sqlite": "", "valkey": "valkey",
    "redis_sentinel": "redis_sentinel", "redis_cluster": "redis_cluster", "cassandra": "cassandra",
    "postgresql": "postgresql", "pgbouncer": "pgbouncer", "mariadb": "mariadb", "oracle": "oracle",
}  # fmt: skip
NOT_BY_A_URL = {"memory", "cas", "sqlite_in_real_time"}  # of one process, or there already


@pytest.fixture(params=FIXTURES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/locks.db"
    server: Any = request.getfixturevalue(FIXTURES[request.param])
    found: str = server.url() if callable(server.url) else server.url
    return found


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The tool turns warnings off: afterwards this process is as it was."""
    with warnings.catch_warnings():
        yield


def test_no_store_is_forgotten() -> None:
    assert set(STORES) - NOT_BY_A_URL == set(FIXTURES)


def test_a_hold_a_pool_and_a_waiter_are_seen_by_the_url_alone(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    def tool(*words: str) -> Any:
        assert main(["-u", url, "--json", *words]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    with fairlock.connect(url, owner="web-3") as locks:
        with locks.lock("used"):
            pass
        locks.pool("jobs").add_many(["a", "b"])
        item = locks.pool("jobs").acquire(key="a")
        with locks.lock("orders", note="ship"):
            locks.snapshot()  # from here on all see it, on Redis, too
            for words in (("ls",), ("top", "--once")):
                found = {one["name"]: one for one in tool(*words)["resources"]}
                assert found.keys() == {"orders", "jobs"}, words
                assert (found["orders"]["kind"], found["orders"]["holders"][0]["owner"]) == ("lock", "web-3")
                assert (found["jobs"]["kind"], found["jobs"]["holders"][0]["item"]) == ("pool", "a")
                assert found["jobs"]["items"]["free"] == 1
            assert [one["holders"][0]["note"] for one in tool("show", "orders")["resources"]] == ["ship"]
            assert [one["kind"] for one in tool("show", "jobs")["resources"]] == ["pool"]
            assert [(one["kind"], one["items"]["taken"]) for one in tool("ls", "jobs")["resources"]] == [("pool", 1)]
            assert {one["name"] for one in tool("ls", "--all")["resources"]} == {"orders", "jobs", "used"}
            assert [one["name"] for one in tool("pool", "ls")["pools"]] == ["jobs"]
            state = asyncio.run(what_the_page_gets(locks))
            assert {row["name"]: row["held"] for row in state["rows"]} == {"jobs": 1, "orders": 1}
            assert state["figures"]["held"] == 2
        assert item is not None
        item.release()
        assert tool("ls")["resources"] == []


async def what_the_page_gets(locks: fairlock.Locks) -> Any:
    journal = Journal(None)
    poller = Poller(locks, journal)
    await poller._look()
    _, state = await poller.state_since(Reader())
    journal.close()
    return json.loads(state)

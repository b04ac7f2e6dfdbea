"""Processes are killed while they use OCI NoSQL, a fake of it: others go on when a lease has ended."""

from pathlib import Path

from tests.kill_helpers import a_holder_and_a_waiter_are_killed
from tests.servers.fake_nosql import FakeNosql
from tests.sqlite.test_drain import drain


def test_a_holder_and_a_waiter_are_killed(fake_nosql: FakeNosql) -> None:
    a_holder_and_a_waiter_are_killed(fake_nosql.url())


def test_a_pool_is_drained_although_workers_are_killed(fake_nosql: FakeNosql, tmp_path: Path) -> None:
    found = drain(fake_nosql.url(), tmp_path / "log", items=24, workers=3, kills=2, lease=2.0, seconds=60)
    print(found)
    assert found["killed"] >= 1

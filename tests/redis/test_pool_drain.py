"""The drain of tests/sqlite/test_drain.py on Redis: each item is done once by fence, none is lost or stuck."""

from pathlib import Path

import pytest

from tests.servers.server import Server
from tests.sqlite.test_drain import drain


@pytest.mark.timeout(100)
def test_a_pool_on_redis_is_drained_although_workers_are_killed(redis_alone: Server, tmp_path: Path) -> None:
    found = drain(redis_alone.url, tmp_path / "log", items=300, workers=4, kills=6, lease=1.0, seconds=40)
    print(found)
    assert found["killed"] >= 1
    assert found["stuck"] < 1.0, "nobody took over for longer than a second what had expired"


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_sixteen_processes_drain_five_thousand_items_on_redis(redis_alone: Server, tmp_path: Path) -> None:
    found = drain(redis_alone.url, tmp_path / "log", items=5_000, workers=16, kills=60, lease=2.0, seconds=150)
    print(found)
    assert found["killed"] >= 20
    assert found["stuck"] < 1.0

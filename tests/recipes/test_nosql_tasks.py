"""NoSQLTasks, on a fake of OCI's NoSQL service: the API, what is in the table, lost answers, and the example it is
known by, with its times divided by ten."""

import re
import sys
import threading
import time
from types import ModuleType
from typing import Any

import pytest

from fairlock import ConfigError, StoreError
from fairlock.recipes import NoSQLTasks
from tests.servers.fake_nosql import FakeNosql, FakeTable


@pytest.fixture
def fake(fake_nosql: FakeNosql) -> FakeNosql:
    fake_nosql.tables["tasks"] = FakeTable(compartment=fake_nosql.tenancy)  # where a name alone is looked for
    return fake_nosql


@pytest.fixture
def tasks(fake: FakeNosql) -> NoSQLTasks:
    return NoSQLTasks(client=fake.client(), table_name_or_id="tasks", owner="me", timeout_seconds=0.5)


def row(fake: FakeNosql, key: str) -> dict[str, Any]:
    return fake.tables["tasks"].rows[key][0]


def test_one_that_exists_is_not_made_again(tasks: NoSQLTasks, fake: FakeNosql) -> None:
    assert tasks.create("a", body={"n": 1})
    assert not tasks.create("a", body={"n": 2})
    assert row(fake, "a") == {"key": "a", "score": 0, "owner": "me", "body": {"n": 1}}
    assert list(fake.tables["tasks"].rows) == ["a"]  # and nothing else is in the table


def test_what_is_taken_is_a_name_and_its_etag(tasks: NoSQLTasks, fake: FakeNosql) -> None:
    tasks.create("a", body=[1])
    before = time.time() * 1e6
    mutex = tasks.acquire()
    assert mutex == ("a", fake.tables["tasks"].rows["a"][1])
    assert before - 2000 <= row(fake, "a")["score"] <= time.time() * 1e6 + 1000
    assert row(fake, "a")["body"] == [1]
    assert tasks.acquire() is None
    assert tasks.acquire(lock_id="a") is None
    assert tasks.acquire(lock_id="b") is None


def test_an_update_keeps_it_and_what_is_not_said_stays(tasks: NoSQLTasks, fake: FakeNosql) -> None:
    tasks.create("a", body="x")
    first = tasks.acquire(owner="her")
    time.sleep(0.3)
    second = tasks.update(first)
    assert second is not None and first is not None and second[1] != first[1]
    assert tasks.update(first) is None  # that etag is of long ago
    time.sleep(0.3)
    assert tasks.acquire() is None
    third = tasks.update(second, body="y")
    assert (row(fake, "a")["owner"], row(fake, "a")["body"]) == ("me", "y")
    assert tasks.release(third, owner="nobody") is not None
    assert row(fake, "a") == {"key": "a", "score": -1, "owner": "nobody", "body": "y"}


def test_an_expired_one_may_be_updated_until_another_client_acquires_it(tasks: NoSQLTasks) -> None:
    tasks.create("a")
    mutex = tasks.acquire()
    time.sleep(0.6)
    mutex = tasks.update(mutex)
    assert mutex is not None
    time.sleep(0.6)
    assert tasks.acquire() is not None
    assert tasks.update(mutex) is None
    assert tasks.release(mutex) is None


def test_a_released_one_is_found_by_its_name_only(tasks: NoSQLTasks) -> None:
    tasks.create("a")
    assert tasks.release(tasks.acquire())
    assert tasks.acquire() is None
    assert tasks.acquire(lock_id="a") is not None


def test_nothing_stays_nothing(tasks: NoSQLTasks) -> None:
    assert tasks.update(None) is None
    assert tasks.release(None) is None
    assert tasks.read("a") is None


def test_who_waits_gets_what_is_made_meanwhile_and_does_not_spin(tasks: NoSQLTasks, fake: FakeNosql) -> None:
    timer = threading.Timer(0.3, tasks.create, ("a",))
    timer.start()
    asked = sum(fake.asked.values())
    assert tasks.acquire(timeout=10, lock_id="a") is not None
    assert sum(fake.asked.values()) - asked < 20
    timer.join()


def test_ten_who_take_any_get_ten_different_ones(tasks: NoSQLTasks, fake: FakeNosql) -> None:
    for number in range(10):
        tasks.create(str(number))
    got: list[Any] = []
    takers = [threading.Thread(target=lambda: got.append(tasks.acquire(timeout=5))) for _ in range(10)]
    tasks.timeout_seconds = 60
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join()
    assert {mutex[0] for mutex in got} == {str(number) for number in range(10)}


def test_the_one_that_was_left_alone_for_longest_is_taken_first(fake: FakeNosql) -> None:
    """The service cannot sort, and shows them by partition: however many there are, all are compared."""
    tasks = NoSQLTasks(client=fake.client(), table_name_or_id="tasks", timeout_seconds=60)
    fake.page_size = 3
    names = [f"{number:02}" for number in range(20)]
    for number, name in enumerate(names):
        tasks.create(name)
        fake.tables["tasks"].rows[name][0]["score"] = number + 1
    assert [mutex[0] for _ in names if (mutex := tasks.acquire()) is not None] == names


def test_a_table_by_its_ocid_is_looked_up_once(fake: FakeNosql) -> None:
    for table in (fake.ocid("locks"), "LOCKS"):
        fake.asked.clear()
        place = {} if table.startswith("ocid1.") else {"compartment_id": fake.compartment}
        tasks = NoSQLTasks(client=fake.client(), table_name_or_id=table, owner="me", **place)
        assert tasks.create(table)
        mutex = tasks.acquire()
        assert mutex is not None and mutex[0] == table
        assert tasks.release(tasks.update(mutex)) is not None
        assert fake.asked["get_table"] == (not place)


def test_a_name_that_is_too_long_is_a_sentence(tasks: NoSQLTasks) -> None:
    assert tasks.create("k" * 64)
    for use in (tasks.create, tasks.read, lambda name: tasks.acquire(lock_id=name)):
        with pytest.raises(ConfigError, match="at most 64 bytes"):
            use("k" * 65)


@pytest.mark.parametrize("fault", ["lost", 500])
def test_a_write_with_a_lost_reply_is_found_again(tasks: NoSQLTasks, fake: FakeNosql, fault: int | str) -> None:
    fake.faults["PUT"].append(fault)
    assert tasks.create("a", body=(1, {2: (3,)}))
    fake.faults["PUT"].append(fault)
    mutex = tasks.acquire()
    assert mutex is not None
    fake.faults["PUT"].append(fault)
    mutex = tasks.update(mutex)
    assert mutex is not None
    fake.faults["PUT"].append(fault)
    assert tasks.release(mutex) is not None
    assert row(fake, "a")["score"] == -1
    assert row(fake, "a")["body"] == [1, {"2": [3]}]


def test_what_goes_wrong_is_a_sentence(fake: FakeNosql) -> None:
    with pytest.raises(ConfigError, match="more than 0"):
        NoSQLTasks(client=fake.client(), table_name_or_id="tasks", timeout_seconds=0)
    with pytest.raises(ConfigError, match="NosqlClient"):
        NoSQLTasks(client=object(), table_name_or_id="tasks")
    with pytest.raises(ConfigError, match="not there"):
        NoSQLTasks(client=fake.client(), table_name_or_id="nowhere").acquire()
    tasks = NoSQLTasks(client=fake.client(), table_name_or_id="tasks")
    for body in (object(), float("nan"), {1, 2}):
        with pytest.raises(ConfigError, match="body is JSON"):
            tasks.create("a", body=body)
    fake.faults["PUT"].extend([500] * 9)
    with pytest.raises(StoreError, match="may or may not have been written"):
        tasks.create("a")


EXAMPLE = """
import oci
from uuid import uuid4
from time import sleep
from threading import Thread
from mutex import NoSQLTasks

config = oci.config.from_file("~/.oci/config")
nosql = oci.nosql.NosqlClient(config=config)
nosql_table = nosql.get_table(table_name_or_id='ocid1.nosqltable.oc1.eu-frankfurt-1.amaaaa....')

owner = str(uuid4())
tasks = NoSQLTasks(client=nosql, table_name_or_id=nosql_table.data.id, owner=owner)

mutex_name = str(uuid4())

def func1():
  # Let thread t3 enter blocking acquire()
  sleep(10)
  # Create named mutex mutex_name
  _ok = tasks.create(mutex_name)

def func2():
  # Let thread t3 acquire mutex_name mutex
  sleep(20)
  # blocking (120s) call to acquire any available mutex
  # mutex_name becomes available timeout_seconds (60s) after last update/acquire
  _mutex = tasks.acquire(timeout=60)
  sleep(10)
  _mutex = tasks.release(_mutex)

def func3():
  # blocking (30s) call to acquire named mutex mutex_name
  _mutex = tasks.acquire(timeout=30, lock_id=mutex_name)
  sleep(10)
  _mutex = tasks.update(_mutex)
  # mutex mutex_name expires after timeout_seconds (60s) since last update/acquire

t1=Thread(target=func1)
t2=Thread(target=func2)
t3=Thread(target=func3)
t1.start()
t2.start()
t3.start()
t1.join()
t2.join()
t3.join()
"""


@pytest.mark.parametrize("speed", [10, pytest.param(1, marks=pytest.mark.soak)])
def test_the_example_runs_as_written(fake: FakeNosql, monkeypatch: pytest.MonkeyPatch, speed: int) -> None:
    """But for the import line, the endpoint and the key; and every day ten times as fast."""
    text = EXAMPLE.replace("~/.oci/config", str(fake.config)).replace("config=config", "config=config, **here")
    text = re.sub(r"(sleep\(|timeout=)(\d+)", lambda found: f"{found[1]}{int(found[2]) / speed}", text)
    fake.tables["mutexes"] = FakeTable(ocid="ocid1.nosqltable.oc1.eu-frankfurt-1.amaaaa....")
    faster = ModuleType("mutex")
    told: list[Any] = []

    class Watched(NoSQLTasks):
        def __init__(self, **how: Any) -> None:
            super().__init__(**how, timeout_seconds=60 / speed)

        def update(self, *args: Any, **how: Any) -> Any:
            told.append(super().update(*args, **how))
            return told[-1]

    faster.NoSQLTasks = Watched  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mutex", faster)
    failed: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    exec(text, {"here": {"service_endpoint": fake.endpoint}})
    assert failed == []
    assert len(told) == 1 and told[0] is not None
    ((made, _),) = fake.tables["mutexes"].rows.values()
    assert made["score"] != 0

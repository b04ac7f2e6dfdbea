"""An item that a worker has taken is written without being read again, if it is still unchanged."""

from __future__ import annotations

import threading
import time

import pytest

import fairlock
from tests.servers.sql import Database, PostgreSQL


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


def taken(locks: fairlock.Locks) -> fairlock.Item:
    item = locks.pool("jobs").acquire(False)
    assert item is not None
    return item


@pytest.mark.parametrize("let_go", ["done", "release", "delete", "renew"])
@pytest.mark.parametrize("another", ["ticket = 'other'", "fence = fence + 1", "score = score - 1000, ticket = 'o'"])
def test_what_is_anothers_by_now_is_left_alone(database: Database, let_go: str, another: str) -> None:
    with fairlock.connect(database.url) as locks:
        locks.pool("jobs").add("a")
        item = taken(locks)
        database.run(f"UPDATE fairlock_items SET {another}")
        before = database.run("SELECT score, ticket, fence FROM fairlock_items")
        with pytest.raises(fairlock.LeaseLost):
            getattr(item, let_go)()
        assert database.run("SELECT score, ticket, fence FROM fairlock_items") == before


def test_what_was_touched_in_between_is_known_too(database: Database) -> None:
    with fairlock.connect(database.url) as locks:
        jobs = locks.pool("jobs")
        jobs.add("a", {"n": 1})
        item = taken(locks)
        item.renew()
        item.update({"n": 2})
        item.release()
        item = taken(locks)
        assert item.body == {"n": 2}
        item.renew()
        item.done({"n": 3})
        (found,) = jobs.items()
        assert (found.state, found.body) == ("done", {"n": 3})


def test_an_item_that_somebody_else_has_changed_is_read_again(database: Database) -> None:
    """By a renewal of the same take that came by another way, for instance."""
    with fairlock.connect(database.url) as locks:
        locks.pool("jobs").add("a")
        item = taken(locks)
        database.run("UPDATE fairlock_items SET score = score - 1")
        item.done()
        assert [found.state for found in locks.pool("jobs").items()] == ["done"]


def test_a_waiter_for_one_item_learns_that_it_is_done(postgresql: PostgreSQL) -> None:
    with fairlock.connect(postgresql.url) as locks, fairlock.connect(postgresql.url) as other:
        locks.pool("jobs").add("a")
        item = taken(locks)
        told: list[str] = []

        def wait() -> None:
            try:
                other.pool("jobs").acquire(key="a", timeout=20)
            except fairlock.ConfigError as error:
                told.append(str(error))

        waiting = threading.Thread(target=wait)
        waiting.start()
        limit = time.monotonic() + 20
        while "jobs" not in str(postgresql.run("SELECT key, body FROM fairlock_locks")):
            assert time.monotonic() < limit, "nobody waits"
            time.sleep(0.01)
        wakeups: list[str] = []
        with postgresql.connect() as listener:
            (channel,) = {
                name for (body,) in postgresql.run("SELECT body FROM fairlock_locks") for name in body.split('"')
                if name.startswith("fairlock_")
            }  # fmt: skip
            listener.execute(f"LISTEN {channel}")
            item.done()
            wakeups += [each.payload for each in listener.notifies(timeout=5, stop_after=1)]
        waiting.join(20)
        assert told and "is done" in told[0]
        assert wakeups


ANOTHERS = "(SELECT other FROM (SELECT body AS other FROM fairlock_items WHERE body LIKE '[2,19,%') AS t)"


@pytest.mark.parametrize("body", ["'x'", "'[2,9,1]'", ANOTHERS], ids=["text", "a wrong sum", "another's"])
def test_a_body_that_is_not_its_own_is_not_worked_on(database: Database, body: str) -> None:
    """Nor does one that is damaged stand in the way of the others, however many there are."""
    with fairlock.connect(database.url) as locks:
        jobs = locks.pool("jobs")
        jobs.add_many({f"job-{number:02}": number for number in range(20)})
        database.run(f"UPDATE fairlock_items SET body = {body} WHERE body NOT LIKE '[2,19,%'")
        item = taken(locks)
        assert (item.key, item.body) == ("job-19", 19)
        assert jobs.acquire(False) is None
        states = [found.state for found in jobs.items()]
        assert (states.count("damaged"), states.count("taken")) == (19, 1)
        assert (jobs.counts().taken, jobs.counts().done) == (1, 0)
        item.done()
        assert len(locks.repair("jobs")) == 19
        assert jobs.counts().done == 20

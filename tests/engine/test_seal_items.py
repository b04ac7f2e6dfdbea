"""item.seal: a worker that has lost its item cannot commit, and nobody takes it before a sealed transaction ends."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session

import fairlock
import fairlock.aio
from fairlock import ConfigError, LeaseLost, NotHeld
from tests.engine.seal_place import STORES, Place, make_place
from tests.engine.test_seal import driver_for_tasks, sleep_on, write


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    place = make_place(request, tmp_path)
    with fairlock.connect(place.url) as locks:
        for key in ("a", "b", "c", "d"):
            locks.pool("jobs").add(key)
    return place


def take(locks: fairlock.Locks, key: str = "a", lease: float = 30) -> fairlock.Item:
    item = locks.pool("jobs", lease=lease).acquire(timeout=20, key=key)
    assert item is not None
    return item


def test_a_worker_commits_and_finishes(place: Place) -> None:
    with fairlock.connect(place.url) as locks:
        item = take(locks)
        with contextlib.closing(place.driver()) as db:
            write(db, item.fence)
            item.seal(db)
            item.seal(db)  # again: no difference
            db.commit()
        engine = place.engine()
        with Session(engine) as session, session.begin():
            item.seal(session)
        engine.dispose()
        item.done()
        with pytest.raises(NotHeld), contextlib.closing(place.driver()) as db:
            item.seal(db)
    assert place.written() == 1


@pytest.mark.parametrize("sealed", [True, False])
def test_a_worker_that_was_replaced_commits_only_without_a_seal(
    place: Place, sealed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlock.engine.renewal._round", sleep_on)
    with fairlock.connect(place.url) as locks, fairlock.connect(place.url) as other:
        stale = take(locks)
        other.pool("jobs").remove("a", force=True)
        other.pool("jobs").add("a")
        current = take(other)
        with contextlib.closing(place.driver()) as db:
            write(db, stale.fence)
            assert stale.held, "it does not know yet"
            if sealed:
                with pytest.raises(LeaseLost):
                    stale.seal(db)
                assert stale.lost
                db.rollback()
            else:
                db.commit()
        assert current.held
    assert place.written() == (0 if sealed else 1)


def test_nobody_takes_it_before_the_transaction_has_ended(place: Place) -> None:
    with fairlock.connect(place.url) as locks, fairlock.connect(place.url) as other:
        item = take(locks)
        seen: list[int] = []

        def come() -> None:
            take(other)
            seen.append(place.written())

        comes, gives = threading.Thread(target=come), threading.Thread(target=item.release)
        comes.start()
        db = place.driver()
        write(db, item.fence)
        item.seal(db)
        gives.start()  # in the wrong order: before the commit
        time.sleep(0.4)
        assert not seen
        db.commit()
        gives.join(20)
        comes.join(20)
        assert seen == [1], "it sees what was committed"
        db.close()


@pytest.mark.parametrize("place", ["postgresql", "mariadb"], indirect=True)
def test_a_sealed_item_does_not_delay_the_renewals_of_others(place: Place) -> None:
    with fairlock.connect(place.url) as locks:
        items = [take(locks, key, lease=2) for key in ("a", "b", "c")]
        with contextlib.closing(place.driver()) as db:
            if place.kind == "postgresql":
                db.execute("SET idle_in_transaction_session_timeout = '60s'")
            items[0].seal(db)
            time.sleep(1)
            items.append(take(locks, "d", lease=2))
            lease = locks.lock("beside", lease=2).acquire()
            time.sleep(2.5)
            assert [item.held for item in items] == [False, True, True, True]
            assert items[0].reason == "expired"
            assert lease.held
            db.rollback()


def test_tasks(place: Place) -> None:
    import asyncio

    async def ended(result: Any) -> None:
        if hasattr(result, "__await__"):
            await result

    async def main() -> None:
        async with fairlock.aio.connect(place.url) as locks:
            item = await locks.pool("jobs").acquire(key="a")
            assert item is not None
            async with driver_for_tasks(place) as db:
                cursor = db.cursor()
                cursor = await cursor if hasattr(cursor, "__await__") else cursor
                await ended(cursor.execute(f"INSERT INTO journal VALUES ({item.fence})"))
                await item.seal(db)
                await ended(db.commit())
            await item.done()

    asyncio.run(main())
    assert place.written() == 1


def test_what_would_protect_nothing_is_refused(place: Place) -> None:
    with fairlock.connect(place.url) as locks:
        item = take(locks)
        with contextlib.closing(sqlite3.connect(place.path / "elsewhere.db")) as elsewhere:
            with pytest.raises(ConfigError, match=r"not in the (file of the lock|database of the item)"):
                item.seal(elsewhere)
        assert item.held
    with fairlock.connect("memory://") as locks:
        locks.pool("jobs").add("a")
        with pytest.raises(ConfigError, match="has no transactions that could be sealed"):
            take(locks).seal(sqlite3.connect(":memory:"))



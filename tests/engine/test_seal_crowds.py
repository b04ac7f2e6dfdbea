"""lease.seal: clients that wait for a sealed row do not delay the renewals of other leases.

All clients of a process share eight connections. A statement that waits for a locked row keeps its connection busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from pathlib import Path

import pytest

import fairlock
import fairlock.aio
from tests.engine.seal_place import Place
from tests.servers.sql import Database

CROWD = 12  # clients that wait for the row: more than there are connections
LEASE = 3.0  # renewed every second; a statement that waits for the row waits for 5 s


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    with fairlock.connect(found.url) as locks:
        locks.lock("first").acquire().release()  # makes the tables
    return found


def place_at(server: Database) -> Place:
    return Place(server.scheme, server.url, server, Path())


def test_threads_that_wait_for_a_sealed_row_do_not_delay_renewals(server: Database) -> None:
    def wait_for_sealed(client: fairlock.Locks) -> None:
        with client.lock("sealed", timeout=60):
            pass

    with contextlib.ExitStack() as stack:
        locks = stack.enter_context(fairlock.connect(server.url))
        crowd = [stack.enter_context(fairlock.connect(server.url)) for _ in range(CROWD)]
        sealed, other = locks.lock("sealed", lease=60).acquire(), locks.lock("other", lease=LEASE).acquire()
        threads = [threading.Thread(target=wait_for_sealed, args=(client,)) for client in crowd]
        with contextlib.closing(place_at(server).driver()) as db:
            sealed.seal(db)
            for thread in threads:
                thread.start()
            time.sleep(LEASE * 1.2)
            assert other.held
            db.rollback()
        sealed.release()
        other.release()
        for thread in threads:
            thread.join()


def test_tasks_that_wait_for_a_sealed_row_do_not_delay_renewals(server: Database) -> None:
    async def wait_for_sealed(client: fairlock.aio.Locks) -> None:
        async with client.lock("sealed", timeout=60):
            pass

    async def main(sealed: fairlock.Lease) -> None:
        async with contextlib.AsyncExitStack() as stack:
            locks = await stack.enter_async_context(fairlock.aio.connect(server.url))
            crowd = [await stack.enter_async_context(fairlock.aio.connect(server.url)) for _ in range(CROWD)]
            other = await locks.lock("other", lease=LEASE).acquire()
            with contextlib.closing(place_at(server).driver()) as db:
                sealed.seal(db)
                waiting = [asyncio.create_task(wait_for_sealed(client)) for client in crowd]
                await asyncio.sleep(LEASE * 1.2)
                assert other.held
                db.rollback()
            sealed.release()
            await other.release()
            await asyncio.gather(*waiting)

    with fairlock.connect(server.url) as locks:
        asyncio.run(main(locks.lock("sealed", lease=60).acquire()))

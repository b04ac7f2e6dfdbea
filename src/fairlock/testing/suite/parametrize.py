"""How the behaviours are run: the matrix of stores and faces, the kinds of lock, the base of the test classes."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ... import aio
from ..harness import HARNESSES, Harness
from ..store_factories import OpenSite, UrlSite


def matrix(stores: Mapping[str, OpenSite | str]) -> Any:
    """Make the fixture `harness` over these stores and both faces. Assign it to that name in a conftest or a module.

    Each store is a function from a folder of the test's own to a URL that no other test uses, or, for one that takes a
    server, the name of a fixture that gives such a URL. Both may give a Site instead.
    """
    cells = [pytest.param((store, face), id=f"{store}-{face}") for store in stores for face in HARNESSES]

    @pytest.fixture(name="harness", params=cells)
    def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
        store, face = request.param
        opened = stores[store]
        site = request.getfixturevalue(opened) if isinstance(opened, str) else opened(tmp_path)
        return HARNESSES[face](UrlSite(site) if isinstance(site, str) else site)

    return harness


class Behaviours:
    """Its tests are coroutines over a harness; here they become plain functions that the harness runs."""

    needs_pools = False

    def __init_subclass__(cls) -> None:
        for name, test in list(vars(cls).items()):
            if name.startswith("test_") and inspect.iscoroutinefunction(test):
                setattr(cls, name, _played(test))


def _played(test: Callable[..., Any]) -> Callable[..., None]:
    @functools.wraps(test)
    def play(self: Behaviours, harness: Harness, **rest: Any) -> None:
        async def behaviour() -> None:
            if self.needs_pools and not harness.keeps_pools():
                pytest.skip("this store keeps no pools")
            await test(self, harness, **rest)

        harness.run(behaviour())

    return play


class PoolBehaviours(Behaviours):
    """The behaviours of pools, for every store that has pools."""

    needs_pools = True


Make = Callable[..., aio.Lock]


class Kind(NamedTuple):
    """A kind of lock, and the kind that it excludes."""

    label: str
    mine: Make
    rival: Make

    def __str__(self) -> str:
        return self.label


def _lock(client: aio.Locks, name: str, **options: Any) -> aio.Lock:
    return client.lock(name, **options)


def _writer(client: aio.Locks, name: str, **options: Any) -> aio.Lock:
    return client.rwlock(name, **options).write()


def _reader(client: aio.Locks, name: str, **options: Any) -> aio.Lock:
    return client.rwlock(name, **options).read()


def _single(client: aio.Locks, name: str, **options: Any) -> aio.Lock:
    return client.semaphore(name, 1, **options)


LOCK = Kind("lock", _lock, _lock)
WRITER = Kind("writer", _writer, _reader)
READER = Kind("reader", _reader, _writer)
SINGLE = Kind("semaphore(1)", _single, _single)

every_kind = pytest.mark.parametrize("kind", [LOCK, WRITER, READER, SINGLE], ids=str)
every_mutex = pytest.mark.parametrize("kind", [LOCK, Kind("writer", _writer, _writer), SINGLE], ids=str)


@contextmanager
def no_logging() -> Iterator[None]:
    """Keep the errors that a test makes on purpose out of the log."""
    logging.getLogger("fairlock").disabled = True
    try:
        yield
    finally:
        logging.getLogger("fairlock").disabled = False


async def take(lock: aio.Lock, **options: Any) -> aio.Lease:
    """Acquire it, which must not fail."""
    lease: aio.Lease | None = await lock.acquire(**options)
    assert lease is not None, f"{lock.name!r} was refused"
    return lease


async def enter_and_leave(block: AbstractAsyncContextManager[object]) -> None:
    """Enter this block, which may fail or take long, and leave it at once."""
    async with block:
        pass


async def get(pool: aio.Pool, **options: Any) -> aio.Item:
    """Acquire an item, which must not fail."""
    item: aio.Item | None = await pool.acquire(**options)
    assert item is not None, f"no item of {pool.name!r} is free"
    return item


async def add_and_get(pool: aio.Pool, body: Any = None, **options: Any) -> aio.Item:
    """Add the item 'a', and acquire it."""
    await pool.add("a", body)
    return await get(pool, **options)


async def pool_with(client: aio.Locks, *keys: str, **options: Any) -> aio.Pool:
    """Return the pool 'jobs' of this client, after these items have been added."""
    pool: aio.Pool = client.pool("jobs", **options)
    await pool.add_many(keys)
    return pool

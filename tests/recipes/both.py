"""Cases for RedisPyLock, written once: as tasks see it, and for threads with a lock whose answers can be awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

import pytest
import redis
import redis.asyncio

from fairlock import recipes
from fairlock.recipes import aio
from tests.servers.server import Server

AWAITED = {"acquire", "release", "locked", "owned", "extend", "reacquire"}


class Awaited:
    """A RedisPyLock for threads, with the interface of the other."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._lock, name)
        if name not in AWAITED:
            return value

        async def call(*args: Any, **kwargs: Any) -> Any:
            return value(*args, **kwargs)

        return call

    async def __aenter__(self) -> Self:
        self._lock.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._lock.__exit__(kind, error, at)


class Shop:
    """Makes locks the way programs do: `client.lock(name, lock_class=RedisPyLock)`."""

    def __init__(self, server: Server, runtime: str) -> None:
        self.server = server
        self.runtime = runtime
        self._clients: list[Any] = []

    def client(self, **settings: Any) -> Any:
        """One client for all who say nothing else."""
        if settings or not self._clients:
            driver = redis if self.runtime == "threads" else redis.asyncio
            self._clients.append(driver.Redis(**{"port": self.server.port, **settings}))
        return self._clients[-1 if settings else 0]

    def lock(self, name: str = "x", client: Any = None, **options: Any) -> Any:
        client = client or self.client()
        if self.runtime == "threads":
            return Awaited(client.lock(name, lock_class=recipes.RedisPyLock, **options))
        return client.lock(name, lock_class=aio.RedisPyLock, **options)

    async def close(self) -> None:
        for client in self._clients:
            closing = getattr(client, "aclose", client.close)()
            if inspect.isawaitable(closing):
                await closing


def both(case: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Play the case for threads and for tasks. What it asks for besides the shop are parameters and fixtures."""

    async def play(shop: Shop, asked: dict[str, Any]) -> None:
        try:
            await asyncio.wait_for(case(shop, **asked), 30)
        finally:
            await shop.close()

    def test(redis_alone: Server, runtime: str, **asked: Any) -> None:
        asyncio.run(play(Shop(redis_alone, runtime), asked))

    own, wanted = inspect.signature(test), list(inspect.signature(case).parameters.values())[1:]
    parameters = [own.parameters["redis_alone"], own.parameters["runtime"], *wanted]
    test.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    test.__name__, test.__doc__, test.__module__ = case.__name__, case.__doc__, case.__module__
    return pytest.mark.parametrize("runtime", ["threads", "tasks"])(test)

"""Redis and Valkey."""

from __future__ import annotations

from typing import Any

from redis import ConnectionPool
from redis.backoff import NoBackoff
from redis.retry import Retry

from ..contract import Backend, Colour
from . import layout
from .backend import RedisBackend


def open_redis(url: str, colour: Colour, namespace: str, options: dict[str, Any]) -> Backend:
    where = _where(url)
    settings: dict[str, Any] = {"protocol": 3, "socket_timeout": 5, "socket_connect_timeout": 5}
    if colour.blocking:
        from .ears import ThreadEars
        from .wire import ThreadWire

        pool = ConnectionPool.from_url(url, retry=Retry(NoBackoff(), 0), **settings)
        backend = RedisBackend(where, colour, namespace, ThreadWire(pool.make_connection, where))
        backend.ears = ThreadEars(pool.make_connection, layout.EARS + backend.ear, where, backend.hear, colour)
        return backend
    from redis.asyncio import ConnectionPool as TaskPool
    from redis.asyncio.retry import Retry as TaskRetry

    from .tasks import TaskEars, TaskWire

    tasks = TaskPool.from_url(url, retry=TaskRetry(NoBackoff(), 0), **settings)
    backend = RedisBackend(where, colour, namespace, TaskWire(tasks.make_connection, where))
    backend.ears = TaskEars(tasks.make_connection, layout.EARS + backend.ear, where, backend.hear)
    return backend


def _where(url: str) -> str:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"

"""Redis and Valkey."""

from __future__ import annotations

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ...errors import ConfigError
from ..contract import Backend, Colour
from . import address, client, layout
from .address import Address
from .backend import RedisBackend


def open_redis(target: object, colour: Colour, namespace: str, options: dict[str, Any]) -> Backend:
    """The store behind a URL or a client of redis-py. No I/O yet. What makes no sense: ConfigError."""
    if isinstance(target, str):
        found = address.read(target, options)
    else:
        found = client.read(target, colour.blocking, options)
    if found.kind:
        raise ConfigError(f"{found.where}: only single servers so far.")
    where = found.where
    if colour.blocking:
        from .ears import ThreadEars
        from .wire import ThreadWire

        make = _maker(found, redis, Retry(NoBackoff(), 0))
        backend = RedisBackend(where, colour, namespace, ThreadWire(make, where))
        backend.ears = ThreadEars(make, layout.EARS + backend.ear, where, backend.hear, colour)
        return backend
    from redis import asyncio
    from redis.asyncio.retry import Retry as TaskRetry

    from .tasks import TaskEars, TaskWire

    make = _maker(found, asyncio, TaskRetry(NoBackoff(), 0))
    backend = RedisBackend(where, colour, namespace, TaskWire(make, where))
    backend.ears = TaskEars(make, layout.EARS + backend.ear, where, backend.hear)
    return backend


def _maker(found: Address, driver: Any, retry: Any) -> Any:
    """Makes connections of redis-py's, in the colour of `driver`, that try everything once."""
    arguments = {**found.driver, "retry": retry}
    if found.hosts:
        arguments["host"], arguments["port"] = found.hosts[0]
        kind = driver.SSLConnection if found.secure else driver.Connection
    else:
        kind = driver.UnixDomainSocketConnection
    return lambda: kind(**arguments)

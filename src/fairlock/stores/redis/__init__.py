"""Redis and Valkey: one server, Sentinel or Cluster, for threads and for tasks."""

from __future__ import annotations

from typing import Any

from ..base import Backend, Runtime
from . import address_from_client, url
from .make_connections import share_connections
from .store import RedisBackend


def open_redis(target: object, runtime: Runtime, namespace: str, options: dict[str, Any]) -> Backend:
    """Return the store behind a URL or a client of redis-py. No I/O yet. ConfigError for a URL or options that are
    wrong."""
    if isinstance(target, str):
        found = url.read(target, options)
    else:
        found = address_from_client.read(target, runtime.blocking, options)
    return RedisBackend(found.where, runtime, namespace, share_connections(found, runtime), **found.own)

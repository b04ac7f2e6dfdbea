"""Redis and Valkey: one server, Sentinel or Cluster, for threads and for tasks."""

from __future__ import annotations

from typing import Any

from ..contract import Backend, Colour
from . import address, client
from .backend import RedisBackend
from .ways import atlas_of


def open_redis(target: object, colour: Colour, namespace: str, options: dict[str, Any]) -> Backend:
    """The store behind a URL or a client of redis-py. No I/O yet. What makes no sense: ConfigError."""
    if isinstance(target, str):
        found = address.read(target, options)
    else:
        found = client.read(target, colour.blocking, options)
    ears: Any
    if colour.blocking:
        from .ears import ThreadEars as ears
    else:
        from .task_ears import TaskEars as ears
    return RedisBackend(found.where, colour, namespace, atlas_of(found, colour.blocking), ears, **found.own)

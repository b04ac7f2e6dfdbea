"""Apache Cassandra: one partition for each name, each step one lightweight transaction on its version."""

from __future__ import annotations

from typing import Any

from ..cas import CasBackend
from ..contract import Backend, Colour
from . import address
from .store import CassandraStore
from .wire import Wire

__all__ = ["CassandraStore", "Wire", "open_cassandra"]


def open_cassandra(target: object, colour: Colour, namespace: str, options: dict[str, Any]) -> Backend:
    """The keyspace behind a URL or a Session of the driver. No I/O yet. What makes no sense: ConfigError."""
    found = address.read(target, options) if isinstance(target, str) else address.of_session(target, options)
    return CasBackend(CassandraStore(Wire(found, colour), colour, skew=found.skew), colour, namespace)

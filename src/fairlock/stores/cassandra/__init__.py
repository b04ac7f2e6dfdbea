"""Apache Cassandra: one partition for each name, each step one lightweight transaction on its version."""

from __future__ import annotations

from typing import Any

from ..base import Backend, Runtime
from ..cas import CasBackend
from ..shared_connections import Share
from . import url
from .statement_sender import DriverSession, StatementSender
from .store import CassandraStore

__all__ = ["CassandraStore", "StatementSender", "open_cassandra"]


def open_cassandra(target: object, runtime: Runtime, namespace: str, options: dict[str, Any]) -> Backend:
    """Return the keyspace behind a URL or a Session of the driver. No I/O yet. ConfigError if they make no sense."""

    def make() -> DriverSession:
        address = url.read(target, options) if isinstance(target, str) else url.from_session(target, options)
        return DriverSession(address)

    share = Share(runtime, ("cassandra", target, tuple(sorted(options.items()))), make)
    store = CassandraStore(StatementSender(share, runtime), runtime, skew=share.of.address.skew)
    return CasBackend(store, runtime, namespace)

"""Oracle's NoSQL service in the cloud (OCI): each step one PUT with if-match on the row's etag, over HTTP."""

from __future__ import annotations

from typing import Any

from ..base import Backend, Runtime
from ..cas import CasBackend
from . import url
from .store import OciStore
from .table_requests import Table

__all__ = ["OciStore", "Table", "open_oci", "open_table"]


def open_oci(target: object, runtime: Runtime, namespace: str, options: dict[str, Any]) -> Backend:
    """Return the table behind a URL, or behind a NosqlClient and table=…. No I/O yet. ConfigError if they make no
    sense."""
    found = url.read(target, options) if isinstance(target, str) else url.from_client(target, options)
    return CasBackend(OciStore(Table(found, runtime), runtime, skew=found.skew), runtime, namespace)


def open_table(client: object, table: str, compartment: str | None, runtime: Runtime) -> Table:
    """This table through a NosqlClient of the caller, with neither its retries nor its circuit breaker."""
    return Table(url.from_client(client, {"table": table, "compartment": compartment}), runtime)

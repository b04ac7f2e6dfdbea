"""SQL databases: PostgreSQL, MariaDB and MySQL, Oracle. One store; what differs between them is in `dialects`."""

from typing import Any

from ..base import Runtime
from ..cas import CasBackend
from .store import SqlStore, ThreadSqlStore
from .url import read

__all__ = ["SqlStore", "open_sql"]


def open_sql(target: object, runtime: Runtime, namespace: str, options: dict[str, Any]) -> CasBackend:
    """A backend for this URL, or for where this Engine or AsyncEngine of SQLAlchemy goes. Opens no connection yet."""
    kind = ThreadSqlStore if runtime.blocking else SqlStore
    return CasBackend(kind(read(target, runtime.blocking, options), runtime), runtime, namespace)

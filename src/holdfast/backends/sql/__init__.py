"""SQL databases: PostgreSQL, MariaDB and MySQL, Oracle. One store; what differs between them is in `dialects`."""

from typing import Any

from ..cas import CasBackend
from ..contract import Colour
from .address import read
from .store import SqlStore, ThreadSqlStore

__all__ = ["SqlStore", "open_sql"]


def open_sql(target: object, colour: Colour, namespace: str, options: dict[str, Any]) -> CasBackend:
    """A backend for this URL, or for where this Engine or AsyncEngine of SQLAlchemy goes. Opens no connection yet."""
    kind = ThreadSqlStore if colour.blocking else SqlStore
    return CasBackend(kind(read(target, colour.blocking, options), colour), colour, namespace)

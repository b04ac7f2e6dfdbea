"""SQL databases: PostgreSQL, MariaDB and MySQL, Oracle. One store; what differs between them is in `dialects`."""

from typing import Any

from ..base import Runtime
from ..cas import CasBackend
from ..shared_connections import Share
from .executor import Executor
from .store import SqlStore
from .url import DRIVERS, read

__all__ = ["SqlStore", "open_sql"]


def open_sql(target: object, runtime: Runtime, namespace: str, options: dict[str, Any]) -> CasBackend:
    """Return a backend for this URL, or for where this Engine or AsyncEngine of SQLAlchemy goes. Opens no connection
    yet."""
    key = ("sql", target, tuple(sorted(options.items())))
    share = Share(runtime, key, lambda: _connections(target, runtime, options))
    backend = CasBackend(SqlStore(share, runtime), runtime, namespace)
    if not runtime.blocking and isinstance(target, str) and _has_driver_for_threads(target):
        backend.open_blocking = lambda other: open_sql(target, other, namespace, options)
    return backend


def _has_driver_for_threads(url: str) -> bool:
    """Return True if this URL for tasks names no driver, or one that is for threads, too."""
    scheme, _, driver = url.partition("://")[0].partition("+")
    return driver in ("", DRIVERS[scheme][0])


def _connections(target: object, runtime: Runtime, options: dict[str, Any]) -> Executor:
    address = read(target, runtime.blocking, options)
    if runtime.blocking:
        return Executor(address)
    from .async_executor import AsyncExecutor

    return AsyncExecutor(address)

"""The same for asyncio: what does I/O is awaited; lost, held, remaining() and ensure_held() are plain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..connect import settle
from ..engine.ask_to_release import ReleaseRequest
from ..engine.events import Event
from ..engine.name_from_text import safe_name
from ..engine.operator_audit import AuditLine
from ..engine.pool_admin import PoolItem
from ..engine.pool_counts import PoolCounts
from ..engine.snapshots import Holder, Resource, Snapshot, Waiter
from ..engine.validate import Seconds
from ..errors import AlreadyHeld, ConfigError, LeaseLost, LockError, LockTimeout, NotHeld, RecordDamaged, StoreError
from .client import Locks
from .lease import Lease
from .locks import Lock, RWLock, Semaphore
from .pool import Item, Pool
from .runtime import TaskRuntime

__all__ = [
    "AlreadyHeld",
    "AuditLine",
    "StoreError",
    "ConfigError",
    "Event",
    "Holder",
    "Item",
    "Lease",
    "LeaseLost",
    "Lock",
    "LockError",
    "LockTimeout",
    "Locks",
    "NotHeld",
    "RecordDamaged",
    "Pool",
    "PoolCounts",
    "PoolItem",
    "RWLock",
    "ReleaseRequest",
    "Resource",
    "Seconds",
    "Semaphore",
    "Snapshot",
    "Waiter",
    "connect",
    "safe_name",
]


def connect(
    target: str | object | None = None,
    *,
    owner: str | None = None,
    lease: Seconds | None = None,
    namespace: str | None = None,
    scope: str | None = None,
    on_event: Callable[[Event], object] | None = None,
    **store_options: Any,
) -> Locks:
    """Make a client for asyncio. It does no I/O before the first lock is used.

    target: a URL (`memory://`, `memory://NAME`, `sqlite:///relative.db`, `sqlite:////absolute/path.db`,
    `redis://host:6379/0`, `redis+sentinel://…`, `redis+cluster://…`, `postgresql://…`, `mariadb://…`, `oracle://…`,
    `cassandra://…`, `oci-nosql://…`), or a client of redis.asyncio, an Engine or AsyncEngine of SQLAlchemy, a Session
    of Cassandra's driver or a NosqlClient of OCI; None: FAIRLOCK_URL, else a file in this user's state directory.
    owner: the label that others see, host:pid by default. lease: how long others wait if this process dies, 30 s by
    default. namespace: keeps names apart. scope="machines" refuses a store that reaches only this machine. on_event is
    called with each Event. Bad input: ConfigError.
    """
    runtime = TaskRuntime()
    backend, owner, lease = settle(target, runtime, owner, lease, namespace, scope, store_options)
    locks = Locks(backend, runtime, owner=owner, lease=lease, on_event=on_event)
    open_blocking = backend.open_blocking
    if open_blocking is not None:
        from ..sync.runtime import ThreadRuntime
        from .confirm_by_thread import ThreadConfirmer

        locks._session.watch_young = ThreadConfirmer(locks._session, lambda: open_blocking(ThreadRuntime())).watch
        backend.pushes_grants = True
    return locks

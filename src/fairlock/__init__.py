"""Locks that span threads, processes and machines.

    import fairlock

    locks = fairlock.connect()              # a file of this user; or connect("redis://…"), one URL away
    with locks.lock("nightly-report"):
        ...

`fairlock.aio` is the same for asyncio.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .connect import settle  # here: imported later, the module would take the place of the function below
from .engine.ask_to_release import ReleaseRequest
from .engine.events import Event
from .engine.validate import Seconds
from .errors import AlreadyHeld, ConfigError, LeaseLost, LockError, LockTimeout, NotHeld, RecordDamaged, StoreError
from .sync import Lease, Lock, Locks, RWLock, Semaphore

__version__ = "0.1.0"

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


if TYPE_CHECKING:
    from . import aio as aio
    from .engine.name_from_text import safe_name
    from .engine.operator_audit import AuditLine
    from .engine.pool_admin import PoolItem
    from .engine.pool_counts import PoolCounts
    from .engine.snapshots import Holder, Resource, Snapshot, Waiter
    from .sync.pool import Item, Pool
else:
    # What most programs do not use is imported on first use: asyncio is slow to import, and so are many small classes.
    LATER = {
        "aio": "aio",
        "AuditLine": "engine.operator_audit",
        "Holder": "engine.snapshots",
        "Item": "sync.pool",
        "Pool": "sync.pool",
        "PoolCounts": "engine.pool_counts",
        "PoolItem": "engine.pool_admin",
        "Resource": "engine.snapshots",
        "Snapshot": "engine.snapshots",
        "Waiter": "engine.snapshots",
        "safe_name": "engine.name_from_text",
    }

    def __getattr__(name):
        if name not in LATER:
            raise AttributeError(f"module 'fairlock' has no attribute {name!r}")
        from importlib import import_module

        module = import_module(f"fairlock.{LATER[name]}")
        return module if name == "aio" else getattr(module, name)


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
    """Make a client for threads. It does no I/O before the first lock is used.

    target: a URL (`memory://`, `memory://NAME`, `sqlite:///relative.db`, `sqlite:////absolute/path.db`,
    `redis://host:6379/0`, `redis+sentinel://…`, `redis+cluster://…`, `postgresql://…`, `mariadb://…`, `oracle://…`,
    `cassandra://…`, `oci-nosql://…`), or a client of redis-py, an Engine of SQLAlchemy, a Session of Cassandra's driver
    or a NosqlClient of OCI; None: FAIRLOCK_URL, else a file in this user's state directory. owner: the label that
    others see, host:pid by default. lease: how long others wait if this process dies, 30 s by default. namespace: keeps
    names apart. scope="machines" refuses a store that reaches only this machine. on_event is called with each Event.
    Bad input: ConfigError.
    """
    from .sync.runtime import ThreadRuntime

    runtime = ThreadRuntime()
    settings = settle(target, runtime, owner, lease, namespace, scope, store_options)
    return Locks(settings.backend, runtime, owner=settings.owner, lease=settings.lease, on_event=on_event)

"""The same for asyncio: what does I/O is awaited; lost, held, remaining() and ensure_held() are plain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..connect import settle
from ..errors import AlreadyHeld as AlreadyHeld
from ..errors import BackendError as BackendError
from ..errors import ConfigError as ConfigError
from ..errors import LeaseLost as LeaseLost
from ..errors import LockError as LockError
from ..errors import LockTimeout as LockTimeout
from ..errors import NotHeld as NotHeld
from ..errors import RecordDamaged as RecordDamaged
from ..flow.check import Seconds as Seconds
from ..flow.events import Event as Event
from ..flow.look import Insider as Insider
from ..flow.look import Resource as Resource
from ..flow.look import Snapshot as Snapshot
from ..flow.look import Waiter as Waiter
from ..flow.safe_name import safe_name as safe_name
from ..flow.shelf import PoolCounts as PoolCounts
from ..flow.shelf import PoolItem as PoolItem
from .colour import TaskColour
from .lease import Lease as Lease
from .lock import Lock as Lock
from .lock import RWLock as RWLock
from .lock import Semaphore as Semaphore
from .locks import Locks as Locks
from .pool import Item as Item
from .pool import Pool as Pool

__all__ = [
    "AlreadyHeld",
    "BackendError",
    "ConfigError",
    "Event",
    "Insider",
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
    span: str | None = None,
    on_event: Callable[[Event], object] | None = None,
    **store_options: Any,
) -> Locks:
    """A client for tasks. No I/O happens before the first lock is used.

    target: a URL (`memory://`, `memory://NAME`, `sqlite:///relative.db`, `sqlite:////absolute/path.db`,
    `redis://host:6379/0`, `redis+sentinel://…`, `redis+cluster://…`) or a client of redis.asyncio; None: HOLDFAST_URL,
    else a file in this user's state directory. owner: the label that others see, host:pid by default. lease: how long
    others wait if this process dies, 30 s by default. namespace: keeps names apart. span="machines" refuses stores
    that reach only this machine. on_event is called with each Event. Bad input: ConfigError.
    """
    colour = TaskColour()
    settings = settle(target, colour, owner, lease, namespace, span, store_options)
    return Locks(settings.backend, colour, owner=settings.owner, lease=settings.lease, on_event=on_event)

"""Locks that span threads, processes and machines.

    import holdfast

    locks = holdfast.connect()              # a file of this user; or connect("redis://…"), one URL away
    with locks.lock("nightly-report"):
        ...

`holdfast.aio` is the same for asyncio.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .client import Lease as Lease
from .client import Lock as Lock
from .client import Locks as Locks
from .client import RWLock as RWLock
from .client import Semaphore as Semaphore
from .connect import settle  # here: imported later, the module would take the place of the function below
from .errors import AlreadyHeld as AlreadyHeld
from .errors import BackendError as BackendError
from .errors import ConfigError as ConfigError
from .errors import LeaseLost as LeaseLost
from .errors import LockError as LockError
from .errors import LockTimeout as LockTimeout
from .errors import NotHeld as NotHeld
from .errors import RecordDamaged as RecordDamaged
from .flow.check import Seconds as Seconds
from .flow.events import Event as Event
from .flow.look import Insider as Insider
from .flow.look import Resource as Resource
from .flow.look import Snapshot as Snapshot
from .flow.look import Waiter as Waiter
from .flow.safe_name import safe_name as safe_name

__version__ = "0.1.0"

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


if TYPE_CHECKING:
    from . import aio as aio
    from .client.pool import Item as Item
    from .client.pool import Pool as Pool
    from .flow.shelf import PoolCounts as PoolCounts
    from .flow.shelf import PoolItem as PoolItem
else:
    # What most programs do not use comes with the first look at it: asyncio is dear, and so are many small classes.
    LATER = {
        "aio": "aio",
        "Item": "client.pool",
        "Pool": "client.pool",
        "PoolCounts": "flow.shelf",
        "PoolItem": "flow.shelf",
    }

    def __getattr__(name):
        if name not in LATER:
            raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
        from importlib import import_module

        module = import_module(f"holdfast.{LATER[name]}")
        return module if name == "aio" else getattr(module, name)


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
    """A client for threads. No I/O happens before the first lock is used.

    target: a URL (`memory://`, `memory://NAME`, `sqlite:///relative.db`, `sqlite:////absolute/path.db`,
    `redis://host:6379/0`, `redis+sentinel://…`, `redis+cluster://…`) or a client of redis-py; None: HOLDFAST_URL, else
    a file in this user's state directory. owner: the label that others see, host:pid by default. lease: how long
    others wait if this process dies, 30 s by default. namespace: keeps names apart. span="machines" refuses stores
    that reach only this machine. on_event is called with each Event. Bad input: ConfigError.
    """
    from .client.colour import ThreadColour

    colour = ThreadColour()
    settings = settle(target, colour, owner, lease, namespace, span, store_options)
    return Locks(settings.backend, colour, owner=settings.owner, lease=settings.lease, on_event=on_event)

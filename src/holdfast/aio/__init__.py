"""The same for asyncio: what does I/O is awaited; lost, held, remaining() and ensure_held() are plain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..connect import settle
from ..flow.check import Seconds
from ..flow.events import Event
from .colour import TaskColour
from .lease import Lease as Lease
from .lock import Lock as Lock
from .lock import RWLock as RWLock
from .lock import Semaphore as Semaphore
from .locks import Locks as Locks

__all__ = ["Lease", "Lock", "Locks", "RWLock", "Semaphore", "connect"]


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

    target: a URL (`memory://`, `memory://NAME`, `sqlite:///relative.db`, `sqlite:////absolute/path.db`); None:
    HOLDFAST_URL, else a file in this user's state directory. owner: the label that others see, host:pid by default.
    lease: how long others wait if this process dies, 30 s by default. namespace: keeps names apart. span="machines"
    refuses stores that reach only this machine. on_event is called with each Event. Bad input: ConfigError.
    """
    colour = TaskColour()
    settings = settle(target, colour, owner, lease, namespace, span, store_options)
    return Locks(settings.backend, colour, owner=settings.owner, lease=settings.lease, on_event=on_event)

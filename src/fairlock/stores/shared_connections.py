"""Connections that the clients of one process use together.

Clients with the same address, credentials and options share their connections: in threads those of a process, in
asyncio those of an event loop. So 500 clients need no more connections than one. Each client has a `Share`. The last
one that leaves closes the connections. A client that is dropped without being closed drops its share; connections
without a share are dropped, too, and close themselves. In the child of a fork nothing is shared with the parent.

Rejected alternative: one client object per URL. Clients differ in owner, lease, namespace and callbacks, and each is
closed by itself.
"""

from __future__ import annotations

import os
from _thread import RLock
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar
from weakref import WeakSet, WeakValueDictionary

from .base import Runtime


class SharedConnections:
    """What clients open and use together. Opens nothing before it is used."""

    def __init__(self) -> None:
        self.shares: WeakSet[Share[Any]] = WeakSet()
        self.key: Hashable = None


S = TypeVar("S", bound=SharedConnections)


class Share(Generic[S]):
    """The share of one client. It keeps the connections alive."""

    def __init__(self, runtime: Runtime, key: tuple[Any, ...], make: Callable[[], S]) -> None:
        """`key`: everything that makes a difference to the connections. `make` makes them, without I/O."""
        self.on_reset: Callable[[], None] | None = None
        """Called when the connections broke and leases may be lost."""
        where = _home(runtime, key)
        with _mutex:
            found: S | None = _open.get(where)
            if found is None:
                found = make()
                found.key = where
                if where is not None:
                    _open[where] = found
            found.shares.add(self)
        self.of = found

    def leave(self) -> bool:
        """Remove a client that is closed. Return True if it was the last one: then the connections must be closed."""
        shared = self.of
        with _mutex:
            shared.shares.discard(self)
            if shared.shares:
                return False
            if _open.get(shared.key) is shared:
                del _open[shared.key]
            return True


def _home(runtime: Runtime, key: tuple[Any, ...]) -> Hashable:
    """Return the key with where it counts: among the threads of this process, or in the running loop.

    None: not shared, because no loop runs yet, or an option cannot be compared.
    """
    home: Any = None
    if not runtime.blocking:
        import asyncio

        try:
            home = asyncio.get_running_loop()
        except RuntimeError:
            return None
    try:
        hash(key)
    except TypeError:
        return None
    return type(runtime), runtime.clock, home, key


def reset_all(shares: WeakSet[Share[Any]]) -> None:
    """Notify each of these clients that its leases may be lost."""
    with _mutex:
        calls = [share.on_reset for share in shares]
    for call in calls:
        if call is not None:
            call()


def _forked() -> None:
    """The clients of the parent that the child has inherited reset themselves."""
    global _mutex
    _mutex = RLock()
    _open.clear()


_open: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
_mutex = RLock()
os.register_at_fork(after_in_child=_forked)

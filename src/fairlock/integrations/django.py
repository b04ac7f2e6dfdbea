"""Django: the client that settings.py describes, and a transaction inside a lock.

    FAIRLOCK = {"target": "redis://localhost", "namespace": "shop"}     # in settings.py: the arguments of connect()

    with locked_atomic(f"account:{pk}") as lease:
        ...                                                             # ORM calls: committed, then released

The lock is around the transaction, never inside it. With the lock inside, it is released before the COMMIT, and the
next holder reads the old row. `durable=True` lets Django refuse that order.

Rejected alternatives: a lock that is released by `transaction.on_commit` (a rollback does not call it), and a
middleware that locks every request (few requests need a lock, and those know its name).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from django.conf import settings
from django.core.signals import setting_changed
from django.db import transaction

import fairlock
from fairlock import Lease, Locks, Seconds

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from fairlock import aio

_client: list[Locks] = []
_async_clients: WeakKeyDictionary[AbstractEventLoop, aio.Locks] = WeakKeyDictionary()


def get_locks() -> Locks:
    """Return the client of this process, made from settings.FAIRLOCK when it is first used.

    FAIRLOCK holds the arguments of `fairlock.connect`. Without it, the variables FAIRLOCK_URL … apply. A worker that is
    forked later uses it with connections of its own. ConfigError if the settings are invalid.
    """
    if not _client:
        _client.append(fairlock.connect(**_options()))
    return _client[0]


def get_async_locks() -> aio.Locks:
    """Return the client of the running event loop, for async views. Transactions need `get_locks`, in a thread."""
    from asyncio import get_running_loop

    from fairlock import aio

    loop = get_running_loop()
    if loop not in _async_clients:
        _async_clients[loop] = aio.connect(**_options())
    return _async_clients[loop]


@contextmanager
def locked_atomic(
    name: str, *, using: str | None = None, timeout: Seconds | None = None, **options: Any
) -> Iterator[Lease]:
    """Hold the lock, and inside it a transaction. The lock is released after the COMMIT or the ROLLBACK.

    LockTimeout if it is not acquired within `timeout`. RuntimeError if a transaction is open already: the lock would be
    released before its COMMIT. If the lease was lost, LeaseLost is raised before the COMMIT, and nothing is stored; a
    pause between that check and the COMMIT is not noticed. Other options as for `lock`.
    """
    with get_locks().lock(name, **options).hold(timeout=timeout) as lease:
        with transaction.atomic(using=using, durable=True):
            yield lease
            lease.ensure_held()


def _options() -> dict[str, Any]:
    return dict(getattr(settings, "FAIRLOCK", {}))


def _forget(setting: str, **_: object) -> None:
    """Tests override settings: the next call makes a new client."""
    if setting == "FAIRLOCK":
        for each in _client:
            each.close()
        _client.clear()
        _async_clients.clear()


setting_changed.connect(_forget)

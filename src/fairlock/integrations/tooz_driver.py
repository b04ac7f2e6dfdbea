"""tooz: the locks and groups of tooz.coordination on the stores of fairlock. tooz finds the driver by its entry points.

    tooz.coordination.get_coordinator("fairlock+redis://host", b"worker-1")     # any URL of fairlock after fairlock+
    tooz.coordination.get_coordinator("fairlock://", b"worker-1")               # the URL in FAIRLOCK_URL

It has locks, exclusive and shared, and groups (tooz_groups.py). Leases renew themselves, so it needs no heartbeat.
"""

from __future__ import annotations

from typing import Any

from tooz import coordination, locking

import fairlock
from fairlock import Lease, LeaseLost, Locks, StoreError

from .tooz_groups import Groups, as_text


class FairlockDriver(Groups):
    """A coordinator on a store of fairlock."""

    CHARACTERISTICS = (
        coordination.Characteristics.DISTRIBUTED_ACROSS_THREADS,
        coordination.Characteristics.DISTRIBUTED_ACROSS_PROCESSES,
        coordination.Characteristics.LINEARIZABLE,
    )

    def __init__(self, member_id: bytes, parsed_url: Any, options: dict[str, Any]) -> None:
        super().__init__(member_id, parsed_url, options)
        scheme = parsed_url.scheme.removeprefix("fairlock").removeprefix("+")
        query = f"?{parsed_url.query}" if parsed_url.query else ""
        self._url = f"{scheme}://{parsed_url.netloc}{parsed_url.path}{query}" if scheme else None

    def _start(self) -> None:
        self._locks = fairlock.connect(self._url, owner=as_text(self._member_id))
        try:
            self._locks.ping()
        except StoreError as down:
            self._locks.close()
            raise coordination.ToozConnectionError(str(down)) from down

    def _stop(self) -> None:
        self._client().close()
        self._locks = None
        self._memberships.clear()
        self._terms.clear()

    def get_lock(self, name: bytes) -> FairlockLock:
        """Return a lock of this name. It may be acquired after `start`."""
        return FairlockLock(name, self._client())


class FairlockLock(locking.Lock):
    """A lock of tooz: exclusive, or with shared=True together with others that share it."""

    def __init__(self, name: bytes, locks: Locks) -> None:
        super().__init__(name)
        self._locks = locks
        self._resource = locks.rwlock(fairlock.safe_name(as_text(name)), local_handoff=False)
        self._leases: list[Lease] = []

    @property
    def acquired(self) -> bool:
        return self.is_still_owner()

    def acquire(self, blocking: bool | float = True, shared: bool = False, timeout: float | None = None) -> bool:
        """Return True if it is acquired. `blocking` may be a number of seconds, as in tooz."""
        if blocking is True:
            limit = timeout
        else:
            limit = float(blocking)
        lock = self._resource.read() if shared else self._resource.write()
        try:
            lease = lock.acquire(timeout=limit)
        except StoreError as down:
            raise coordination.ToozConnectionError(str(down)) from down
        if lease is not None:
            self._leases.append(lease)
        return lease is not None

    def release(self) -> bool:
        """Release the newest hold of this object. Return False if there is none, or if it was lost."""
        if not self._leases:
            return False
        try:
            self._leases.pop().release()
        except LeaseLost:
            return False
        return True

    def break_(self) -> bool:
        """Evict all holders at once. Return False if there was none."""
        return bool(self._locks.evict(self._resource.name, reason="break_() of tooz", at_once=True))

    def is_still_owner(self) -> bool:
        """Return True if this object holds it, by this client's clock."""
        return any(lease.held for lease in self._leases)


"""Idempotency keys for threads: the first call with a key runs, later ones get its result (idempotent_base.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..engine.run_sync import run
from ..engine.validate import Seconds
from ..sync import Lease, Locks
from .idempotent_base import IdempotentBase

R = TypeVar("R")
DAY = 86400.0


class Idempotent(IdempotentBase[Locks]):
    """Results by key, in every process that uses this name.

        payments = locks.idempotent("payments")
        receipt = payments.run("order-42", lambda lease: charge(42, fence=lease.fence))

    """

    def run(
        self, key: str, function: Callable[[Lease], R], *, keep: Seconds = DAY, timeout: Seconds | None = None
    ) -> R:
        """Return the stored result of this key, or call function(lease), store its result as JSON and return that.

        If another call with this key is running, wait for it, at most `timeout` seconds: then InProgress. If its
        process dies, exactly one of those that wait runs the function, with a greater fence. An exception is not
        stored: the next call runs the function. The result is kept for `keep` seconds of the store's clock. LeaseLost
        if the lease was lost while the function ran: its result is not stored. ConfigError if the result is not JSON,
        or larger than 64 KiB.
        """
        result: R = run(self._run(key, function, keep, timeout))
        return result


idempotent = Idempotent

"""Idempotency keys for tasks: the first call with a key runs, later ones get its result (idempotent_base.py)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ...aio import Lease, Locks
from ...engine.validate import Seconds
from ..idempotent import DAY
from ..idempotent_base import IdempotentBase

R = TypeVar("R")


class Idempotent(IdempotentBase[Locks]):
    """Results by key, in every process that uses this name.

        payments = locks.idempotent("payments")
        receipt = await payments.run("order-42", charge)       # charge(lease) is a coroutine function

    The same as `fairlock.recipes.Idempotent`, with a client of fairlock.aio.
    """

    async def run(
        self,
        key: str,
        function: Callable[[Lease], Awaitable[R]],
        *,
        keep: Seconds = DAY,
        timeout: Seconds | None = None,
    ) -> R:
        """Return the stored result of this key, or await function(lease), store its result as JSON and return that.

        If another call with this key is running, wait for it, at most `timeout` seconds: then InProgress. If its
        process dies, exactly one of those that wait runs the function, with a greater fence. An exception is not
        stored: the next call runs the function. The result is kept for `keep` seconds of the store's clock. LeaseLost
        if the lease was lost while the function ran, which cancels it: there is no result. ConfigError if the result
        is not JSON, or larger than 64 KiB.
        """
        result: R = await self._run(key, function, keep, timeout)
        return result


idempotent = Idempotent

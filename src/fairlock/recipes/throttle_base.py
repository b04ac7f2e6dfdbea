"""A throttle, written once for threads and asyncio: at most that many starts in any window of time, over all machines.

A start takes a slot of the semaphore `throttle:NAME` and releases it at once; by `at_least` the slot stays closed for
the window. The caller starts after that, so a process that is killed has either not started or keeps its slot closed.

**Exactly.** The store counts the window of a slot from its grant, and the caller starts a little later, after the
replies to two requests. So the slot stays closed a little longer than the window, by `slack`. The second reply says
until when. A caller for which that is less than the window (it was stopped, the store was slow) closes the slot for
longer, by one more request; if even that is late, it does not start but takes another slot. The slack then doubles, and
shrinks again with each start that was quick enough.

Rejected alternatives: to count the window from the moment when the caller knows of its grant (the way of that reply is
then lost for each start: under load a twelfth of the limit), a counter for each window (twice the limit around its
end), a token bucket (a burst of the limit, and then again the limit in the same window), a slot that is held while the
caller works (a crash frees it at once).
"""

from __future__ import annotations

from typing import Any, Generic

from ..engine import validate
from ..engine.name_from_text import safe_name
from ..engine.validate import OWN, SMALLEST_LEASE, Seconds
from ..errors import LeaseLost, LockTimeout
from ..rules.locks import Detach, Granted
from .await_if_needed import Client, await_if_needed

SLACK = 0.02  # of the window
LEAST = 0.0005  # seconds: no reply comes sooner
MOST = 2.0  # seconds of slack, also for a window that is shorter than the way to the store
CALM = 0.98  # a start that was quick enough shrinks a greater slack by this factor


class ThrottleBase(Generic[Client]):
    """Starts at a limited rate, without the part that waits."""

    def __init__(
        self, locks: Client, name: str, limit: int, *, per: Seconds, timeout: Seconds | None = None
    ) -> None:
        self.name = validate.name(name)
        self.limit = validate.slots(limit)
        self._per = validate.seconds(per, "per")
        self._timeout = validate.timeout(timeout)
        self._locks: Any = locks
        self._slots = safe_name(f"throttle:{name}")
        self._lease = max(min(locks.session.default_lease, self._per), SMALLEST_LEASE)
        self._slack = self._least = max(self._per * SLACK, LEAST)

    async def _wait(self, weight: int, timeout: Seconds | None) -> bool:
        """Return True if the caller may start now; False: not in time."""
        limit = self._timeout if timeout is OWN else validate.timeout(timeout)
        session = self._locks.session
        until = None if limit is None else session.clock() + limit
        while True:
            slack = self._slack
            slots = self._locks.semaphore(self._slots, self.limit, lease=self._lease, at_least=self._per + slack)
            rest = None if until is None else max(until - session.clock(), 0.0)
            lease = await await_if_needed(slots.acquire(timeout=rest, weight=weight))
            if lease is None:
                return False
            try:
                await await_if_needed(lease.release())
            except LeaseLost:
                continue
            if session.clock() + self._per <= getattr(lease, "_closed_until", 0.0):
                self._slack = max(slack * CALM, self._least)
                return True
            self._slack = min(max(self._slack, 2 * slack), max(self._per, MOST))
            late = session.clock() - lease._since + self._slack
            longer = Detach(lease.ticket, lease.fence, int((self._per + slack + late) * 1e6), closed=True)
            reply, at, _ = await self._locks._session.call(self._slots, longer)
            if isinstance(reply, Granted):
                until_then = at + reply.left / 1e6 - self._locks._session.backend.skew
                if session.clock() + self._per <= until_then:
                    return True

    async def _wait_or_raise(self, weight: int) -> None:
        if not await self._wait(weight, OWN):
            error = LockTimeout(
                f"{self.name!r} has no start left: {self.limit} in {self._per:g} s; you waited {self._timeout:g} s."
            )
            error.name, error.waited = self.name, self._timeout or 0.0
            raise error

    def __repr__(self) -> str:
        return f"<Throttle {self.name!r} {self.limit} in {self._per:g} s>"

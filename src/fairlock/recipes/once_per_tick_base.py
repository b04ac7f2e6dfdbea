"""Once per tick, written once for threads and asyncio: one execution per hour (or day, or minute) over all machines.

The state of a name is one item of a pool, `once:NAME`: the tick of the last execution, how often it was tried, and
whether it was done. The client that acquires the item decides by the store's clock, while no other can. The number of
tries is stored before the execution begins, so a crash counts, and the tick is free for another try when the lease has
ended.

After an execution the item rests until shortly before the next tick, so that most calls in between are one request.
Nothing depends on that: a call that comes early finds the tick done.

Rejected alternatives: a lock with at_least (a crash frees it, and then it runs twice or never; the tick would begin
with the first call, and wander); an item for each tick (they would never end); the clocks of the machines.
"""

from __future__ import annotations

from typing import Any

from ..engine import validate
from ..engine.name_from_text import safe_name
from ..engine.validate import Seconds
from ..errors import ConfigError
from .await_if_needed import EitherBlock, await_if_needed, release_quietly
from .entered_by_caller import EnteredByCaller
from .tick_schedule import Tick, Ticks

KEY = "run"
EARLY = 1_000_000  # microseconds before the next tick at which the item is free again, or a tenth of the tick
LOOK = 1.0  # seconds between two looks at an execution that another process is at


class OnceBase:
    """One execution per tick, without the part that waits."""

    def __init__(
        self,
        locks: Any,
        name: str,
        *,
        every: Seconds | None,
        cron: str | None,
        tries: int,
        timeout: Seconds | None,
        lease: Seconds | None,
    ) -> None:
        self.name = validate.name(name)
        self._ticks = Ticks(every, cron)
        if type(tries) is not int or tries < 1:
            raise ConfigError(f"tries is a whole number from 1 up, not {validate.shown(tries)}.")
        self._tries = tries
        self._timeout = validate.timeout(timeout)
        self._locks = locks
        span = locks.session.default_lease if lease is None else lease
        self._pool = locks.pool(safe_name(f"once:{name}"), lease=span)
        self._entered = EnteredByCaller(locks.session.runtime.current, f"once({self.name!r})")

    async def _begin(self) -> Any:
        """Return the item if this process is to execute the tick now, else None."""
        item = await self._acquire()
        if item is None:
            return None
        try:
            tick = self._ticks.at(await self._now())
            body = item.body or {}
            same = body.get("tick") == tick.start
            tried = body["tries"] if same else 0
            if body.get("tick", 0) > tick.start or (same and (body["done"] or tried >= self._tries)):
                await await_if_needed(item.release(after=await self._rest(tick)))
                return None
            await await_if_needed(item.update({"tick": tick.start, "tries": tried + 1, "done": False}))
        except BaseException:
            await self._locks.session.runtime.shield(release_quietly([item]))
            raise
        return item

    async def _acquire(self) -> Any:
        """Return the item, or None if the tick is done, or not free within the timeout."""
        session = self._locks.session
        until = None if self._timeout is None else session.clock() + self._timeout
        item = await await_if_needed(self._pool.acquire(False, key=KEY))
        while item is None:
            found = await session.read_item(self._pool.name, KEY)  # a read: this may be asked very often
            if found is None:  # the first use of this name
                await await_if_needed(self._pool.add(KEY))
                item = await await_if_needed(self._pool.acquire(False, key=KEY))
                continue
            rest = LOOK if until is None else min(until - session.clock(), LOOK)
            if rest <= 0 or not found.ticket:
                return None  # another process is at it; or it rests: the tick is done
            item = await await_if_needed(self._pool.acquire(timeout=rest, key=KEY))
        return item

    async def _done(self, item: Any) -> None:
        """Note that the tick is done, and release the item."""
        body = item.body
        rest = await self._rest(self._ticks.at(body["tick"]))
        await await_if_needed(item.release({**body, "done": True}, after=rest))

    async def _rest(self, tick: Tick) -> float:
        """Return the seconds until shortly before the next tick."""
        early = min(EARLY, (tick.end - tick.start) // 10)
        return max(tick.end - early - await self._now(), 0) / 1e6

    async def _now(self) -> int:
        """Return the store's clock, in microseconds."""
        now: int = (await self._locks.session.read(self._pool.name))[1]
        return now

    async def _enter(self) -> Any:
        item = await self._begin()
        if item is not None:
            await EitherBlock(item).__aenter__()
        self._entered.push(item)
        return item

    async def _leave(self, error: BaseException | None) -> None:
        """A clean block has executed the tick; after a failed one it is free for another try."""
        item = self._entered.pop()
        if item is None:
            return
        try:
            if error is None and item.held:
                await self._done(item)
        except BaseException as worse:
            await EitherBlock(item).__aexit__(type(worse), worse, None)
            raise
        await EitherBlock(item).__aexit__(None if error is None else type(error), error, None)

    def __repr__(self) -> str:
        return f"<Once {self.name!r}>"

"""Once per tick, written once for threads and asyncio: one execution per hour (or day, or minute) over all machines.

The state of a name is one item of a pool, `once:NAME`: the tick of the last execution, how often it was tried, and
whether it was done. The client that acquires the item decides by the store's clock, while no other can. The number of
tries is stored before the execution begins, so a crash counts, and the tick is free for another try when the lease has
ended.

A call reads the item first, so one that comes after the execution writes nothing. The end of the `with` block notes
that the tick is done by the message that releases the item: if the store is down just then, the keeper repeats it.

Rejected alternatives: an item that rests until the next tick (another `every` would count only after that); a lock
with at_least (a crash frees it, and then it runs twice or never; the tick would begin with the first call, and wander);
an item for each tick (they would never end); the clocks of the machines.
"""

from __future__ import annotations

import json
from typing import Any, Generic

from ..engine import validate
from ..engine.name_from_text import safe_name
from ..engine.pool_admin import body_text
from ..engine.validate import Seconds
from ..errors import ConfigError
from .await_if_needed import Client, EitherBlock, await_if_needed, release_quietly
from .entered_by_caller import EnteredByCaller
from .tick_schedule import Ticks

KEY = "run"
LOOK = 1.0  # seconds between two looks at an execution that another process is at


class OnceBase(Generic[Client]):
    """One execution per tick, without the part that waits."""

    def __init__(
        self,
        locks: Client,
        name: str,
        *,
        every: Seconds | None = None,
        cron: str | None = None,
        tries: int = 2,
        timeout: Seconds | None = 0,
        lease: Seconds | None = None,
    ) -> None:
        self.name = validate.name(name)
        self._ticks = Ticks(every, cron)
        if type(tries) is not int or tries < 1:
            raise ConfigError(f"tries is a whole number from 1 up, not {validate.shown(tries)}.")
        self._tries = tries
        self._timeout = validate.timeout(timeout)
        self._locks: Any = locks
        span = locks.session.default_lease if lease is None else lease
        self._pool = locks.pool(safe_name(f"once:{name}"), lease=span)
        self._entered = EnteredByCaller(locks.session.runtime.current, f"once({self.name!r})")

    async def _begin(self) -> Any:
        """Return the item if this process is to execute the tick now, else None."""
        item = await self._acquire()
        if item is None:
            return None
        try:
            body = await self._begun(item.body)
            if body is None:
                await await_if_needed(item.release())
                return None
            await await_if_needed(item.update(body))
        except BaseException:
            await self._locks.session.runtime.shield(release_quietly([item]))
            raise
        return item

    async def _acquire(self) -> Any:
        """Return the item, or None if the tick is done, or not free within the timeout."""
        session = self._locks.session
        until = None if self._timeout is None else session.clock() + self._timeout
        rest = 0.0
        while True:
            found = await session.read_item(self._pool.name, KEY)
            if found is None:  # the first use of this name
                await await_if_needed(self._pool.add(KEY))
            elif await self._begun(json.loads(found.body)) is None:
                return None
            item = await await_if_needed(self._pool.acquire(timeout=rest, key=KEY))
            if item is not None:
                return item
            rest = LOOK if until is None else min(until - session.clock(), LOOK)
            if rest <= 0:
                return None  # another process is at it

    async def _begun(self, body: Any) -> dict[str, Any] | None:
        """Return the state after one more try of the present tick has begun; None if there is none to begin."""
        tick = self._ticks.at((await self._locks.session.read(self._pool.name))[1]).start
        before = body or {"tick": -1}
        if before["tick"] != tick:
            return {"tick": tick, "tries": 1, "done": False} if before["tick"] < tick else None
        return None if before["done"] or before["tries"] >= self._tries else {**before, "tries": before["tries"] + 1}

    async def _enter(self) -> Any:
        item = await self._begin()
        if item is not None:
            await EitherBlock(item).__aenter__()
        self._entered.push(item)
        return item

    async def _leave(self, error: BaseException | None) -> None:
        """A clean block has executed the tick; after a failed one it is free for another try."""
        item = self._entered.pop()
        if item is not None:
            item._last_body = body_text({**item.body, "done": True})
            await EitherBlock(item).__aexit__(None if error is None else type(error), error, None)

    def __repr__(self) -> str:
        return f"<Once {self.name!r}>"

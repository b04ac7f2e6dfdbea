"""Pools over every store that can compare and swap a row: the items each in a row of their own, the line in one more.

One order is several writes here, and a process may die between any two. So they come in an order in which that costs
little:

- Whoever adds or gives back writes the item first and then looks at the line; whoever finds nothing stands in line
  first and then looks again. One of the two always sees the other, so nothing is added past somebody who waits.
- Only the first in line takes: for himself, and for those behind him while something is due. The item's row first, with
  their ticket and for WINDOW, then the line's row without them, then their wake-ups. If he dies in between, the item is
  due again after WINDOW, and whoever it was meant for still has his place.
- Whoever polls and stands in line no more was given something, most likely: it is due within WINDOW and has his ticket.

The items are on a shelf: `item_rows` has one for every store that can find rows by their score.
"""

import os
from collections.abc import Awaitable, Collection, Coroutine, Sequence
from typing import Any, TypeVar

from ..doorman import Wake
from ..errors import BackendError, RecordDamaged
from ..pool import (
    WINDOW,
    Added,
    Command,
    Finish,
    Finished,
    Give,
    Given,
    Gone,
    Hint,
    Item,
    Line,
    Nothing,
    On,
    Order,
    Put,
    Quit,
    Remove,
    Removed,
    Reply,
    Seek,
    Take,
    Taken,
    Touched,
    Waiting,
    apply,
)
from ..pool import line as lines
from ..pool.wire import decode_line, encode_line
from .contract import Colour, Row, Seen, Store, Unknown, Written, unanswered
from .damage import damaged
from .names import SEPARATOR, line_key
from .pool_contract import PoolAnswer, PutAndLook, SeenItem, Shelf

CONFLICTS = 400  # more in a row than any real crowd causes: something else is wrong
T = TypeVar("T")

REMEMBERED = 1024  # items that were taken
SERVED = 16  # of those behind him the first in line serves so many in one step


def pools_of(store: Store, colour: Colour, prefix: str) -> "CasPools | None":
    """The pools of this store; None if it keeps none."""
    shelf: Shelf | None = getattr(store, "items", None)
    if shelf is None and hasattr(store, "between"):
        from .item_rows import Rows

        shelf = Rows(store)
    return CasPools(store, shelf, colour, prefix) if shelf is not None else None


class CasPools:
    def __init__(self, store: Store, shelf: Shelf, colour: Colour, prefix: str) -> None:
        self.store = store
        self.shelf = shelf
        self.colour = colour
        self.prefix = prefix
        self._ahead: dict[str, str] = {}  # by ticket: the ear of the first in line, whose death concerns him
        self._mine: dict[tuple[str, str], Item] = {}  # by pool and key: what was taken, as it was written
        self._knows: bool = getattr(shelf, "by_content", False)
        self._looks: PutAndLook | None = getattr(shelf, "put_and_look", None)
        self._tried = ""  # the ticket by which something was sought a moment ago, and nothing found

    async def ask(self, pool: str, order: Order) -> PoolAnswer:
        at = self.colour.clock()
        name = self.prefix + pool
        if isinstance(order, Put):
            return PoolAnswer(await self._put(name, order), at)
        if isinstance(order, On):
            return await self._on(name, order.key, order.command)
        if isinstance(order, Quit):
            return PoolAnswer(await self._quit(name, order), at)
        return await (self._seek_named(name, order) if order.key else self._seek(name, order))

    def at_once(self, pool: str, order: Order) -> PoolAnswer | None:
        if not self._knows or not self.colour.blocking:
            return None
        name = self.prefix + pool
        try:
            if type(order) is Seek:
                if order.key or order.again:
                    return None
                got = through(self._take_due(name, take_of(order), line_key(name)))
                if got is None:
                    self._tried = order.ticket
                return PoolAnswer(*got) if got is not None else None
            if type(order) is On and (name, order.key) in self._mine:
                return through(self._on(name, order.key, order.command))
        except BackendError:
            pass  # nothing was done: who asks again is told
        return None

    async def changed(self, pool: str, ticket: str, timeout: float) -> None:
        ears = {ear for ear in (self._ahead.get(ticket, ""),) if ear}
        await self.store.changed(line_key(self.prefix + pool), ticket, timeout, ears)

    async def all(self, pool: str) -> tuple[list[Item], int]:
        return await self._shown(self.shelf.all(self.prefix + pool))

    async def count(self, pool: str) -> dict[str, int]:
        return await self._shown(self.shelf.count(self.prefix + pool))

    async def line(self, pool: str) -> Line:
        return (await self._shown(self._line(self.prefix + pool)))[0]

    async def repair(self, pool: str) -> list[str]:
        name = self.prefix + pool
        done: list[str] = []
        seen = await self._shown(self.store.read(line_key(name)))
        try:
            self._decoded(name, seen.row.body if seen.row is not None else None)
        except RecordDamaged:
            row = Row(line_key(name), 0, "", encode_line(Line(places=seen.now, seen=seen.now)))
            replace = getattr(self.store, "replace", self.store.write)
            await self._shown(replace(row, seen.version, seen.now, ()))
            done.append(f"The queue of the pool {pool!r} was emptied; its workers join again by themselves.")
        mend = getattr(self.shelf, "repair", None)
        for key in await self._shown(mend(name)) if mend is not None else ():
            done.append(f"The item {key!r} of the pool {pool!r} was set aside as done, with what is left of its body.")
        return done

    async def _shown(self, reading: Awaitable[T]) -> T:
        try:
            return await reading
        except Unknown as doubt:
            raise unanswered(self.store.where, doubt) from None

    # -- items

    async def _put(self, pool: str, order: Put) -> Added:
        new = await self.shelf.add(pool, order.rows, order.first)
        if new:
            await self._stir(pool, {key for key, _ in order.rows})
        return Added(new)

    async def _on(self, pool: str, key: str, command: Command) -> PoolAnswer:
        if self._looks is not None and type(command) is Finish:
            done = await self._finish(pool, key, command, self._looks)
            if done is not None:
                return done
        reply, at, again = await self._apply(pool, key, command)
        if isinstance(reply, Given | Finished | Removed) and isinstance(command, Give | Finish | Remove):
            await self._stir(pool, {key}, isinstance(command, Give))
        return PoolAnswer(reply, at, again)

    async def _finish(self, pool: str, key: str, command: Finish, put: "PutAndLook") -> PoolAnswer | None:
        """In one step with the look at the line, for at most somebody who wants this very item is to be told; and if he
        comes just then and is overlooked, he looks for himself before long. None: it takes more."""
        seen = self._known(pool, key)
        if seen is None:
            return None
        item, reply = apply(seen.item, command, seen.now, key)
        if not isinstance(reply, Finished) or item is None or item == seen.item:
            return None
        done, text = await put(pool, key, item, seen, line_key(pool))
        if not done:
            return None
        line = self._decoded(pool, text)
        if line.watchers:
            await self._wake(lines.hints(line, line, line, {key}, False))
        return PoolAnswer(reply, seen.at)

    def _known(self, pool: str, key: str) -> SeenItem | None:
        """What is known of this one without asking, to be used once: only its end tells what is there."""
        item = self._mine.pop((pool, key), None)
        sample = self.store.now() if item is not None else None
        return SeenItem(item, None, *sample) if sample is not None else None

    async def _apply(self, pool: str, key: str, command: Command) -> tuple[Reply, float, bool]:
        settle = again = False
        known = self._known(pool, key)
        for turn in range(CONFLICTS):
            seen = known or await self.shelf.get(pool, key, settle)
            item, reply = apply(seen.item, command, seen.now, key)
            if item == seen.item:
                if known is None:
                    return reply, seen.at, again
                known = None  # it would change nothing that a comparison could contradict
                continue
            known = None
            try:
                if await self.shelf.put(pool, key, item, seen):
                    if self._knows and item is not None and isinstance(reply, Touched):
                        self._mine[pool, key] = item
                    return reply, seen.at, again
            except Unknown:
                if again:
                    raise
                settle = again = True
            await self._give_way(turn)
        raise self._crowded(pool, key)

    async def _take_due(self, pool: str, take: Take, line: str = "") -> tuple[Taken, float] | None:
        """Take what has been due for longest. With a line: only if nobody stands in it."""
        seen = await self.shelf.take(pool, take, line)
        if seen is None or seen.item is None:
            return None
        item = seen.item
        if self._knows and not take.window:
            if len(self._mine) >= REMEMBERED:
                self._mine.clear()
            self._mine[pool, item.key] = item
        return Taken(item.fence, item.score - seen.now, item.body, item.key), seen.at

    # -- the line

    async def _line(self, pool: str, settle: bool = False) -> tuple[Line, Seen]:
        seen = await self.store.read(line_key(pool), settle)
        return self._decoded(pool, seen.row.body if seen.row is not None else None), seen

    def _decoded(self, pool: str, text: str | None) -> Line:
        try:
            return decode_line(text)
        except ValueError as bad:
            name = pool.removeprefix(self.prefix)
            raise damaged(name, self.store.where, bad, f"The queue of the pool {name!r}") from None

    def _settled(self, line: Line, now: int, asker: str) -> Line:
        """Less the silent, and less those at its head whose process is gone: nobody else decides anything."""
        line = lines.settle(line, now, asker)
        while line.workers and line.workers[0].ticket != asker and self._is_dead(line.workers[0].ear):
            line = line._replace(workers=line.workers[1:])
        return line

    def _is_dead(self, ear: str) -> bool:
        return bool(ear) and ear != self.store.ear and bool(self.store.silent((ear,))[1])

    async def _write_line(self, pool: str, line: Line, seen: Seen) -> bool:
        owner = line.workers[0].owner if line.workers else ""
        row = Row(line_key(pool), len(line.workers), owner, encode_line(line))
        return isinstance(await self.store.write(row, seen.version, seen.now, ()), Written)

    async def _leave_line(self, pool: str, tickets: Collection[str], asker: str, served: Sequence[Hint] = ()) -> None:
        """Take these out of the line, and wake who was given something and who is first now."""
        settle = False
        for turn in range(CONFLICTS):
            before, seen = await self._line(pool, settle)
            settled = self._settled(before, seen.now, asker)
            after = lines.without(settled, tickets)
            if (after.workers, after.watchers) == (before.workers, before.watchers):
                break
            try:
                if await self._write_line(pool, after, seen):
                    hints = [h for h in lines.hints(before, after, after, asker=asker) if h not in served]
                    await self._wake([*served, *hints])
                    return
            except Unknown:
                if settle:
                    raise
                settle = True
            await self._give_way(turn)
        await self._wake(served)

    async def _stir(self, pool: str, keys: Collection[str], given: bool = True) -> None:
        """Something has changed: wake the first in line who lives, and those who watch these items."""
        line, seen = await self._line(pool)
        if not line.workers and not line.watchers:
            return
        line = self._settled(line, seen.now, "")
        await self._wake(lines.hints(line, line, line, keys, given))

    async def _wake(self, hints: Sequence[Hint]) -> None:
        if hints:
            try:
                await self.store.wake([Wake(hint.ear, hint.ticket) for hint in hints])
            except (Unknown, BackendError):
                pass  # they look for themselves before long

    # -- seeking

    async def _seek(self, pool: str, seek: Seek) -> PoolAnswer:
        take = take_of(seek)
        if not seek.again and seek.ticket != self._tried:
            got = await self._take_due(pool, take, line_key(pool))
            if got is not None:
                return PoolAnswer(*got)
        settle = doubt = joined = False
        for turn in range(CONFLICTS):
            before, seen = await self._line(pool, settle)
            line = self._settled(before, seen.now, seek.ticket)
            stands = line.standing(seek.ticket) is not None
            if seek.again and not stands:
                answer = await self._handed(pool, take)
                if answer is not None:
                    return answer
            tried = not seek.again and not turn and not before.workers
            if lines.is_first(line, seek.ticket) and not tried:
                got = await self._take_due(pool, take)
                if got is not None:
                    await self._serve_others(pool, line, seek.ticket, stands)
                    self._ahead.pop(seek.ticket, None)
                    return PoolAnswer(*got, doubt)
            if not seek.wait and not stands:
                return PoolAnswer(Nothing(), seen.at)
            if joined:
                return await self._wait(pool, line, seek, seen)
            stood = lines.stand(line, seek, seen.now)
            try:
                if await self._write_line(pool, stood, seen):
                    await self._wake(lines.hints(before, stood, stood, asker=seek.ticket))
                    if stands or not lines.is_first(stood, seek.ticket):
                        return await self._wait(pool, stood, seek, seen)
                    joined = True  # and now look again: something may have been added before anybody could see him
                    continue
            except Unknown:
                if doubt:
                    raise
                settle = doubt = True
            await self._give_way(turn)
        raise self._crowded(pool, "its line")

    async def _handed(self, pool: str, take: Take) -> PoolAnswer | None:
        """What was given to him while he stood in line, or by an order of his whose answer was lost."""
        mine = await self.shelf.of(pool, take.ticket, max(take.lease, WINDOW))
        if mine is None or mine.item is None:
            return None
        reply, at, again = await self._apply(pool, mine.item.key, take)
        return PoolAnswer(reply._replace(key=mine.item.key), at, again) if isinstance(reply, Taken) else None

    async def _wait(self, pool: str, line: Line, seek: Seek, seen: Seen) -> PoolAnswer:
        ahead = line.standing(seek.ticket)
        assert ahead is not None
        if len(self._ahead) > 1000:
            self._ahead.clear()
        self._ahead[seek.ticket] = line.workers[0].ear if ahead else ""
        span = lines.sleep_span(ahead)
        if not ahead:
            span = await self.shelf.coming(pool, span) or span
        return PoolAnswer(Waiting(ahead, line.workers[ahead].place, span), seen.at)

    async def _serve_others(self, pool: str, line: Line, asker: str, stood: bool) -> None:
        """He has something. Those behind him get what else is due; then they and he leave the line."""
        served: list[Hint] = []
        for w in line.workers[:SERVED]:
            if w.ticket == asker or self._is_dead(w.ear):
                continue
            if await self._take_due(pool, Take(w.ticket, w.lease, w.owner, w.note, WINDOW)) is None:
                break
            served.append(Hint(w.ear, w.ticket))
        if stood or served:
            await self._leave_line(pool, {asker, *(h.ticket for h in served)}, asker, [h for h in served if h.ear])

    async def _seek_named(self, pool: str, seek: Seek) -> PoolAnswer:
        take = take_of(seek)
        watched = False
        for turn in range(CONFLICTS):
            reply, at, again = await self._apply(pool, seek.key, take)
            if isinstance(reply, Taken | Finished) or not seek.wait:
                if seek.again or watched:
                    await self._leave_line(pool, {seek.ticket}, seek.ticket)
                return PoolAnswer(reply._replace(key=seek.key) if isinstance(reply, Taken) else reply, at, again)
            if watched:
                return PoolAnswer(reply, at, again)
            before, seen = await self._line(pool)
            known = any(w.ticket == seek.ticket for w in before.watchers)
            line = self._settled(before, seen.now, seek.ticket)
            if await self._write_line(pool, lines.stand(line, seek, seen.now), seen):
                if known:
                    return PoolAnswer(reply, at, again)
                watched = True  # and now look again: it may have changed before anybody could see him
            else:
                await self._give_way(turn)
        raise self._crowded(pool, seek.key)

    async def _quit(self, pool: str, order: Quit) -> Gone:
        await self._leave_line(pool, {order.ticket}, order.ticket)
        self._ahead.pop(order.ticket, None)
        mine = await self.shelf.of(pool, order.ticket, max(order.lease, WINDOW))
        if mine is not None and mine.item is not None:
            await self._on(pool, mine.item.key, Give(order.ticket, mine.item.fence))
        return Gone()

    async def _give_way(self, turn: int) -> None:
        if turn >= 3:
            await self.colour.sleep(int.from_bytes(os.urandom(2)) / 65536 * min(0.0001 * turn, 0.002))

    def _crowded(self, pool: str, what: str) -> BackendError:
        name = pool.rpartition(SEPARATOR)[2]
        return BackendError(
            f"{what!r} of {name!r} changed {CONFLICTS} times while one step was tried. "
            "Spread the work over more pools, or use a store with a server."
        )


def take_of(seek: Seek) -> Take:
    return Take(seek.ticket, seek.lease, seek.owner, seek.note)


def through(work: Coroutine[Any, Any, T]) -> T:
    """Under the thread colour nothing ever suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a step for threads was to be waited for")

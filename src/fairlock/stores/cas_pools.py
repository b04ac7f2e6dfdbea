"""Pools over every store that can compare and swap a row: each item in a row of its own, the queue in one more.

One order is several writes here, and a process may die between any two. So they come in an order in which that costs
little:

- A client that adds an item or gives one back writes the item first and then reads the queue; a client that finds no
  item joins the queue first and then looks again. One of the two always sees the other, so no waiter is passed over.
- Only the first in the queue takes: for itself, and for those behind it while items are due. The item's row is written
  first, with their ticket and for CONFIRM_WINDOW, then the queue's row without them, then their wake-ups are sent. If
  it dies in between, the item is due again after CONFIRM_WINDOW, and its worker still has its place.
- A worker that polls and is no longer in the queue was most likely given an item, which is due within CONFIRM_WINDOW
  and has its ticket.

The items are in an `ItemStore`: `pool_items_as_rows` has one for every store that can find rows by their score.
"""

from collections.abc import Collection, Coroutine, Sequence
from typing import Any, TypeVar

from ..errors import LockError, RecordDamaged, StoreError
from ..rules.locks import Wakeup
from ..rules.pools import (
    CONFIRM_WINDOW,
    Added,
    Command,
    Finish,
    Finished,
    Give,
    Given,
    ItemState,
    Nothing,
    On,
    Order,
    Put,
    Queued,
    Quit,
    Remove,
    Removed,
    Reply,
    Revoked,
    Seek,
    Take,
    Taken,
    Touch,
    Touched,
    WorkerQueue,
    apply,
)
from ..rules.pools import queue as queues
from ..rules.pools.codec import decode_queue, encode_queue
from .base import (
    CONFLICTS,
    ItemSnapshot,
    ItemStore,
    ItemWrite,
    OutcomeUnknown,
    PoolAnswer,
    Pools,
    Row,
    RowSnapshot,
    Runtime,
    Store,
    Written,
    crowded,
    fill_gaps,
    replied,
)
from .damaged_records import damaged
from .jitter import jitter
from .keys import SEPARATOR, glob, queue_key, split_key
from .wakeups import send_wakeups

T = TypeVar("T")

REMEMBERED = 1024  # items that were taken
SERVED = 16  # the first in the queue serves this many of those behind it in one step


class CasPools(Pools):
    def __init__(self, store: Store, item_store: ItemStore, runtime: Runtime, prefix: str) -> None:
        self.store = store
        self.item_store = item_store
        self.runtime = runtime
        self.prefix = prefix
        self.batch_size = item_store.batch_size
        self._ahead: dict[str, str] = {}  # by ticket: the listener of the first in its queue
        self._mine: dict[tuple[str, str], ItemState] = {}  # by pool and key: what was taken, as it was written
        self._tried = ""  # the ticket by which something was sought a moment ago, and nothing found

    async def call(self, pool: str, order: Order) -> PoolAnswer:
        at = self.runtime.clock()
        name = self.prefix + pool
        if isinstance(order, Put):
            return PoolAnswer(await self._put(name, order), at)
        if isinstance(order, On):
            return await self._on(name, order.key, order.command)
        if isinstance(order, Quit):
            return PoolAnswer(await self._quit(name, order), at)
        return await (self._seek_named(name, order) if order.key else self._seek(name, order))

    async def call_many(self, calls: Sequence[tuple[str, On]]) -> list[PoolAnswer | OutcomeUnknown | LockError]:
        """Renew these items: read them all, write them all. What is not so simple is left to `call`.

        A store that skips locked rows does the same with one item that is given back: it must not wait for the end of a
        transaction that has sealed it.
        """
        names = [(self.prefix + pool, order.key) for pool, order in calls]
        simple = (Touch, Give, Finish) if self.store.skips_locked else (Touch,)
        if (len(calls) == 1 or self.batch_size == 1) and not self.store.skips_locked:
            return await super().call_many(calls)
        if any(type(order.command) not in simple for _, order in calls) or len(set(names)) < len(names):
            return await super().call_many(calls)
        outcomes: list[PoolAnswer | OutcomeUnknown | LockError | None] = [None] * len(calls)
        try:
            writes: list[tuple[int, ItemWrite, Reply]] = []
            for number, seen in enumerate(await self.item_store.get_many(names)):
                if isinstance(seen, Exception):
                    outcomes[number] = seen
                    continue
                pool, key = names[number]
                item, reply = apply(seen.item, calls[number][1].command, seen.now, key)
                if item == seen.item:
                    outcomes[number] = PoolAnswer(reply, seen.at)
                elif item is not None:
                    writes.append((number, ItemWrite(pool, item, seen), reply))
            written = await self.item_store.put_many([write for _, write, _ in writes]) if writes else []
            for (number, write, reply), done in zip(writes, written, strict=True):
                if isinstance(done, Exception):
                    outcomes[number] = done
                    continue
                if not done:
                    continue
                outcomes[number] = PoolAnswer(reply, write.seen.at)
                known = self._mine.pop(names[number], None)
                if isinstance(reply, Touched):
                    if known is not None:
                        self._mine[names[number]] = write.item
                else:
                    pool, key = names[number]
                    await self._wake_after_change(pool, {key}, isinstance(calls[number][1].command, Give))
        except (OutcomeUnknown, LockError) as error:
            return [error if outcome is None else outcome for outcome in outcomes]
        return await fill_gaps(self.call, calls, outcomes)

    def call_nowait(self, pool: str, order: Order) -> PoolAnswer | None:
        if not self.item_store.by_content or not self.runtime.blocking:
            return None
        name = self.prefix + pool
        try:
            if type(order) is Seek:
                if order.key or order.again:
                    return None
                got = through(self._take_due(name, take_for(order), queue_key(name)))
                if got is None:
                    self._tried = order.ticket
                return PoolAnswer(*got) if got is not None else None
            if type(order) is On and (name, order.key) in self._mine:
                return through(self._on(name, order.key, order.command))
        except StoreError:
            pass  # nothing was done: the next call raises it
        return None

    async def wait_for_wakeup(self, pool: str, ticket: str, timeout: float) -> None:
        listeners = {listener for listener in (self._ahead.get(ticket, ""),) if listener}
        await self.store.wait_for_wakeup(queue_key(self.prefix + pool), ticket, timeout, listeners)

    async def all(self, pool: str) -> tuple[list[ItemState], int]:
        return await replied(self.store.where, self.item_store.all(self.prefix + pool))

    async def count(self, pool: str) -> dict[str, int]:
        return await replied(self.store.where, self.item_store.count(self.prefix + pool))

    async def queue(self, pool: str) -> WorkerQueue:
        return (await replied(self.store.where, self._line(self.prefix + pool)))[0]

    async def names(self, pattern: str, idle: bool = False) -> list[tuple[str, str]]:
        matches = glob(pattern)
        found = [split_key(key) for key in await replied(self.store.where, self.item_store.pools())]
        return [name for name in found if name is not None and matches(name[1])]

    async def taken(self, pool: str) -> tuple[list[ItemState], int]:
        return await replied(self.store.where, self.item_store.taken(self.prefix + pool))

    def in_namespace(self, namespace: str) -> "CasPools":
        prefix = namespace + SEPARATOR if namespace else ""
        return self if prefix == self.prefix else CasPools(self.store, self.item_store, self.runtime, prefix)

    async def repair(self, pool: str) -> list[str]:
        name = self.prefix + pool
        done: list[str] = []
        seen = await replied(self.store.where, self.store.read(queue_key(name)))
        try:
            self._decoded(name, seen.row.body if seen.row is not None else None)
        except RecordDamaged:
            row = Row(queue_key(name), 0, "", encode_queue(WorkerQueue(places=seen.now, seen=seen.now)))
            await replied(self.store.where, self.store.replace(row, seen.version, seen.now, ()))
            done.append(f"The queue of the pool {pool!r} was emptied; its workers join again by themselves.")
        for key in await replied(self.store.where, self.item_store.repair(name)):
            done.append(f"The item {key!r} of the pool {pool!r} was set aside as done, with what is left of its body.")
        return done

    # -- items

    async def _put(self, pool: str, order: Put) -> Added:
        new = await self.item_store.add(pool, order.rows, order.first)
        if new:
            await self._wake_after_change(pool, {key for key, _ in order.rows})
        return Added(new)

    async def _on(self, pool: str, key: str, command: Command) -> PoolAnswer:
        if type(command) is Finish:
            done = await self._finish(pool, key, command)
            if done is not None:
                return done
        reply, at, again = await self._apply(pool, key, command)
        if isinstance(reply, Given | Finished | Removed) and isinstance(command, Give | Finish | Remove):
            await self._wake_after_change(pool, {key}, isinstance(command, Give))
        return PoolAnswer(reply, at, again)

    async def _finish(self, pool: str, key: str, command: Finish) -> PoolAnswer | None:
        """Finish it in one step that also reads the queue. At most a client that waits for this very item must be
        woken; one that comes just then and is overlooked soon looks again by itself. None: it takes more."""
        seen = self._known(pool, key)
        if seen is None:
            return None
        item, reply = apply(seen.item, command, seen.now, key)
        if not isinstance(reply, Finished) or item is None or item == seen.item:
            return None
        found = await self.item_store.put_and_read_queue(pool, key, item, seen, queue_key(pool))
        if found is None and seen.item is not None:
            self._mine[pool, key] = seen.item  # nothing was sent: it is still known
        done, text = found or (False, None)
        if not done:
            return None
        queue = self._decoded(pool, text)
        if queue.watchers:
            await send_wakeups(self.store, queues.wakeups(queue, queue, queue, {key}, False))
        return PoolAnswer(reply, seen.at)

    def _known(self, pool: str, key: str) -> ItemSnapshot | None:
        """Return the cached item, to be used once: only the end of the step shows the current one."""
        item = self._mine.pop((pool, key), None)
        sample = self.store.now() if item is not None else None
        return ItemSnapshot(item, None, *sample) if sample is not None else None

    async def _apply(self, pool: str, key: str, command: Command) -> tuple[Reply, float, bool]:
        settle = again = False
        known = self._known(pool, key)
        for turn in range(CONFLICTS):
            seen = known or await self.item_store.get(pool, key, settle)
            item, reply = apply(seen.item, command, seen.now, key)
            if item == seen.item:
                if known is None:
                    return reply, seen.at, again
                known = None  # it would change nothing that a comparison could contradict
                continue
            known = None
            try:
                if await self.item_store.put(pool, key, item, seen):
                    if self.item_store.by_content and item is not None and isinstance(reply, Touched):
                        self._mine[pool, key] = item
                    return reply, seen.at, again
            except OutcomeUnknown:
                if again:
                    raise
                settle = again = True
            await self._give_way(turn)
        raise crowded(f"{key!r} of {pool.removeprefix(self.prefix)!r}", "pools")

    async def _take_due(self, pool: str, take: Take, queue: str = "") -> tuple[Taken, float] | None:
        """Take what has been due for longest. With a queue: only if it is empty."""
        seen = await self.item_store.take(pool, take, queue)
        if seen is None or seen.item is None:
            return None
        item = seen.item
        if self.item_store.by_content and not take.window:
            if len(self._mine) >= REMEMBERED:
                self._mine.clear()
            self._mine[pool, item.key] = item
        return Taken(item.fence, item.score - seen.now, item.body, item.key), seen.at

    # -- the queue

    async def _line(self, pool: str, settle: bool = False) -> tuple[WorkerQueue, RowSnapshot]:
        seen = await self.store.read(queue_key(pool), settle)
        return self._decoded(pool, seen.row.body if seen.row is not None else None), seen

    def _decoded(self, pool: str, text: str | None) -> WorkerQueue:
        try:
            return decode_queue(text)
        except ValueError as bad:
            name = pool.removeprefix(self.prefix)
            raise damaged(name, self.store.where, bad, f"The queue of the pool {name!r}") from None

    def _settled(self, queue: WorkerQueue, now: int, sender: str) -> WorkerQueue:
        """Return it without the silent workers, and without those at its head whose process has ended."""
        queue = queues.settle(queue, now, sender)
        while queue.workers and queue.workers[0].ticket != sender and self._is_dead(queue.workers[0].listener):
            queue = queue._replace(workers=queue.workers[1:])
        return queue

    def _is_dead(self, listener: str) -> bool:
        return bool(listener) and listener != self.store.listener and bool(self.store.liveness((listener,))[1])

    async def _write_queue(self, pool: str, queue: WorkerQueue, seen: RowSnapshot) -> bool:
        owner = queue.workers[0].owner if queue.workers else ""
        row = Row(queue_key(pool), len(queue.workers), owner, encode_queue(queue))
        return isinstance(await self.store.write(row, seen.version, seen.now, ()), Written)

    async def _leave_queue(
        self, pool: str, tickets: Collection[str], sender: str, served: Sequence[Wakeup] = ()
    ) -> None:
        """Take these out of the queue; wake the workers that were given an item, and the one that is first now."""
        settle = False
        for turn in range(CONFLICTS):
            before, seen = await self._line(pool, settle)
            settled = self._settled(before, seen.now, sender)
            after = queues.without(settled, tickets)
            if (after.workers, after.watchers) == (before.workers, before.watchers):
                break
            try:
                if await self._write_queue(pool, after, seen):
                    hints = [h for h in queues.wakeups(before, after, after, sender=sender) if h not in served]
                    await send_wakeups(self.store, [*served, *hints])
                    return
            except OutcomeUnknown:
                if settle:
                    raise
                settle = True
            await self._give_way(turn)
        await send_wakeups(self.store, served)

    async def _wake_after_change(self, pool: str, keys: Collection[str], given: bool = True) -> None:
        """Something has changed: wake the first living worker in the queue, and the watchers of these items."""
        queue, seen = await self._line(pool)
        if not queue.workers and not queue.watchers:
            return
        queue = self._settled(queue, seen.now, "")
        await send_wakeups(self.store, queues.wakeups(queue, queue, queue, keys, given))

    # -- seeking

    async def _seek(self, pool: str, seek: Seek) -> PoolAnswer:
        take = take_for(seek)
        if not seek.again and seek.ticket != self._tried:
            got = await self._take_due(pool, take, queue_key(pool))
            if got is not None:
                return PoolAnswer(*got)
        settle = doubt = joined = False
        for turn in range(CONFLICTS):
            before, seen = await self._line(pool, settle)
            queue = self._settled(before, seen.now, seek.ticket)
            stands = queue.standing(seek.ticket) is not None
            if seek.again and not stands:
                answer = await self._handed(pool, take)
                if answer is not None:
                    return answer
            tried = not seek.again and not turn and not before.workers
            if queues.is_first(queue, seek.ticket) and not tried:
                got = await self._take_due(pool, take)
                if got is not None:
                    await self._serve_others(pool, queue, seek.ticket, stands)
                    self._ahead.pop(seek.ticket, None)
                    return PoolAnswer(*got, doubt)
            if not seek.wait and not stands:
                return PoolAnswer(Nothing(), seen.at)
            if joined:
                return await self._wait(pool, queue, seek, seen)
            stood = queues.stand(queue, seek, seen.now)
            try:
                if await self._write_queue(pool, stood, seen):
                    await send_wakeups(self.store, queues.wakeups(before, stood, stood, sender=seek.ticket))
                    if stands or not queues.is_first(stood, seek.ticket):
                        return await self._wait(pool, stood, seek, seen)
                    joined = True  # and now look again: an item may have been added before any client could see it wait
                    continue
            except OutcomeUnknown:
                if doubt:
                    raise
                settle = doubt = True
            await self._give_way(turn)
        raise crowded(f"The queue of {pool.removeprefix(self.prefix)!r}", "pools")

    async def _handed(self, pool: str, take: Take) -> PoolAnswer | None:
        """Return the item that this ticket was given while it waited, or by an order whose reply was lost."""
        mine = await self.item_store.of(pool, take.ticket, max(take.lease, CONFIRM_WINDOW))
        if mine is None or mine.item is None:
            return None
        reply, at, again = await self._apply(pool, mine.item.key, take)
        return PoolAnswer(reply._replace(key=mine.item.key), at, again) if isinstance(reply, Taken) else None

    async def _wait(self, pool: str, queue: WorkerQueue, seek: Seek, seen: RowSnapshot) -> PoolAnswer:
        ahead = queue.standing(seek.ticket)
        assert ahead is not None
        if len(self._ahead) > 1000:
            self._ahead.clear()
        self._ahead[seek.ticket] = queue.workers[0].listener if ahead else ""
        span = queues.sleep_span(ahead)
        if not ahead:
            span = await self.item_store.coming(pool, span) or span
        return PoolAnswer(Queued(ahead, queue.workers[ahead].place, span), seen.at)

    async def _serve_others(self, pool: str, queue: WorkerQueue, sender: str, stood: bool) -> None:
        """The sender has an item. Give those behind it what else is due; then they and the sender leave the queue."""
        served: list[Wakeup] = []
        for w in queue.workers[:SERVED]:
            if w.ticket == sender or self._is_dead(w.listener):
                continue
            if await self._take_due(pool, Take(w.ticket, w.lease, w.owner, w.note, CONFIRM_WINDOW)) is None:
                break
            served.append(Wakeup(w.listener, w.ticket))
        if stood or served:
            await self._leave_queue(
                pool, {sender, *(h.ticket for h in served)}, sender, [h for h in served if h.listener]
            )

    async def _seek_named(self, pool: str, seek: Seek) -> PoolAnswer:
        take = take_for(seek)
        watched = False
        for turn in range(CONFLICTS):
            reply, at, again = await self._apply(pool, seek.key, take)
            if isinstance(reply, Taken | Finished) or not seek.wait:
                if seek.again or watched:
                    await self._leave_queue(pool, {seek.ticket}, seek.ticket)
                return PoolAnswer(reply._replace(key=seek.key) if isinstance(reply, Taken) else reply, at, again)
            if watched:
                return PoolAnswer(reply, at, again)
            before, seen = await self._line(pool)
            known = any(w.ticket == seek.ticket for w in before.watchers)
            queue = self._settled(before, seen.now, seek.ticket)
            if await self._write_queue(pool, queues.stand(queue, seek, seen.now), seen):
                if known:
                    return PoolAnswer(reply, at, again)
                watched = True  # and now look again: it may have changed before any client could see it wait
            else:
                await self._give_way(turn)
        raise crowded(f"{seek.key!r} of {pool.removeprefix(self.prefix)!r}", "pools")

    async def _quit(self, pool: str, order: Quit) -> Revoked:
        await self._leave_queue(pool, {order.ticket}, order.ticket)
        self._ahead.pop(order.ticket, None)
        mine = await self.item_store.of(pool, order.ticket, max(order.lease, CONFIRM_WINDOW))
        if mine is not None and mine.item is not None:
            await self._on(pool, mine.item.key, Give(order.ticket, mine.item.fence))
        return Revoked()

    async def _give_way(self, turn: int) -> None:
        if turn >= 3:
            await self.runtime.sleep(jitter() * min(0.0001 * turn, 0.002))


def take_for(seek: Seek) -> Take:
    return Take(seek.ticket, seek.lease, seek.owner, seek.note)


def through(work: Coroutine[Any, Any, T]) -> T:
    """Under the thread runtime nothing ever suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a step for threads was to be waited for")

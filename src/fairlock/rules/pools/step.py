"""The rules of a pool: `apply` is one step of one item, `step` is one step of a whole pool with its queue of workers.

A pool is a set of named items. A worker takes any item that is due, keeps it by touching it, and gives it back or
finishes it. A worker that stops sending loses its item. A pool can be a work list that survives crashes, a set of GPUs,
or a list of accounts of which each is used by one program at a time.

**Due.** One number of an item decides: its score, the time at which it is due. A new item has been due for a long time,
and items that were added earlier for longer. A taken item is due when its lease ends; one that was given back now or
after a rest; a finished one never. So "any free item" is the lowest score from 0 to now, found in one index at a cost
that does not grow with the pool, and expiry needs no process that notices it. An item that is given back comes after
all that are free, because its score is now or later: an item at which every worker fails does not block the others.

**Owner.** Every take makes a fence that is greater than all before it for this item: max(last + 1, now), as for locks.
It stays the same while the item is touched. An item belongs to the client that knows its ticket and its fence; an
earlier holder cannot touch, finish or give back an item that another client has taken since. Fences rise per item and
not per pool: one counter for all would make every take wait for every other.

**Silence.** An item whose lease has ended is free for all. But until another client takes it, its holder keeps it: a
worker that was suspended for too long may go on if the item was not wanted.

**Repetition.** A client makes up a ticket before it sends the first byte. Take with the same ticket is the same take; a
repeated Give or Finish finds its own fence and succeeds. So the cure for a lost reply is to repeat the request. A
repeated take never shortens a lease: it may be late.

**Time.** If the clock has gone back, no item is due later than its own duration from now: a taken item its lease, a
resting one its rest. Therefore the duration is stored beside the score.

**The queue.** After every step no worker waits while an item is due: an item that was added, given back or has expired
is granted to the first worker in the queue, under its ticket, for CONFIRM_WINDOW until that worker confirms it. If it
never does, the item is due again then. The queue itself is in queue.py. `step` is for stores that can make it one step
(memory, a script in a server). Stores that can only compare and swap single rows do the same in several steps, in an
order in which a crash between any two of them costs at most CONFIRM_WINDOW: see stores/cas_pools.py.

Rejected alternatives: a queue for each state (not every store can move an item between two keys in one step), a process
that expires items (it may die), deleting finished items (they could be added again, and done twice).

Each sentence here has its example in tests/pool_rules. The laws of every step are checked there in every state that
small worlds can reach.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from ..wakeup import Wakeup
from . import queue as queues
from .messages import (
    Absent,
    Add,
    Added,
    Answered,
    Busy,
    Command,
    Exists,
    Finish,
    Finished,
    Give,
    Given,
    Look,
    Looked,
    Lost,
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
)
from .state import AGO, DONE, ItemState, WorkerQueue

# -- one item


def apply(item: ItemState | None, command: Command, now: int, key: str = "") -> tuple[ItemState | None, Reply]:
    """Make one step of one item (None: it does not exist; `key` names a new one). Pure."""
    if item is not None:
        item = in_time(item, now)
    if isinstance(command, Look):
        return item, Looked(item)
    if item is None:
        return _absent(command, now, key)
    if isinstance(command, Add):
        return item, Exists()
    if isinstance(command, Take):
        return _take(item, command, now)
    if isinstance(command, Remove):
        return _remove(item, command, now)
    if item.score == DONE:
        finished = isinstance(command, Finish) and command.fence == item.fence
        return item, Finished() if finished else Lost()
    if not item.ticket:
        given = isinstance(command, Give) and command.fence == item.fence
        return item, Given() if given else Lost()
    if command.ticket != item.ticket or command.fence != item.fence:
        return item, Lost()
    if command.body is not None:
        item = item._replace(body=command.body)
    if isinstance(command, Touch):
        if command.lease is not None:
            item = item._replace(lease=max(command.lease, item.lease))  # it may only grow
        return item._replace(score=now + item.lease), Touched(item.lease)
    if isinstance(command, Give):
        return item._replace(score=now + command.after, ticket="", lease=command.after, owner="", note=""), Given()
    return item._replace(score=DONE, ticket=""), Finished()


def in_time(item: ItemState, now: int) -> ItemState:
    """Return the item with its score cut to its own duration from now: time never runs back."""
    latest = now + item.lease
    return item if item.score <= latest else item._replace(score=latest)


def _absent(command: Command, now: int, key: str) -> tuple[ItemState | None, Reply]:
    if isinstance(command, Add):
        return ItemState(key, max(now - AGO, 0) + command.nth, body=command.body), Added()
    if isinstance(command, Take):
        return None, Absent()
    if isinstance(command, Remove):
        return None, Removed(False)
    return None, Lost()


def _take(item: ItemState, c: Take, now: int) -> tuple[ItemState, Reply]:
    if item.score == DONE:
        return item, Finished()
    until = now + (min(c.window, c.lease) if c.window else c.lease)
    if item.ticket == c.ticket:
        item = item._replace(score=max(item.score, until))
    elif item.score > now:
        return item, Busy(item.score - now)
    else:
        fence = max(item.fence + 1, now)
        item = item._replace(score=until, fence=fence, ticket=c.ticket, lease=c.lease, owner=c.owner, note=c.note)
    return item, Taken(item.fence, item.score - now, item.body)


def _remove(item: ItemState, c: Remove, now: int) -> tuple[ItemState | None, Reply]:
    mine = c.ticket == item.ticket and c.fence == item.fence
    if item.ticket and item.score > now and not mine and not c.force:
        return item, Busy(item.score - now)
    return None, Removed(True)


# -- the whole pool


class ItemStore(Protocol):
    """The items of a pool, as far as a step needs them."""

    def get(self, key: str) -> ItemState | None: ...

    def put(self, item: ItemState) -> None: ...

    def drop(self, key: str) -> None: ...

    def due(self, now: int, limit: int) -> Sequence[ItemState]:
        """Return the items with 0 <= score <= now, lowest first."""

    def coming(self, now: int) -> ItemState | None:
        """Return the item with the lowest score after now."""

    def of(self, ticket: str) -> ItemState | None:
        """Return the item of this ticket, or None."""

    def late(self, now: int) -> Sequence[ItemState]:
        """Return the items with a score later than now + their duration. Needed only when the clock has gone back."""


def step(
    item_store: ItemStore,
    queue: WorkerQueue,
    order: Order,
    now: int,
    dead: Collection[str] = queues.NONE,
    unreachable: Collection[str] = queues.NONE,
) -> tuple[WorkerQueue, Answered, list[Wakeup]]:
    """Make one atomic step. Changes the items; returns the queue after it, the reply and the wake-ups.

    dead, unreachable: the tickets whose process has ended, and those whose client does not listen.
    """
    sender = order.ticket if isinstance(order, Seek | Quit) else ""
    unreachable = {ticket for ticket in unreachable if ticket != sender}
    before = queue
    if now < queue.seen:
        for item in item_store.late(now):
            item_store.put(in_time(item, now))
    queue = settled = queues.settle(queue, now, sender, dead)
    changed: set[str] = set()
    if isinstance(order, Put):
        reply: Answered = _put(item_store, order, now, changed)
    elif isinstance(order, On):
        reply = _on(item_store, order.key, order.command, now, changed)
    elif isinstance(order, Quit):
        queue = queues.without(queue, {order.ticket})
        mine = item_store.of(order.ticket)
        if mine is not None:
            _on(item_store, mine.key, Give(order.ticket, mine.fence), now, changed)
        reply = Revoked()
    elif order.key:
        queue, reply = _take_named(item_store, queue, order, now)
    else:
        queue, reply = _take_any(item_store, queue, order, now, unreachable)
    queue = queues.without(queue, {take.ticket for _, take in _hand_over(item_store, queue, now, unreachable)})
    rests = bool(changed) and isinstance(order, On) and isinstance(order.command, Give)
    return queue, reply, queues.wakeups(before, settled, queue, changed, rests, sender)


def _put(item_store: ItemStore, order: Put, now: int, changed: set[str]) -> Answered:
    count = 0
    for key, body in order.rows:
        item, reply = apply(item_store.get(key), Add(body, order.first + count), now, key)
        if isinstance(reply, Added) and item is not None:
            item_store.put(item)
            changed.add(key)
            count += 1
    return Added(count)


def _on(item_store: ItemStore, key: str, command: Command, now: int, changed: set[str]) -> Answered:
    before = item_store.get(key)
    item, reply = apply(before, command, now, key)
    if item is None and before is not None:
        item_store.drop(key)
    elif item is not None and item != before:
        item_store.put(item)
    if (before and before.ticket) != (item and item.ticket):
        changed.add(key)  # it has no holder now, or no longer exists
    return reply


def _take_named(item_store: ItemStore, queue: WorkerQueue, seek: Seek, now: int) -> tuple[WorkerQueue, Answered]:
    before = item_store.get(seek.key)
    item, reply = apply(before, Take(seek.ticket, seek.lease, seek.owner, seek.note), now)
    if item is not None and item != before:
        item_store.put(item)
    if isinstance(reply, Taken):
        reply = reply._replace(key=seek.key)
    if seek.wait and not isinstance(reply, Taken | Finished):
        return queues.stand(queue, seek, now), reply
    return queues.without(queue, {seek.ticket}), reply


def _take_any(
    item_store: ItemStore, queue: WorkerQueue, seek: Seek, now: int, unreachable: Collection[str]
) -> tuple[WorkerQueue, Answered]:
    mine = item_store.of(seek.ticket)
    standing = queues.stand(queue, seek, now)
    handed: dict[str, ItemState] = {}
    if mine is None:
        handed = {take.ticket: item for item, take in _hand_over(item_store, standing, now, unreachable)}
        mine = handed.get(seek.ticket)
    if mine is not None:
        item, reply = apply(mine, Take(seek.ticket, seek.lease, seek.owner, seek.note), now)
        assert item is not None and isinstance(reply, Taken)
        item_store.put(item)
        return queues.without(queue, {seek.ticket, *handed}), reply._replace(key=item.key)
    if not seek.wait and queue.standing(seek.ticket) is None:
        return queues.without(queue, handed), Nothing()
    standing = queues.stand(queues.without(standing, handed), seek, now)  # again: it may be further ahead by now
    ahead = standing.standing(seek.ticket)
    assert ahead is not None
    return standing, Queued(ahead, standing.workers[ahead].place, retry_in(item_store, now, ahead))


def _hand_over(
    item_store: ItemStore, queue: WorkerQueue, now: int, unreachable: Collection[str]
) -> list[tuple[ItemState, Take]]:
    """Grant the due items to the workers in the queue, for CONFIRM_WINDOW."""
    handed = []
    for item, take in queues.deal(queue, item_store.due(now, len(queue.workers)), unreachable) if queue.workers else ():
        taken, _ = apply(item, take, now)
        assert taken is not None
        item_store.put(taken)
        handed.append((taken, take))
    return handed


def retry_in(item_store: ItemStore, now: int, ahead: int) -> int:
    """Return when to poll again without a wake-up. Only the first worker polls when an item is due: it takes for those
    behind it, too."""
    coming = item_store.coming(now) if not ahead else None
    span = queues.sleep_span(ahead)
    return span if coming is None else min(span, coming.score - now)

"""The queue of workers that wait for any item of a pool, as pure as the rules of an item.

First come, first served. A newcomer takes an item at once only if the queue is empty. A place lasts for its poll_ttl
and is kept by polling, three times as long as the worker may sleep there; the step itself sets it, so worker and rules
cannot disagree. A worker whose process has ended is removed at once; a worker that does not listen at the moment (a
server that sends wake-ups knows that) is passed over and keeps its place: after a failover that is every worker.

Items expire and end their rest without any message. So the head of the queue sleeps only until an item is due, as far
as it knows, and takes for itself and for those behind it; the others sleep until they are woken, and poll now and then,
because wake-ups get lost and heads die.

A worker that waits for a *named* item is a watcher beside the queue: it is woken when that item changes, and races for
it.
"""

from collections.abc import Collection, Sequence

from ..wakeup import Wakeup
from .messages import Seek, Take
from .state import CONFIRM_WINDOW, ItemState, Worker, WorkerQueue

SLEEP_CAP = 10_000_000  # no worker sleeps longer than this
NONE: frozenset[str] = frozenset()


def sleep_span(ahead: int) -> int:
    """Return how long a worker may sleep between two polls, with `ahead` others before it."""
    return min(CONFIRM_WINDOW // 2 * (ahead + 1), SLEEP_CAP)


def poll_ttl(ahead: int) -> int:
    """Return how long a place lasts without a poll: three times as long as its worker may sleep."""
    return 3 * sleep_span(ahead)


def settle(queue: WorkerQueue, now: int, sender: str = "", dead: Collection[str] = NONE) -> WorkerQueue:
    """Return the queue as it is now: the sender is alive; dead and silent workers are removed."""
    if not queue.workers and not queue.watchers:
        return queue._replace(seen=now)
    back = now < queue.seen

    def living(some: tuple[Worker, ...]) -> tuple[Worker, ...]:
        kept = []
        for w in some:
            if back and w.expires > now + w.poll_ttl:  # time never runs back
                w = w._replace(expires=now + w.poll_ttl)
            if w.ticket == sender or (w.expires > now and w.ticket not in dead):
                kept.append(w)
        return tuple(kept)

    return WorkerQueue(queue.places, now, living(queue.workers), living(queue.watchers))


def stand(queue: WorkerQueue, seek: Seek, now: int) -> WorkerQueue:
    """Add the worker to the queue, or to the watchers of a named item. One that is there already keeps its place."""
    some = queue.watchers if seek.key else queue.workers
    at = next((i for i, w in enumerate(some) if w.ticket == seek.ticket), len(some))
    span = poll_ttl(0 if seek.key else at)
    if at < len(some):
        some = (*some[:at], some[at]._replace(poll_ttl=span, expires=now + span), *some[at + 1 :])
        places = queue.places
    else:
        places = queue.places + 1
        worker = Worker(
            seek.ticket, seek.lease, seek.listener, seek.owner, seek.note, places, now, span, now + span, seek.key
        )
        some = (*some, worker)
    if seek.key:
        return WorkerQueue(places, now, queue.workers, some)
    return WorkerQueue(places, now, some, queue.watchers)


def without(queue: WorkerQueue, tickets: Collection[str]) -> WorkerQueue:
    """Return the queue without these tickets."""
    return queue._replace(
        workers=tuple(w for w in queue.workers if w.ticket not in tickets),
        watchers=tuple(w for w in queue.watchers if w.ticket not in tickets),
    )


def is_first(queue: WorkerQueue, ticket: str) -> bool:
    """Return True if no other worker is before this one, which may be in the queue or new."""
    return not queue.workers or queue.workers[0].ticket == ticket


def deal(
    queue: WorkerQueue, due: Sequence[ItemState], unreachable: Collection[str] = NONE
) -> list[tuple[ItemState, Take]]:
    """Pair workers and items: the first worker gets the item that has been due for longest, for CONFIRM_WINDOW.

    An unreachable worker is passed over and keeps its place, unless items are left when all others have one.
    """
    workers = queue.workers
    if unreachable:
        workers = tuple(sorted(workers, key=lambda w: w.ticket in unreachable))
    return [(i, Take(w.ticket, w.lease, w.owner, w.note, CONFIRM_WINDOW)) for w, i in zip(workers, due, strict=False)]


def wakeups(
    before: WorkerQueue,
    settled: WorkerQueue,
    after: WorkerQueue,
    keys: Collection[str] = (),
    rests: bool = False,
    sender: str = "",
) -> list[Wakeup]:
    """Return the wake-ups of a step: for the workers that got an item, for a new head of the queue, for the watchers of
    these items. And for the head, if an item rests: it may be due sooner than the head knows."""
    stay = {w.ticket for w in after.workers}
    woken = [w for w in settled.workers if w.ticket not in stay]
    woken += [w for w in after.workers[:1] if rests or w.ticket not in (v.ticket for v in before.workers[:1])]
    woken += [w for w in after.watchers if w.key in keys]
    return [Wakeup(w.listener, w.ticket) for w in woken if w.listener and w.ticket != sender]

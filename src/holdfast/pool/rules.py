"""The rules of a pool: `apply(item, command, now) -> (item, reply)`, for one item and whoever wants something of it.

A pool is a set of named items of which a worker takes any that is due, keeps it by touching it, and gives it back or
finishes it. Whoever falls silent loses it. That is a work list that survives crashes, a set of GPUs, a list of accounts
to be used by one program at a time.

**Due.** An item has one number that decides: its score, when it is due. A new one is due since long ago, and those who
came earlier since longer ago. One that is taken is due when its lease ends; given back, now or after a rest; finished,
never. So "any free item" is the lowest score from 0 to now, found in one index whose cost does not grow with the pool,
and expiry needs nobody to notice it. What is given back stands behind everything that waits, for its score is now or
later: something that makes every worker stumble cannot keep the others from the rest.

**Whose.** Every take makes a fence, greater than all before it for this item: max(last + 1, now), as the doorman's. It
stays the same while the item is touched. An item is mine if ticket and fence are mine; whoever had it before cannot
touch, finish or give back what another has taken meanwhile. Fences rise per item and not per pool: one counter for all
would make every take wait for every other.

**Silence.** An item whose lease has ended is anybody's. But as long as nobody has taken it, it is still mine: a worker
that was asleep for too long may go on if nobody wanted it.

**Again.** Whoever seeks makes up a ticket before the first byte is sent. Take with the same ticket is the same take; a
Give or a Finish that is said again finds its own fence and is content. So when an answer is lost the cure is to say the
same thing again. A repeated take never shortens what there is: it may be late.

**Time.** If the clock has gone back, nothing is due later than its own span from now: a taken item its lease, a resting
one its rest. So the span is kept beside the score.

Decided against: a queue for each state (moving between two keys is not one step everywhere), expiry by a janitor (who
may die), deleting what is finished (then it could be added again, and done twice).

The line of workers who wait is next door in `line.py`; how both make one step is in `counter.py`. Each sentence here
has its example in tests/pool, and what must be true of every step is checked there in every state that small worlds can
reach.
"""

from .commands import (
    Absent,
    Add,
    Added,
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
    Remove,
    Removed,
    Reply,
    Take,
    Taken,
    Touch,
    Touched,
)
from .item import AGO, DONE, Item


def apply(item: Item | None, command: Command, now: int, key: str = "") -> tuple[Item | None, Reply]:
    """One step of one item (None: there is none; then `key` is how a new one is called). Pure."""
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


def in_time(item: Item, now: int) -> Item:
    """Time never runs back: nothing is due later than its own span from now."""
    latest = now + item.lease
    return item if item.score <= latest else item._replace(score=latest)


def _absent(command: Command, now: int, key: str) -> tuple[Item | None, Reply]:
    if isinstance(command, Add):
        return Item(key, max(now - AGO, 0) + command.nth, body=command.body), Added()
    if isinstance(command, Take):
        return None, Absent()
    if isinstance(command, Remove):
        return None, Removed(False)
    return None, Lost()


def _take(item: Item, c: Take, now: int) -> tuple[Item, Reply]:
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


def _remove(item: Item, c: Remove, now: int) -> tuple[Item | None, Reply]:
    mine = c.ticket == item.ticket and c.fence == item.fence
    if item.ticket and item.score > now and not mine and not c.force:
        return item, Busy(item.score - now)
    return None, Removed(True)

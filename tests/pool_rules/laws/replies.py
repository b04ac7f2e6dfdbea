"""Laws about replies: a reply agrees with the state, and the same command again changes nothing."""

from fairlock.rules.pools import (
    DONE,
    Absent,
    Added,
    Busy,
    Exists,
    Finish,
    Finished,
    Give,
    Given,
    Looked,
    Lost,
    Nothing,
    On,
    Put,
    Queued,
    Quit,
    Remove,
    Removed,
    Revoked,
    Seek,
    Taken,
    Touch,
    Touched,
)
from tests.pool_rules.step import Step


def a_seek_is_answered_by_what_is_there(s: Step) -> None:
    if isinstance(s.order, Quit):
        assert s.reply == Revoked()
        assert not any(w.ticket == s.sender for w in (*s.queue.workers, *s.queue.watchers))
        assert not any(i.ticket == s.sender for i in s.items.values())
        return
    if not isinstance(s.order, Seek):
        return
    mine = [i for i in s.items.values() if i.ticket == s.sender]
    if isinstance(s.reply, Taken):
        (item,) = mine
        assert s.reply == Taken(item.fence, item.score - s.now, item.body, item.key)
        if item.lease == s.order.lease:
            assert item.score == s.now + item.lease, "the sender is heard: it lasts its lease"
        else:  # it was extended since, or is sought with another lease
            assert item.score >= s.now + min(item.lease, s.order.lease), "the sender is heard"
        assert not any(w.ticket == s.sender for w in (*s.queue.workers, *s.queue.watchers))
        return
    assert not mine, f"{s.sender} has {mine} and is not told"
    if s.order.key:
        item_or_none = s.items.get(s.order.key)
        if item_or_none is None:
            assert s.reply == Absent()
        elif item_or_none.score == DONE:
            assert s.reply == Finished()
        else:
            assert s.reply == Busy(item_or_none.score - s.now) and s.reply.due_in > 0
        watching = any(w.ticket == s.sender and w.key == s.order.key for w in s.queue.watchers)
        assert watching == (s.order.wait and s.reply != Finished())
    elif isinstance(s.reply, Queued):
        ahead = [w.ticket for w in s.queue.workers].index(s.sender)
        assert (s.reply.ahead, s.reply.place) == (ahead, s.queue.workers[ahead].place)
        assert 1 <= s.reply.retry_in <= min((ahead + 1) * 1_000_000, 10_000_000)
        coming = min([i.score for i in s.items.values() if i.score > s.now], default=None)
        assert ahead or coming is None or s.reply.retry_in <= coming - s.now, "something is due before he looks again"
    else:
        assert s.reply == Nothing() and not s.order.wait
        assert not any(0 <= i.score <= s.now for i in s.items.values()), "something is due, and he is told there is not"


def an_item_is_answered_as_the_table_says(s: Step) -> None:
    if isinstance(s.order, Put):
        assert isinstance(s.reply, Added)
        return
    if not isinstance(s.order, On):
        return
    old, c = s.was.get(s.order.key), s.command
    assert not isinstance(s.reply, Exists | Taken | Looked)
    if isinstance(c, Remove):
        if old is None:
            assert s.reply == Removed(False)
        elif old.ticket and old.score > s.now and not s.says(old) and not c.force:
            assert s.reply == Busy(s.in_time(old).score - s.now)
        else:
            assert s.reply == Removed(True)
        return
    assert isinstance(c, Touch | Give | Finish)
    if old is not None and s.says(old):
        lease = max(c.lease or 0, old.lease) if isinstance(c, Touch) else 0
        expected = Touched(lease) if isinstance(c, Touch) else Given() if isinstance(c, Give) else Finished()
    elif old is not None and old.score == DONE and isinstance(c, Finish) and c.fence == old.fence:
        expected = Finished()
    elif old is not None and old.score != DONE and not old.ticket and isinstance(c, Give) and c.fence == old.fence:
        expected = Given()
    else:
        expected = Lost()
    assert s.reply == expected, f"{s.reply}, not {expected}"


def the_same_again_changes_nothing(s: Step) -> None:
    if s.reply == Nothing():
        return  # who does not wait has nothing to be found by
    again = Step(s.rules, s.items, s.queue, s.order, s.now, s.dead)
    taken = {i.key for i in s.newly_taken()}
    given_on = isinstance(s.command, Give) and isinstance(s.order, On) and s.order.key in taken and s.reply == Given()
    if isinstance(s.order, Put):
        assert again.reply == Added(0)
    elif isinstance(s.command, Remove) and isinstance(s.reply, Removed):
        assert again.reply == Removed(False)
    elif given_on:
        assert again.reply == Lost()  # somebody has it already
    else:
        assert again.reply == s.reply, f"{again.reply}"
    assert again.items == s.items, "items have changed"
    assert again.queue._replace(seen=0) == s.queue._replace(seen=0) or again.reply != s.reply, "the queue has changed"
    assert again.hints == [], f"{again.hints} again"

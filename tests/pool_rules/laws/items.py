"""Laws about items: they neither vanish nor appear, have one owner at a time, and fences rise."""

from fairlock.rules.pools import AGO, DONE, Finish, Give, On, Put, Quit, Remove, Removed, Touch
from tests.pool_rules.step import Step


def nothing_is_lost_and_nothing_made_up(s: Step) -> None:
    gone = set(s.was) - set(s.items)
    new = set(s.items) - set(s.was)
    if gone:
        assert isinstance(s.command, Remove) and isinstance(s.order, On) and gone == {s.order.key}, f"{gone} vanished"
        assert isinstance(s.reply, Removed)
    if isinstance(s.order, Put):
        keys = dict(reversed(s.order.rows))  # of two that are called the same, the first
        assert new == set(keys) - set(s.was), "not all were added, or others"
        assert s.reply.new == len(new)
        order = [s.items[k] for k in dict(s.order.rows) if k in new and not s.items[k].ticket]
        assert [i.score for i in order] == sorted({i.score for i in order}), "they are not due in their order"
        for i in order:
            assert 0 <= i.score - (s.now - AGO) < len(keys), f"{i.key} is not due since long ago"
        for key in new:
            assert s.items[key].body == keys[key]
    else:
        assert not new, f"{new} appeared"


def a_living_take_stays(s: Step) -> None:
    """Nobody but an operator takes from a worker an item that it keeps."""
    for old in s.was.values():
        if old.ticket and old.score > s.now:
            if s.says(old) and (isinstance(s.command, Give | Finish | Remove) or isinstance(s.order, Quit)):
                continue
            if isinstance(s.command, Remove) and s.command.force:
                continue
            new = s.items.get(old.key)
            assert new is not None, f"{old.key} was removed although it is taken"
            assert (new.ticket, new.fence) == (old.ticket, old.fence), f"{old.key} was taken from {old.ticket}"
            assert new.score >= s.in_time(old).score, f"the lease of {old.ticket} was cut"


def only_its_owner_keeps_an_item(s: Step) -> None:
    for old in s.was.values():
        new = s.items.get(old.key)
        if new is None or not old.ticket or new.ticket != old.ticket or new.fence != old.fence:
            continue
        if new.score > old.score:
            assert s.says(old), f"{old.key} was kept by somebody else"
        if s.says(old) and isinstance(s.command, Touch):
            assert new.lease == max(old.lease, s.command.lease or 0), f"the lease of {old.key} may only grow"
            assert new.score == s.now + new.lease, f"{old.key} was touched and does not last its lease"


def fences_rise_with_every_take_and_only_then(s: Step) -> None:
    newly = {i.key for i in s.newly_taken()}
    for new in s.items.values():
        old = s.was.get(new.key)
        before = old.fence if old is not None else 0
        if new.key in newly:
            assert new.fence == max(before + 1, s.now), f"the fence of {new.key} is {new.fence}"
        else:
            assert new.fence == before, f"{new.key} was not taken and has another fence"


def done_is_done(s: Step) -> None:
    for old in s.was.values():
        new = s.items.get(old.key)
        if old.score == DONE and new is not None:
            assert new == old, f"{old.key} was done"
        if new is not None and new.score == DONE and old.score != DONE:
            assert isinstance(s.command, Finish) and s.says(old), f"{old.key} was finished by somebody else"


def a_body_is_changed_only_by_who_has_the_item(s: Step) -> None:
    for old in s.was.values():
        new = s.items.get(old.key)
        if new is None:
            continue
        said = getattr(s.command, "body", None) if s.says(old) else None
        assert new.body == (said if said is not None else old.body), f"the body of {old.key}"


def given_back_goes_behind_what_is_due(s: Step) -> None:
    for old in s.was.values():
        new = s.items.get(old.key)
        if old.ticket and new is not None and not new.ticket and new.score != DONE:
            assert s.says(old), f"{old.key} was given back by somebody else"
            after = s.command.after if isinstance(s.command, Give) else 0
            assert new.score == s.now + after, f"{old.key} is due at another time"
            assert (new.owner, new.note) == ("", "")


def nothing_lasts_longer_than_its_span(s: Step) -> None:
    for new in s.items.values():
        assert new.score <= s.now + new.lease, f"{new.key} is due too late"


def nothing_belongs_to_nobody_for_a_reason(s: Step) -> None:
    for old in s.was.values():
        new = s.items.get(old.key)
        if new is not None and old.ticket and not new.ticket:
            gave = isinstance(s.command, Give | Finish) or isinstance(s.order, Quit)
            assert gave and s.says(old), f"{old.ticket} lost {old.key}"

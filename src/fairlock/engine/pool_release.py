"""Give up an item: give it back, finish it, or remove it. One function, because all of them fail in the same ways."""

from __future__ import annotations

from ..errors import NotHeld, StoreError
from ..rules.pools import Finish, Finished, Give, Given, Remove, Removed
from .events import tell_lost, tell_released, warn
from .grant import LeaseBase
from .pool_acquire import ItemGrant
from .release import over
from .session import FORGET, PendingRelease, Session


async def give(
    session: Session, hold: LeaseBase, after: float = 0.0, body: str | None = None, quiet: bool = False
) -> None:
    await let_go(session, hold, Give(hold.ticket, hold.fence, int(after * 1e6), body), quiet)


async def finish(session: Session, hold: LeaseBase, body: str | None = None, quiet: bool = False) -> None:
    await let_go(session, hold, Finish(hold.ticket, hold.fence, body), quiet)


async def delete(session: Session, hold: LeaseBase) -> None:
    await let_go(session, hold, Remove(hold.ticket, hold.fence))


async def let_go(session: Session, hold: LeaseBase, command: Give | Finish | Remove, quiet: bool = False) -> None:
    """Give the item up. A second time does nothing; but to finish or remove an item that was given up in another way
    raises NotHeld, or LeaseLost.

    Raises LeaseLost if it was lost, StoreError if the store cannot be reached (the keeper goes on trying, and this may
    be called again). quiet: neither; it is reported and kept as a pending release.
    """
    grant = hold._grant
    assert isinstance(grant, ItemGrant)
    with session.mutex:
        if hold._released:
            if quiet or isinstance(command, Give):
                return
            raise_if_it_ended_otherwise(hold, grant, command)
            return
        lost = bool(hold._reason)
        if not lost:
            grant.leaving = True
            grant.end_by = command
    if lost:
        over(hold)
        session.leave_soon(grant)
        if not quiet and hold._reason != "forked":
            raise hold._loss()
        return
    first = not grant.going
    clock = session.clock()
    grant.going = grant.going or clock
    order = grant.order
    pending = PendingRelease(grant.name, grant.ticket, False, clock + 0.1, clock + max(grant.lease, FORGET), order)
    try:
        answer = await session.call_pool(grant.name, order)
    except StoreError as error:
        with session.mutex:
            session.schedule_release(pending)
        session.drop_grant(grant)
        if not quiet:
            raise
        over(hold)
        tell_released(session, hold, grant.key)
        warn(f"Letting go of {hold._what} did not reach the store ({error}); it is tried again until the lease ends.")
        return
    except BaseException:
        with session.mutex:
            session.schedule_release(pending._replace(due=clock))
        session.drop_grant(grant)
        raise
    grant.left = True
    with session.mutex:
        session.pending_releases.pop(grant.ticket, None)
    session.drop_grant(grant)
    over(hold)
    kept = isinstance(answer.reply, Given | Finished | Removed)
    if (answer.again or not first) and grant.going < grant.deadline:
        kept = True  # an earlier try has done it, or the keeper, or another thread
    if kept:
        tell_released(session, hold, grant.key)
        return
    if not grant.reason:
        grant.reason = hold._reason = "expired"
        grant.story = "its lease had ended, and someone else has had it meanwhile"
        tell_lost(session, hold, "expired", grant.story)
    if not quiet:
        raise hold._loss()


ENDS = {Give: "given back", Finish: "finished", Remove: "removed"}


def raise_if_it_ended_otherwise(hold: LeaseBase, grant: ItemGrant, command: Finish | Remove) -> None:
    if hold._reason and hold._reason != "forked":
        raise hold._loss()
    if type(grant.end_by) is not type(command):
        ended = ENDS[type(grant.end_by or Give)]
        raise NotHeld(f"{hold._what} was {ended}, so it cannot be {ENDS[type(command)]}. Acquire it again.")


async def leave(session: Session, hold: LeaseBase, done: bool, back_off: float, error: BaseException | None) -> None:
    """Leave `with`: a clean body has finished it, or gives it back; a failed one gives it back for later.

    A loss is raised only if the body was clean, else noted on its exception.
    """
    if not hold._released and session.clock() >= hold._grant.end():
        hold.lost  # noqa: B018  # the body went on after its end: that is a loss even if the item was not taken
    if done and error is None:
        await finish(session, hold, quiet=True)
    else:
        await give(session, hold, back_off if error is not None else 0.0, quiet=True)
    if hold._reason and hold._reason != "forked":
        loss = hold._loss()
        if error is None:
            raise loss
        error.add_note(str(loss))

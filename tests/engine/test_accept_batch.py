"""The replies of a batch mean the same as one reply after another."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fairlock import aio
from fairlock.aio.lease import Lease
from fairlock.engine.accept_batch import accept_grants, accept_releases
from fairlock.engine.acquire import accept_grant, begin_acquire
from fairlock.engine.grant import Grant
from fairlock.engine.grant_state import RELEASING
from fairlock.engine.release import accept_release
from fairlock.engine.session import NEVER, Session

AT, CLOCK, FENCE = 1000.0, 1000.001, 7
Make = Callable[[aio.Locks], Any]

LOCKS: dict[str, Make] = {
    "plain": lambda locks: locks.lock("x"),
    "another lease": lambda locks: locks.lock("x", lease=7),
    "max_hold": lambda locks: locks.lock("x", max_hold=60),
    "at_least": lambda locks: locks.lock("x", at_least=1),
    "on_lost": lambda locks: locks.lock("x", on_lost=print),
    "handle": lambda locks: locks.lock("x", handle="secret-secret-secret"),
    "read": lambda locks: locks.rwlock("x").read(),
    "write": lambda locks: locks.rwlock("x").write(),
    "semaphore": lambda locks: locks.semaphore("x", 3),
}
SESSIONS: dict[str, dict[str, Any]] = {
    "kept": {"wake_at": AT, "watch_at": AT, "keeping": True, "watching": True},
    "not watched yet": {"wake_at": AT, "watch_at": NEVER, "keeping": True, "watching": True},
    "not kept yet": {"wake_at": NEVER, "watch_at": NEVER, "keeping": True, "watching": True},
    "closing": {"wake_at": AT, "watch_at": AT, "keeping": True, "watching": True, "closing": True},
    "down": {"wake_at": AT, "watch_at": AT, "keeping": True, "watching": True, "down": True},
}


def seen(hold: Lease, session: Session) -> dict[str, Any]:
    """All that others can see of a hold, its grant and its session."""
    grant = hold._grant
    found = {f"grant {word}": getattr(grant, word) for word in Grant.__slots__ if word not in ("request", "ticket")}
    found["grant holds"] = len(grant.holds)
    for word in ("_since", "fence", "_released", "_reason", "_watched"):
        found[word] = getattr(hold, word)
    found["home"] = None if hold._home is None else len(hold._home)
    for word in ("last_reply", "down", "wake_at", "watch_at"):
        found[f"session {word}"] = getattr(session, word)
    return found | {"filed": len(session.grants), "pending": len(session.pending_releases)}


async def outcomes(make: Make, state: dict[str, Any], together: bool, late: float = 0.0) -> list[Any]:
    """Acquire and release one lock by replies that this test makes up. Return what is seen after each."""
    locks = aio.connect("memory://accept-batch", namespace=str(together))
    loop, found = asyncio.get_running_loop(), []
    session, lock = locks._session, make(locks)
    lease = Lease(session, lock._request, locks._runtime.task())
    try:
        assert begin_acquire(session, lease, False, True) is not None
        for word, value in state.items():
            setattr(session, word, value)
        left = lease._request.lease_us
        if together:
            asked = loop.create_future()
            accept_grants([(asked, lease, FENCE)], left, AT, CLOCK + late)
            had = asked.result()
        else:
            had = accept_grant(lease, FENCE, left, AT, CLOCK + late)
        found += [had, seen(lease, session)]
        lease._home = home = [lease]
        lease._grant.state = RELEASING
        if together:
            asked = loop.create_future()
            accept_releases([(asked, lease, 1)], 0, CLOCK, CLOCK)
            assert asked.result() is True
        else:
            accept_release(lease, CLOCK)
        return [*found, seen(lease, session), home]
    finally:
        session.grants.clear()
        session.closing = session.keeping = session.watching = False
        await locks.close()


@pytest.mark.parametrize("late", [0.0, 100.0], ids=["in time", "too late"])
@pytest.mark.parametrize("state", SESSIONS)
@pytest.mark.parametrize("kind", LOCKS)
def test_a_batch_does_what_one_reply_after_another_does(kind: str, state: str, late: float) -> None:
    async def main() -> None:
        alone, together = [await outcomes(LOCKS[kind], SESSIONS[state], many, late) for many in (False, True)]
        assert together == alone

    asyncio.run(main())


def test_clients_that_share_a_batch_are_told_apart() -> None:
    """Clients of one process share a connection, and so their requests may share a message."""

    async def main() -> None:
        clients = [aio.connect("memory://accept-two", namespace=name) for name in ("one", "two")]
        loop, leases = asyncio.get_running_loop(), []
        for locks in clients:
            session = locks._session
            session.keeping, session.wake_at = True, AT
            for name in ("x", "y"):
                lease = Lease(session, locks.lock(name)._request, locks._runtime.task())
                assert begin_acquire(session, lease, False, True) is not None
                leases.append(lease)
        clients[1]._session.closing = True
        asked = [loop.create_future() for _ in leases]
        left = leases[0]._request.lease_us
        accept_grants([(a, h, FENCE) for a, h in zip(asked, leases, strict=True)], left, AT, CLOCK)
        assert [one.result() for one in asked] == [True, True, False, False]
        asked = [loop.create_future() for _ in leases]
        accept_releases([(a, h, 1) for a, h in zip(asked, leases, strict=True)], 0, AT, CLOCK)
        assert [locks._session.grants for locks in clients] == [{}, {}]
        for locks in clients:
            locks._session.keeping = locks._session.closing = False
            await locks.close()

    asyncio.run(main())


def test_a_keeper_that_cannot_start_is_an_error_of_each_task() -> None:
    """Nothing is held that is not renewed."""

    async def main() -> None:
        locks = aio.connect("memory://accept-none")
        session, loop = locks._session, asyncio.get_running_loop()
        lease = Lease(session, locks.lock("x")._request, locks._runtime.task())
        assert begin_acquire(session, lease, False, True) is not None

        def refuse(*_: Any) -> None:
            raise OSError("no more")

        session.hand_to_keeper = refuse  # type: ignore[method-assign]
        asked = loop.create_future()
        accept_grants([(asked, lease, FENCE)], lease._request.lease_us, AT, CLOCK)
        with pytest.raises(OSError, match="no more"):
            asked.result()
        session.grants.clear()
        await locks.close()

    asyncio.run(main())

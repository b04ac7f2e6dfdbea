"""One name whose renewals fail costs that lease, and no other; an error of the listener costs none."""

import time
from collections.abc import Collection, Iterable
from typing import Any

import pytest

import fairlock
from fairlock.engine import renewal_messages
from fairlock.engine.run_sync import run
from fairlock.errors import StoreError
from fairlock.rules.locks import Renew


def test_a_name_that_cannot_be_renewed_takes_no_other_lease_with_it() -> None:
    """The keeper stops a round at the first failure. The name that failed is the last one in the next round."""
    with fairlock.connect("memory://", lease=2) as locks:
        backend = locks._session.backend
        call = backend.call

        async def failing(name: str, command: Any) -> Any:
            if name.startswith("bad") and isinstance(command, Renew):
                raise StoreError("this name cannot be asked for")
            return await call(name, command)

        backend.call = failing  # type: ignore[method-assign]
        bad = locks.lock("bad before it").acquire()
        good = locks.lock("good").acquire()
        locks.lock("bad behind it").acquire()
        end = time.monotonic() + 10
        while not bad.lost and time.monotonic() < end:
            time.sleep(0.005)
            assert good.held
        assert bad.lost
        time.sleep(0.7)  # past the end of a lease that was not renewed beside it
        assert good.held


def test_an_error_while_wakeups_are_read_ends_no_renewal(caplog: pytest.LogCaptureFixture) -> None:
    """A socket may be closed by another thread just then."""
    with fairlock.connect("memory://", lease=2) as locks:
        backend = locks._session.backend
        taken = backend.take_wakeups
        failures = [2]

        def failing(tickets: Iterable[str]) -> Collection[str]:
            if failures[0]:
                failures[0] -= 1
                raise ValueError("file descriptor cannot be a negative integer (-1)")
            return taken(tickets)

        lease = locks.lock("x").acquire()
        backend.take_wakeups = failing  # type: ignore[method-assign]
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            time.sleep(0.01)
            assert lease.held
    assert not failures[0]
    assert "the keeper failed" in caplog.text


def test_an_item_that_is_released_just_now_costs_the_others_no_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread releases it after the keeper has chosen it, and before its message is made, which has its key."""
    with fairlock.connect("memory://") as locks:
        jobs = locks.pool("jobs", lease=30)
        jobs.add_many(["a", "b"])
        items = [jobs.acquire(), jobs.acquire()]
        first, other = (item._grant for item in items)
        chosen, before = renewal_messages._is_renewed, other.deadline

        def choose(session: Any, grant: Any, clock: float) -> bool:
            found = chosen(session, grant, clock)
            if grant is first:
                items[0].release()
            return found

        monkeypatch.setattr(renewal_messages, "_is_renewed", choose)
        time.sleep(0.01)
        run(renewal_messages.renew_all(locks._session, [first, other]))
        assert other.deadline > before
        assert not items[0].lost

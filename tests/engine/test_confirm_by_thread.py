"""The thread that confirms the grants of tasks: which of them, and what it makes of the replies."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fairlock.aio import confirm_by_thread
from fairlock.aio.confirm_by_thread import ThreadConfirmer
from fairlock.engine.grant import Grant, LeaseBase
from fairlock.engine.grant_state import HELD, RELEASED
from fairlock.engine.request import LockRequest
from fairlock.errors import StoreError
from fairlock.rules.locks import Granted, NotHolder
from fairlock.stores.base import Answer

LEASE = 30.0


class Store:
    """Replies to renewals, of each grant by itself; `replies` come first."""

    batch_size, skew = 1, 0.0

    def __init__(self, *replies: Any) -> None:
        self.replies, self.asked, self.closed = list(replies), 0, 0

    async def call_many(self, calls: list[tuple[str, Any]]) -> list[Any]:
        at = time.monotonic()
        self.asked += 1
        reply = self.replies.pop(0) if self.replies else Granted(calls[0][1].fence, int(LEASE * 1e6))
        if isinstance(reply, Exception):
            raise reply
        return [Answer(reply, at)]

    async def close(self) -> None:
        self.closed += 1


class Session(SimpleNamespace):
    """As much of a session as the thread reads. A plain namespace: a weak reference to it must be possible."""


def young_grant(ticket: str = "t") -> Grant:
    grant = Grant(LockRequest("x", 1, 1, LEASE), ticket, LeaseBase.__new__(LeaseBase))
    grant.state, grant.fence = HELD, 7
    grant.confirm(time.monotonic(), 2_000_000, 0.0)
    return grant


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm_by_thread, "DUE", 0.05)
    monkeypatch.setattr(confirm_by_thread, "TICK", 0.01)


def run(store: Store, grants: list[Grant], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Watch these grants until the thread has ended."""
    session: Any = Session(clock=time.monotonic, mutex=threading.Lock(), backend=store)
    confirmer = ThreadConfirmer(session, lambda: store)  # type: ignore[arg-type, return-value]
    for grant in grants:
        assert confirmer.watch(grant)
    meanwhile()
    end = time.monotonic() + 5
    while confirmer._runs:
        assert time.monotonic() < end, "the thread does not end"
        time.sleep(0.005)


def lasts(grant: Grant) -> float:
    return grant.deadline - time.monotonic()


def test_what_nobody_has_confirmed_is_confirmed_and_the_store_is_closed() -> None:
    store, grants = Store(), [young_grant("a"), young_grant("b")]
    run(store, grants)
    assert all(lasts(grant) > 20 for grant in grants)
    assert (store.asked, store.closed) == (2, 1)


def test_what_was_confirmed_or_released_meanwhile_is_left_alone() -> None:
    store, confirmed, released = Store(), young_grant("a"), young_grant("b")

    def meanwhile() -> None:
        confirmed.confirm(time.monotonic(), int(LEASE * 1e6), 0.0)
        released.state = RELEASED

    run(store, [confirmed, released], meanwhile)
    assert (store.asked, store.closed) == (0, 0), "not even a connection is opened"
    assert lasts(released) < 2


def test_a_store_that_fails_is_asked_again() -> None:
    store, grant = Store(StoreError("down"), StoreError("down")), young_grant()
    run(store, [grant])
    assert lasts(grant) > 20
    assert store.asked == store.closed == 3


def test_it_is_not_asked_again_when_the_time_of_the_grant_is_over() -> None:
    store, grant = Store(*[StoreError("down")] * 1000), young_grant()
    grant.deadline = time.monotonic() + 0.2
    run(store, [grant])
    assert 0 < store.asked < 100
    assert grant.deadline < time.monotonic()


@pytest.mark.parametrize("reply", [NotHolder(None), Granted(8, int(LEASE * 1e6))])
def test_a_reply_about_another_grant_makes_it_no_longer(reply: Any) -> None:
    store, grant = Store(*[reply] * 1000), young_grant()
    grant.deadline = time.monotonic() + 0.2
    run(store, [grant])
    assert grant.deadline < time.monotonic()


def test_a_thread_that_cannot_be_started_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    session: Any = Session(clock=time.monotonic, mutex=threading.Lock(), backend=Store())
    confirmer = ThreadConfirmer(session, Store)  # type: ignore[arg-type]
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert not confirmer.watch(young_grant())

"""Where a client does not work, a sentence says so: in a pickle, under eventlet, in a loop that is not asyncio's."""

import _thread
import asyncio
import copy
import pickle
import select
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fairlock
from fairlock import aio

URL = "redis://user:s3cret@localhost/0"
SENTENCE = r"A fairlock \w+ cannot be pickled or copied: .* Call fairlock\.connect\(\) in the other process"


@pytest.mark.parametrize("connect", [fairlock.connect, aio.connect])
@pytest.mark.parametrize("act", [pickle.dumps, copy.copy, copy.deepcopy])
def test_nothing_of_a_client_can_be_pickled_and_no_password_gets_out(
    connect: Callable[..., Any], act: Callable[[object], object]
) -> None:
    locks = connect(URL)
    lock, pool = locks.lock("x"), locks.pool("p")
    for thing in (locks, lock, lock.hold(), locks.rwlock("x"), locks.semaphore("x", 2), pool, pool.hold()):
        with pytest.raises(TypeError, match=SENTENCE) as refused:
            act(thing)
        assert "s3cret" not in str(refused.value)


def test_a_lease_and_an_item_cannot_be_pickled() -> None:
    with fairlock.connect("memory://") as locks, locks.lock("x") as lease:
        locks.pool("p").add("a")
        with pytest.raises(TypeError, match=SENTENCE), locks.pool("p").hold() as item:
            pickle.dumps(item)
        with pytest.raises(TypeError, match=SENTENCE):
            pickle.dumps(lease)


def test_eventlet_is_refused_before_anything_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    patcher = SimpleNamespace(is_monkey_patched=lambda module: module == "thread")
    monkeypatch.setitem(sys.modules, "eventlet.patcher", patcher)  # type: ignore[arg-type]
    with pytest.raises(fairlock.ConfigError, match=r"eventlet has patched .* Use threads, or fairlock\.aio"):
        fairlock.connect("memory://")
    patcher.is_monkey_patched = lambda module: False
    fairlock.connect("memory://").close()


def test_eventlet_that_comes_later_is_refused_by_the_wait(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with fairlock.connect(tmp_path / "x.db") as one, fairlock.connect(tmp_path / "x.db") as two:
        with one.lock("x"):
            with monkeypatch.context() as patch:
                patch.delattr(select, "poll")
                with pytest.raises(fairlock.ConfigError, match="eventlet has patched this process"):
                    two.lock("x").acquire(timeout=1)


def test_eventlet_that_comes_later_is_not_taken_for_gevent(monkeypatch: pytest.MonkeyPatch) -> None:
    with fairlock.connect("memory://") as locks:
        with monkeypatch.context() as patch:
            patched = SimpleNamespace(is_monkey_patched=lambda module: module == "thread")
            patch.setitem(sys.modules, "eventlet.patcher", patched)  # type: ignore[arg-type]
            patch.setattr(_thread, "allocate_lock", lambda: None)
            with pytest.raises(fairlock.ConfigError, match="eventlet has patched this process"):
                locks.lock("x").acquire(timeout=1)


def test_gevent_that_patches_after_the_import_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen with gevent 26.9 by hand: patched first it works, patched later the first acquire hung forever."""
    before = fairlock.connect("memory://")
    monkeypatch.setattr(_thread, "allocate_lock", lambda: None)
    sentence = r"gevent has patched .* Call gevent\.monkey\.patch_all\(\) first"
    with pytest.raises(fairlock.ConfigError, match=sentence):
        fairlock.connect("memory://")
    with pytest.raises(fairlock.ConfigError, match=sentence):
        before.lock("x").acquire()
    monkeypatch.undo()
    assert not [r for r in before.snapshot(idle=True).resources if r.holders or r.queue]
    before.close()


Use = Callable[[aio.Locks], Any]
USES: dict[str, Use] = {
    "hold": lambda locks: locks.lock("x").hold().__aenter__(),
    "lock": lambda locks: locks.lock("x").__aenter__(),
    "lock_all": lambda locks: locks.lock_all("x", "y", timeout=1).__aenter__(),
    "pool": lambda locks: locks.pool("x").hold(timeout=1).__aenter__(),
    "locked": lambda locks: locks.lock("x").locked().__await__(),
    "snapshot": lambda locks: locks.snapshot(),
    "ping": lambda locks: locks.ping(),
    "attach": lambda locks: locks.attach("x", "ticket"),
    "release": lambda locks: locks.release("x", handle="secret"),
    "extend": lambda locks: locks.extend("x", 5, handle="secret"),
    "evict": lambda locks: locks.evict("x", reason="a test"),
    "resize": lambda locks: locks.resize("x", 2),
    "repair": lambda locks: locks.repair("x"),
    "add": lambda locks: locks.pool("x").add("a"),
    "add_many": lambda locks: locks.pool("x").add_many(["a"]),
    "remove": lambda locks: locks.pool("x").remove("a"),
    "items": lambda locks: locks.pool("x").items(),
    "counts": lambda locks: locks.pool("x").counts(),
}
STORES = pytest.mark.parametrize("url", ["memory://", URL], ids=["memory", "redis"])


@STORES
@pytest.mark.parametrize("use", [*USES.values(), aio.Locks.close], ids=[*USES, "close"])
def test_a_loop_that_is_not_asyncios_is_named(use: Use, url: str) -> None:
    locks = aio.connect(url)
    with pytest.raises(fairlock.ConfigError, match=r"none runs here\. Under trio use fairlock\.connect\(\) in a "):
        use(locks).send(None)  # as trio does


@STORES
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_another_event_loop_is_refused(use: Use, url: str) -> None:
    async def connect() -> aio.Locks:
        return aio.connect(url)

    async def elsewhere() -> None:
        with pytest.raises(fairlock.ConfigError, match="belongs to another event loop"):
            use(locks).send(None)

    locks = asyncio.run(connect())
    asyncio.run(elsewhere())

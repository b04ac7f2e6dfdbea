"""A look changes nothing, so nothing of it is in doubt: it is asked for again, and no answer is a StoreError."""

import asyncio
from collections.abc import Callable
from itertools import cycle

import pytest

import fairlock
from fairlock import LockTimeout, StoreError, aio
from fairlock.stores.redis.lua_scripts import READ_STATE
from tests.redis.proxy import Proxy
from tests.servers.server import Server

LOOKS: list[Callable[[fairlock.Locks], object]] = [
    lambda locks: locks.lock("x").locked(), lambda locks: locks.snapshot("x"),
    lambda locks: locks.evict("x", reason="test"),
]  # fmt: skip


def is_look(request: bytes) -> bool:
    return READ_STATE.sha.encode() in request


@pytest.mark.parametrize("look", LOOKS)
def test_a_lost_answer_is_asked_for_again(redis_alone: Server, look: Callable[[fairlock.Locks], object]) -> None:
    with Proxy(redis_alone.port) as proxy, fairlock.connect(proxy.url) as locks:
        with locks.lock("x"):
            pass
        look(locks)  # from now on the server knows the script
        fates = cycle(["cut", ""])
        proxy.fate = lambda request: next(fates) if is_look(request) else ""
        look(locks)
        assert proxy.cuts


@pytest.mark.parametrize("look", LOOKS)
def test_no_reply_at_all_is_an_error(redis_alone: Server, look: Callable[[fairlock.Locks], object]) -> None:
    with Proxy(redis_alone.port) as proxy, fairlock.connect(proxy.url) as locks:
        with locks.lock("x"):
            pass
        proxy.fate = lambda request: "cut" if is_look(request) else ""
        with pytest.raises(StoreError, match="does not reply"):
            look(locks)


def test_a_timeout_is_raised_even_if_the_holder_cannot_be_read(redis_alone: Server) -> None:
    with Proxy(redis_alone.port) as proxy, fairlock.connect(proxy.url) as locks:
        with fairlock.connect(redis_alone.url) as others, others.lock("x"):
            proxy.fate = lambda request: "cut" if is_look(request) else ""
            with pytest.raises(LockTimeout, match="could not be acquired"):
                locks.lock("x", timeout=0.1).__enter__()


def test_the_same_for_tasks(redis_alone: Server) -> None:
    async def main() -> None:
        with Proxy(redis_alone.port) as proxy:
            async with aio.connect(proxy.url) as locks:
                async with locks.lock("x"):
                    fates = cycle(["cut", ""])
                    proxy.fate = lambda request: next(fates) if is_look(request) else ""
                    assert await locks.lock("x").locked()
                    proxy.fate = lambda request: "cut" if is_look(request) else ""
                    with pytest.raises(StoreError):
                        await locks.lock("x").locked()

    asyncio.run(main())

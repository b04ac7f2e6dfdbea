"""idempotent and build at their edges: what a stale holder, a strange result and a call within itself get."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import fairlock
from fairlock import ConfigError, LeaseLost, LockError, aio
from fairlock.recipes import Idempotent
from fairlock.sync import Lease


class LosesItsLease(Idempotent):
    """The lease is lost while the store's clock is read, between the function and the storing of its result."""

    lease: Lease | None = None

    async def _now(self, name: str) -> int:
        now = await super()._now(name)
        if self.lease is not None:
            self._locks.evict(name, reason="a test", at_once=True)
            until = time.monotonic() + 10
            while not self.lease.lost and time.monotonic() < until:
                time.sleep(0.01)
        return now


def test_a_stale_holder_does_not_store_its_result() -> None:
    with fairlock.connect("memory://", lease=0.5) as locks:
        keys = LosesItsLease(locks, "x")

        def function(lease: Lease) -> str:
            keys.lease = lease
            return "stale"

        with pytest.raises(LeaseLost):
            keys.run("a", function)
        assert locks.pool("idempotent:x").items() == []
        assert locks.idempotent("x").run("a", lambda lease: "next") == "next"


LARGE = "a" * (64 * 1024)
DEEP: list[Any] = []
for _ in range(2000):
    DEEP = [DEEP]


@pytest.mark.parametrize("result", [object(), {1, 2}, float("nan"), b"bytes", LARGE, DEEP, "\ud800", {(1, 2): 3}])
def test_a_result_that_cannot_be_stored_is_a_sentence_and_leaves_the_key_free(result: Any) -> None:
    with fairlock.connect("memory://") as locks:
        keys = locks.idempotent("x")
        with pytest.raises(ConfigError):
            keys.run("a", lambda lease: result)
        assert keys.run("a", lambda lease: 1, timeout=0) == 1


@pytest.mark.parametrize("result", [None, False, 0, "", [], {"a": [1, None]}, "ä\0", 10**40, "a" * 60_000])
def test_a_result_is_returned_again_as_it_was(result: Any) -> None:
    with fairlock.connect("memory://") as locks:
        keys = locks.idempotent("x")
        assert [keys.run("a", lambda lease: result) for _ in range(2)] == [result, result]


def test_a_call_within_itself_is_refused() -> None:
    with fairlock.connect("memory://") as locks:
        keys = locks.idempotent("x")
        with pytest.raises(LockError, match="idempotent:x:a"):
            keys.run("a", lambda lease: keys.run("a", lambda lease: 1))
        assert keys.run("a", lambda lease: 2, timeout=0) == 2
        with pytest.raises(LockError, match="page"):
            build = locks.build
            build("page", get=lambda: None, make=lambda: build("page", get=lambda: None, make=int, put=id), put=id)


def test_a_task_that_is_cancelled_leaves_the_key_free() -> None:
    async def main() -> None:
        async with aio.connect("memory://") as locks:
            keys = locks.idempotent("x")
            running = asyncio.Event()

            async def function(lease: aio.Lease) -> int:
                running.set()
                await asyncio.sleep(60)
                return 1

            async def other(lease: aio.Lease) -> int:
                return 2

            task = asyncio.create_task(keys.run("a", function))
            await running.wait()
            waiting = asyncio.create_task(keys.run("a", other))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.wait_for(waiting, 5) == 2
            assert await keys.run("a", function) == 2

    asyncio.run(main())


@pytest.mark.parametrize("fails", ["get", "make", "put"])
def test_what_a_function_of_build_raises_is_raised_and_the_next_one_builds(fails: str) -> None:
    cache: list[bool] = []
    with fairlock.connect("memory://") as locks:

        def part(name: str, function: Any) -> Any:
            def call(*args: Any) -> Any:
                if name == fails:
                    raise ZeroDivisionError
                return function(*args)

            return call

        parts = {"get": lambda: cache[0] if cache else None, "make": lambda: False, "put": cache.append}
        with pytest.raises(ZeroDivisionError):
            locks.build("page", timeout=0, **{name: part(name, function) for name, function in parts.items()})
        assert locks.build("page", timeout=0, **parts) is False  # type: ignore[arg-type]
        assert cache == [False]
        assert locks.build("page", timeout=0, **parts) is False, "a value like any other: it is not made again"  # type: ignore[arg-type]
        assert cache == [False]

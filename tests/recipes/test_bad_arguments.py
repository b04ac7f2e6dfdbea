"""What a caller gets for arguments that make no sense: a sentence, before anything is acquired or called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import fairlock
from fairlock import ConfigError, aio
from fairlock.recipes.tick_schedule import Ticks


async def in_tasks(*args: Any) -> None:
    raise AssertionError("it must not be called")


CALLS: list[tuple[str, Callable[[Any], object]]] = [
    ("main is a function, not None", lambda locks: locks.elect("a").run(None)),
    ("get is a function, not None", lambda locks: locks.build("a", get=None, make=print, put=print)),
    ("put is a function, not 5", lambda locks: locks.build("a", get=print, make=print, put=5)),
    ("The function is a function, not 3", lambda locks: locks.idempotent("a").run("k", 3)),
    ("A key is a string that is not empty, such as 'order-42'; not 7", lambda locks: locks.idempotent("a").run(7, id)),
    ("A key is a string that is not empty", lambda locks: locks.idempotent("a").run("", id)),
    ("tries is a whole number from 1 up, not '2'", lambda locks: locks.once("a", every=1, tries="2")),
    ("tries is a whole number from 1 up, not 1.5", lambda locks: locks.once("a", every=1, tries=1.5)),
]
CALLS += [
    ("every is a number of seconds or a timedelta, not '1h'", lambda locks: locks.once("a", every="1h")),
    ("every is a number of seconds or a timedelta, not True", lambda locks: locks.once("a", every=True)),
    ("every is a number of seconds greater than 0", lambda locks: locks.once("a", every=float("nan"))),
    ("less than ten years", lambda locks: locks.once("a", every=timedelta(days=9999))),
    ("every is at least a millionth", lambda locks: locks.once("a", every=1e-7)),
]
ONLY_BLOCKING: list[tuple[str, Callable[[Any], object]]] = [
    ("main is async; this is the blocking client", lambda locks: locks.elect("a").run(in_tasks)),
    ("make is async", lambda locks: locks.build("a", get=print, make=in_tasks, put=print)),
    ("The function is async", lambda locks: locks.idempotent("a").run("k", in_tasks)),
]


@pytest.mark.parametrize("sentence, call", CALLS + ONLY_BLOCKING)
def test_a_thread_gets_a_sentence(sentence: str, call: Callable[[Any], object]) -> None:
    with fairlock.connect("memory://") as locks:
        with pytest.raises(ConfigError, match=sentence):
            call(locks)
        assert locks.leader("a") is None


@pytest.mark.parametrize("sentence, call", CALLS)
def test_a_task_gets_it_too(sentence: str, call: Callable[[Any], Any]) -> None:
    async def main() -> None:
        async with aio.connect("memory://") as locks:
            with pytest.raises(ConfigError, match=sentence):
                await call(locks)

    asyncio.run(main())


@pytest.mark.parametrize("every", [2.3, timedelta(seconds=2.3), 0.1, 1 / 3])
def test_ticks_are_of_exactly_that_many_microseconds(every: float | timedelta) -> None:
    seconds = every.total_seconds() if isinstance(every, timedelta) else every
    tick = Ticks(every, None).at(1_800_000_000_000_000)
    assert tick.end - tick.start == round(seconds * 1e6)


def test_a_window_shorter_than_a_reply_does_not_go_on_forever() -> None:
    with fairlock.connect("memory://") as locks:
        calls = locks.throttle("api", 5, per=1e-6)
        assert all(calls.wait(timeout=30) for _ in range(12))

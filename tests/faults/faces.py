"""The two faces of the library behind the same few calls, so that what a worker does is written once: a coroutine that
tasks await, and that threads run to its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import fairlock
from fairlock import aio

Stay = Callable[[Any], Coroutine[Any, Any, None]]


class ThreadFace:
    connect = staticmethod(fairlock.connect)

    @staticmethod
    async def hold(context: Any, stay: Stay) -> None:
        with context as leases:
            await stay(leases)

    @staticmethod
    async def sleep(seconds: float) -> None:
        time.sleep(seconds)

    @staticmethod
    async def call(result: Any) -> Any:
        return result


class TaskFace:
    connect = staticmethod(aio.connect)
    sleep = staticmethod(asyncio.sleep)

    @staticmethod
    async def hold(context: Any, stay: Stay) -> None:
        async with context as leases:
            await stay(leases)

    @staticmethod
    async def call(result: Any) -> Any:
        return await result

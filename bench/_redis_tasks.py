"""Who is compared under asyncio: a thousand tasks, each with a lock of its own."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from _redis_contenders import RELEASE, ask, pack, wire

Cycle = Callable[[int], Awaitable[None]]


class TaskContender:
    name: str

    async def open(self, url: str) -> Cycle:
        """What one task does once: take its own lock and give it back."""
        raise NotImplementedError

    async def close(self) -> None:
        pass


class Holdfast(TaskContender):
    name = "holdfast"

    async def open(self, url: str) -> Cycle:
        from holdfast import aio

        self._locks = locks = aio.connect(url)

        async def cycle(number: int) -> None:
            async with locks.lock(f"t{number}"):
                pass

        return cycle

    async def close(self) -> None:
        await self._locks.close()


class RedisAsyncio(TaskContender):
    name = "redis.asyncio"

    async def open(self, url: str) -> Cycle:
        from redis.asyncio import BlockingConnectionPool, Redis

        self._client = client = Redis(connection_pool=BlockingConnectionPool.from_url(url, max_connections=100))

        async def cycle(number: int) -> None:
            async with client.lock(f"ra{number}", timeout=30):
                pass

        return cycle

    async def close(self) -> None:
        await self._client.aclose()


class Aioredlock(TaskContender):
    name = "aioredlock"

    async def open(self, url: str) -> Cycle:
        from aioredlock import Aioredlock

        self._maker = maker = Aioredlock([url])

        async def cycle(number: int) -> None:
            async with await maker.lock(f"ar{number}", lock_timeout=30):
                pass

        return cycle

    async def close(self) -> None:
        await self._maker.destroy()


class Coredis(TaskContender):
    name = "coredis"

    async def open(self, url: str) -> Cycle:
        import coredis
        from coredis.patterns.lock import Lock

        parts = urlsplit(url)
        self._client: Any = coredis.Redis(host=parts.hostname, port=parts.port)
        client = await self._client.__aenter__()

        async def cycle(number: int) -> None:
            async with Lock(client, f"co{number}", timeout=30):
                pass

        return cycle

    async def close(self) -> None:
        await self._client.__aexit__(None, None, None)


class Glide(TaskContender):
    """It has no lock: the same two commands as the raw socket, by its own client."""

    name = "glide, bare"

    async def open(self, url: str) -> Cycle:
        import glide

        parts = urlsplit(url)
        where = [glide.NodeAddress(parts.hostname, parts.port)]
        config = glide.GlideClientConfiguration(where, request_timeout=60000)
        self._client = client = await glide.GlideClient.create(config)
        script = glide.Script(RELEASE)
        free = glide.ConditionalChange.ONLY_IF_DOES_NOT_EXIST
        expiry = glide.ExpirySet(glide.ExpiryType.SEC, 30)

        async def cycle(number: int) -> None:
            key = f"gl{number}"
            await client.set(key, "t", conditional_set=free, expiry=expiry)
            await client.invoke_script(script, keys=[key], args=["t"])

        return cycle

    async def close(self) -> None:
        await self._client.close()


TASKS: tuple[type[TaskContender], ...] = (Holdfast, RedisAsyncio, Aioredlock, Coredis, Glide)


async def rate(kind: type[TaskContender], url: str, tasks: int, seconds: float) -> float:
    """Cycles per second, of so many tasks at once."""
    one = kind()
    cycle = await one.open(url)
    try:
        await asyncio.gather(*[cycle(number) for number in range(tasks)])
        begun = time.monotonic()
        done = 0
        while time.monotonic() - begun < seconds:
            await asyncio.gather(*[cycle(number) for number in range(tasks)])
            done += tasks
        return done / (time.monotonic() - begun)
    finally:
        await one.close()


def raw_rate(url: str, tasks: int, seconds: float) -> float:
    """The limit: all that can be taken in one write, then all that can be given back in one."""
    sock = wire(url)
    sha = ask(sock, "SCRIPT", "LOAD", RELEASE).split(b"\r\n")[1].decode()
    enter = b"".join(pack("SET", f"rb{n}", "t", "NX", "PX", 30000) for n in range(tasks))
    leave = b"".join(pack("EVALSHA", sha, 1, f"rb{n}", "t") for n in range(tasks))
    begun = time.monotonic()
    done = 0
    while time.monotonic() - begun < seconds:
        for payload, size in ((enter, 5), (leave, 4)):
            sock.sendall(payload)
            left = size * tasks
            while left:
                left -= len(sock.recv(262144))
        done += tasks
    sock.close()
    return done / (time.monotonic() - begun)

"""The contenders under asyncio: a thousand tasks, each with a lock of its own."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from _redis_contenders import RELEASE, pack, send_command, wire

Cycle = Callable[[], Awaitable[None]]


class TaskContender:
    name: str

    async def open(self, url: str) -> None:
        raise NotImplementedError

    def task(self, number: int) -> Cycle:
        """Return what this task does again and again: acquire its own lock and release it."""
        raise NotImplementedError

    async def close(self) -> None:
        pass


class Fairlock(TaskContender):
    name = "fairlock"

    async def open(self, url: str) -> None:
        from fairlock import aio

        self._locks = aio.connect(url)

    def task(self, number: int) -> Cycle:
        lock = self._locks.lock(f"t{number}")

        async def cycle() -> None:
            async with lock:
                pass

        return cycle

    async def close(self) -> None:
        await self._locks.close()


class RedisAsyncio(TaskContender):
    name = "redis.asyncio"

    async def open(self, url: str) -> None:
        from redis.asyncio import BlockingConnectionPool, Redis

        self._client = Redis(connection_pool=BlockingConnectionPool.from_url(url, max_connections=100))

    def task(self, number: int) -> Cycle:
        lock = self._client.lock(f"ra{number}", timeout=30)

        async def cycle() -> None:
            async with lock:
                pass

        return cycle

    async def close(self) -> None:
        await self._client.aclose()


class Aioredlock(TaskContender):
    name = "aioredlock"

    async def open(self, url: str) -> None:
        from aioredlock import Aioredlock

        self._maker = Aioredlock([url])

    def task(self, number: int) -> Cycle:
        maker = self._maker

        async def cycle() -> None:
            async with await maker.lock(f"ar{number}", lock_timeout=30):  # it has no object to use again
                pass

        return cycle

    async def close(self) -> None:
        await self._maker.destroy()


class Coredis(TaskContender):
    name = "coredis"

    async def open(self, url: str) -> None:
        import coredis

        parts = urlsplit(url)
        self._client: Any = coredis.Redis(host=parts.hostname, port=parts.port)
        self._entered = await self._client.__aenter__()

    def task(self, number: int) -> Cycle:
        from coredis.patterns.lock import Lock

        lock: Any = Lock(self._entered, f"co{number}", timeout=30)

        async def cycle() -> None:
            async with lock:
                pass

        return cycle

    async def close(self) -> None:
        await self._client.__aexit__(None, None, None)


class Glide(TaskContender):
    """It has no lock: the same two commands as the raw socket, by its own client."""

    name = "glide, bare"

    async def open(self, url: str) -> None:
        import glide

        parts = urlsplit(url)
        where = [glide.NodeAddress(parts.hostname, parts.port)]
        config = glide.GlideClientConfiguration(where, request_timeout=60000)
        self._client = await glide.GlideClient.create(config)
        self._script = glide.Script(RELEASE)

    def task(self, number: int) -> Cycle:
        import glide

        client, script, key = self._client, self._script, f"gl{number}"
        free = glide.ConditionalChange.ONLY_IF_DOES_NOT_EXIST
        expiry = glide.ExpirySet(glide.ExpiryType.SEC, 30)

        async def cycle() -> None:
            await client.set(key, "t", conditional_set=free, expiry=expiry)
            await client.invoke_script(script, keys=[key], args=["t"])

        return cycle

    async def close(self) -> None:
        await self._client.close()


TASKS: tuple[type[TaskContender], ...] = (Fairlock, RedisAsyncio, Aioredlock, Coredis, Glide)


async def rate(kind: type[TaskContender], url: str, tasks: int, seconds: float) -> float:
    """Return the cycles per second of this number of tasks at once."""
    one = kind()
    await one.open(url)
    done = 0
    over = False

    async def work(cycle: Cycle) -> None:
        nonlocal done
        while not over:
            await cycle()
            done += 1

    try:
        cycles = [one.task(number) for number in range(tasks)]
        await asyncio.gather(*[cycle() for cycle in cycles])
        begun = time.monotonic()
        crowd = [asyncio.create_task(work(cycle)) for cycle in cycles]
        await asyncio.sleep(seconds)
        over, found = True, done / (time.monotonic() - begun)
        await asyncio.gather(*crowd)
        return found
    finally:
        await one.close()


def raw_rate(url: str, tasks: int, seconds: float) -> float:
    """The limit: all that can be taken in one write, then all that can be given back in one."""
    sock = wire(url)
    sha = send_command(sock, "SCRIPT", "LOAD", RELEASE).split(b"\r\n")[1].decode()
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

"""The contenders of pools: a sorted set and two scripts as the limit, and the queues of four other libraries.

Each is given as a program would write it. "An item" is taken and finished by those that have it (fairlock, the raw
scripts, litequeue, arq, which also runs an empty function); rq and huey only fetch. None of the others has a fence;
the raw scripts know neither owners nor bodies nor waiters, so a late worker would finish another's item.
"""

import os
import time
from collections.abc import Callable
from typing import Any

from _redis_contenders import pack, send_command, wire

TAKE = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local key = redis.call('ZRANGEBYSCORE', KEYS[1], 0, string.format('%.0f', now), 'LIMIT', 0, 1)[1]
if key then redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[1]), key) end
return key
"""
DONE = "return redis.call('ZADD', KEYS[1], -1, ARGV[1])"
LEASE = 60_000_000
WARM = 3  # items that each worker has before the measurement: to connect, import and load takes longer than all else


class Contender:
    """`fill` puts items in; a worker calls what `open` gave until there is nothing left."""

    name = ""
    store = ""
    enough = 40_000  # items for one measurement: more than anybody can have

    def fill(self, place: str, number: int) -> None:
        raise NotImplementedError

    def open(self, place: str) -> Callable[[], bool]:
        raise NotImplementedError

    def worker(self, place: str) -> Callable[[float], tuple[int, float]]:
        """Work for this many seconds. Return how many items were finished, and when the last one was."""
        one = self.open(place)
        for _ in range(WARM):
            one()

        def run(seconds: float) -> tuple[int, float]:
            count, last = 0, time.monotonic()
            end = last + seconds
            while last < end and one():
                count += 1
                last = time.monotonic()
            return count, last

        return run


class RawSocket(Contender):
    """Two scripts on a bare socket."""

    name = "raw scripts, bare socket"
    store = "redis"

    def fill(self, place: str, number: int) -> None:
        with wire(place) as sock:
            for first in range(0, number, 1000):
                pairs = [word for n in range(first, first + 1000) for word in (n + 1, f"item {n}")]
                send_command(sock, "ZADD", self.name, *pairs)

    def open(self, place: str) -> Callable[[], bool]:
        sock = wire(place)
        take, done = (send_command(sock, "SCRIPT", "LOAD", text).split(b"\r\n")[1].decode() for text in (TAKE, DONE))
        seek = pack("EVALSHA", take, 1, self.name, LEASE)

        def one() -> bool:
            sock.sendall(seek)
            found = sock.recv(4096)
            if found[:2] == b"$-":
                return False
            send_command(sock, "EVALSHA", done, 1, self.name, found.split(b"\r\n")[1].decode())
            return True

        return one


class RawScript(Contender):
    """The same two scripts by redis-py."""

    name = "raw scripts, redis-py"
    store = "redis"

    def fill(self, place: str, number: int) -> None:
        import redis

        with redis.Redis.from_url(place) as client:
            client.zadd(self.name, {f"item {n}": n + 1 for n in range(number)})

    def open(self, place: str) -> Callable[[], bool]:
        import redis

        client: Any = redis.Redis.from_url(place)
        take, done = client.register_script(TAKE), client.register_script(DONE)

        def one() -> bool:
            key = take([self.name], [LEASE])
            if key is not None:
                done([self.name], [key])
            return key is not None

        return one


class Fairlock(Contender):
    name = "fairlock, redis"
    store = "redis"

    def fill(self, place: str, number: int) -> None:
        import fairlock

        with fairlock.connect(place) as locks:
            locks.pool("bench").add_many(f"item {n}" for n in range(number))

    def open(self, place: str) -> Callable[[], bool]:
        import fairlock

        pool = fairlock.connect(place).pool("bench")

        def one() -> bool:
            item = pool.acquire(timeout=0)
            if item is not None:
                item.done()
            return item is not None

        return one


class OurScripts(Fairlock):
    """Our two scripts on a bare socket: all that the server does for an item, and nothing of what the client does.

    What is the same each time is packed once, or packing would take longer than the server.
    """

    name = "fairlock's scripts, bare socket"

    def open(self, place: str) -> Callable[[], bool]:
        from fairlock.stores.redis.pool_encoding import FAST_FINISH, FAST_TAKE, keys

        sock = wire(place)
        for script in (FAST_TAKE, FAST_FINISH):
            send_command(sock, "SCRIPT", "LOAD", script.text)
        where = keys("", "bench")[:2]
        me = os.urandom(12).hex()
        count = 0
        ticket = ":" + "0" * 32
        seek = pack("EVALSHA", FAST_TAKE.sha, 2, *where, ticket, LEASE, f" {LEASE} 5 0 bench").split(ticket.encode())
        done = pack("EVALSHA", FAST_FINISH.sha, 2, *where, ticket, "item", "key", "").partition(ticket.encode())[0]

        def one() -> bool:
            nonlocal count
            count += 1
            own = b":%b%08x" % (me.encode(), count)
            sock.sendall(own.join(seek))
            found = sock.recv(4096)
            if found[:2] in (b"$-", b"_\r"):
                return False
            item = found[found.index(b"\n") + 1 : found.index(b"\0")]
            key = item[17:]
            rest = b"\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$0\r\n\r\n" % (len(item), item, len(key), key)
            sock.sendall(done + own + rest)
            return sock.recv(4096) == b":1\r\n"

        return one


class FairlockSqlite(Fairlock):
    name = "fairlock, sqlite"
    store = "sqlite"
    enough = 3_000


class Rq(Contender):
    name = "rq"
    store = "redis"
    enough = 4_000

    def fill(self, place: str, number: int) -> None:
        from redis import Redis
        from rq import Queue

        queue = Queue("bench", connection=Redis.from_url(place))
        queue.enqueue_many([Queue.prepare_data("os.getpid") for _ in range(number)])

    def open(self, place: str) -> Callable[[], bool]:
        from redis import Redis
        from rq import Queue

        client = Redis.from_url(place)
        queue = Queue("bench", connection=client)
        return lambda: Queue.dequeue_any([queue], None, connection=client) is not None


async def nothing(_: object) -> None:
    """Do nothing: arq needs a function to run."""


class Arq(Contender):
    name = "arq"
    store = "redis"
    enough = 600

    def fill(self, place: str, number: int) -> None:
        import asyncio

        from arq import create_pool
        from arq.connections import RedisSettings

        async def put() -> None:
            pool = await create_pool(RedisSettings.from_dsn(place))
            for first in range(0, number, 50):
                await asyncio.gather(*[pool.enqueue_job("nothing") for _ in range(first, first + 50)])
            await pool.aclose()

        asyncio.run(put())

    def worker(self, place: str) -> Callable[[float], tuple[int, float]]:
        import asyncio
        import logging

        from arq.connections import RedisSettings
        from arq.worker import Worker

        logging.disable()

        async def work(seconds: float) -> tuple[int, float]:
            worker = Worker(
                functions=[nothing], redis_settings=RedisSettings.from_dsn(place), burst=True, poll_delay=0.01,
                keep_result=0, handle_signals=False,
            )  # fmt: skip
            await asyncio.wait([asyncio.ensure_future(worker.async_run())], timeout=seconds)
            return int(worker.jobs_complete), time.monotonic()

        # Not asyncio.run(), which would wait for the worker: of many, some do not end when they are cancelled.
        return lambda seconds: asyncio.new_event_loop().run_until_complete(work(seconds))


class Huey(Contender):
    name = "huey, sqlite"
    store = "sqlite"
    enough = 1_000

    def fill(self, place: str, number: int) -> None:
        queue, task = self._queue(place)
        with queue.storage.db() as db:
            data = queue.serialize_task(task.s())
            db.executemany("insert into task (queue, data, priority) values (?, ?, 0)", [(queue.name, data)] * number)

    def _queue(self, place: str) -> tuple[Any, Any]:
        from huey import SqliteHuey

        queue: Any = SqliteHuey("bench", filename=_file(place, "huey"))
        return queue, queue.task(name="nothing")(lambda: None)

    def open(self, place: str) -> Callable[[], bool]:
        queue, _ = self._queue(place)
        return lambda: queue.dequeue() is not None


class LiteQueue(Contender):
    name = "litequeue, sqlite"
    store = "sqlite"
    enough = 3_000

    def fill(self, place: str, number: int) -> None:
        queue = self._queue(place)
        for n in range(number):
            queue.put(f"item {n}")

    def _queue(self, place: str) -> Any:
        from litequeue import LiteQueue as Queue

        return Queue(_file(place, "litequeue"), timeout=30)

    def open(self, place: str) -> Callable[[], bool]:
        queue = self._queue(place)

        def one() -> bool:
            message = queue.pop()
            if message is not None:
                queue.done(message.message_id)
            return message is not None

        return one


def _file(place: str, name: str) -> str:
    return os.path.join(os.path.dirname(place.removeprefix("sqlite:///")), f"{name}.db")


CONTENDERS: tuple[type[Contender], ...] = (
    RawSocket, OurScripts, RawScript, Fairlock, Rq, Arq, FairlockSqlite, Huey, LiteQueue,
)  # fmt: skip

"""The contenders on Redis: fairlock, the locks of seven other libraries, and bare sockets as the limits.

Each is given as a program would write it, with a lease of 30 seconds where it asks for one and no settings to please
the bench. What a library is not asked for here, it is not charged for: none of the others has a fence, most have no
line, and a bare socket has neither a deadline nor a way back from a lost reply.
"""

import os
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import urlsplit

from _contenders import Contender

RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"


def pack(*words: str | int) -> bytes:
    data = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(data) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in data)


def wire(url: str) -> socket.socket:
    parts = urlsplit(url)
    sock = socket.create_connection((parts.hostname, parts.port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def send_command(sock: socket.socket, *words: str | int) -> bytes:
    sock.sendall(pack(*words))
    return sock.recv(65536)


class Raw(Contender):
    """SET NX PX, and a script that compares and deletes: all that a lock without waiting can do without."""

    name = "raw socket"

    def open(self, folder: str) -> None:
        self._sock = sock = wire(folder)
        sha = send_command(sock, "SCRIPT", "LOAD", RELEASE).split(b"\r\n")[1].decode()
        one = _RawCycle(sock, pack("SET", "raw", "token", "NX", "PX", 30000), pack("EVALSHA", sha, 1, "raw", "token"))
        self.fresh = self.same = lambda: one

    def close(self) -> None:
        self._sock.close()


class _RawCycle:
    def __init__(self, sock: socket.socket, enter: bytes, leave: bytes) -> None:
        self._send, self._recv = sock.sendall, sock.recv
        self._enter, self._leave = enter, leave

    def __enter__(self) -> None:
        self._send(self._enter)
        if self._recv(4096)[:1] != b"+":
            raise RuntimeError("it was not free")

    def __exit__(self, *_: object) -> None:
        self._send(self._leave)
        self._recv(4096)


class TokenList(Contender):
    """A list with one token in it: BLPOP takes it and waits for it, LPUSH puts it back."""

    name = "token list"

    def open(self, folder: str) -> None:
        self._sock = sock = wire(folder)
        if send_command(sock, "SETNX", "token:made", 1) == b":1\r\n":
            send_command(sock, "LPUSH", "token", "t")
        one = _RawCycle(sock, b"", b"")
        one._enter, one._leave = pack("BLPOP", "token", 0), pack("LPUSH", "token", "t")
        one.__class__ = _TokenCycle
        self.fresh = self.same = lambda: one

    def close(self) -> None:
        self._sock.close()


class _TokenCycle(_RawCycle):
    def __enter__(self) -> None:
        self._send(self._enter)
        self._recv(4096)


class Fairlock(Contender):
    name = "fairlock"

    def open(self, folder: str) -> None:
        import fairlock

        self._locks = locks = fairlock.connect(folder)
        self.fresh = lambda: locks.lock("x")
        same = locks.lock("x")
        self.same = lambda: same

    def close(self) -> None:
        self._locks.close()


class _OfALibrary(Contender):
    """One that makes its lock from a client of redis-py."""

    def open(self, folder: str) -> None:
        import redis

        client = redis.Redis.from_url(folder)
        self.make: Callable[[], AbstractContextManager[Any]] = self.maker(client, folder)
        self.fresh = self.make
        same = self.make()
        self.same = lambda: same

    def maker(self, client: Any, url: str) -> Callable[[], AbstractContextManager[Any]]:
        raise NotImplementedError


class RedisPy(_OfALibrary):
    name = "redis-py"

    def maker(self, client: Any, url: str) -> Callable[[], AbstractContextManager[Any]]:
        return lambda: client.lock("redis-py", timeout=30)


class PythonRedisLock(_OfALibrary):
    name = "python-redis-lock"

    def maker(self, client: Any, url: str) -> Callable[[], AbstractContextManager[Any]]:
        import redis_lock

        return lambda: redis_lock.Lock(client, "python-redis-lock", expire=30)


class Sherlock(_OfALibrary):
    name = "sherlock"

    def maker(self, client: Any, url: str) -> Callable[[], AbstractContextManager[Any]]:
        import sherlock

        return lambda: sherlock.RedisLock("sherlock", client=client, expire=30, timeout=60)


class Tooz(_OfALibrary):
    name = "tooz"

    def maker(self, client: Any, url: str) -> Callable[[], AbstractContextManager[Any]]:
        from tooz import coordination

        coordinator = coordination.get_coordinator(url, b"bench-%d" % os.getpid())
        coordinator.start()
        return lambda: coordinator.get_lock("tooz")


class Pottery(_OfALibrary):
    name = "pottery"

    def maker(self, client: Any, url: str) -> Callable[[], AbstractContextManager[Any]]:
        from pottery import Redlock

        return lambda: Redlock(key="pottery", masters={client}, auto_release_time=30)


ALONE: tuple[type[Contender], ...] = (Raw, Fairlock, RedisPy, PythonRedisLock, Sherlock, Tooz, Pottery)
FIGHTING: tuple[type[Contender], ...] = (TokenList, Fairlock, RedisPy, PythonRedisLock, Sherlock, Tooz, Pottery)
WAITING: tuple[type[Contender], ...] = (TokenList, Fairlock, RedisPy, PythonRedisLock)


def runnable(kinds: tuple[type[Contender], ...], url: str, missing: dict[str, str]) -> list[type[Contender]]:
    """Those that can be installed and do one cycle here; of the others, why not."""
    found = []
    for kind in kinds:
        if kind.name in missing:
            continue
        try:
            one = kind()
            one.open(url)
            with one.same():
                pass
            one.close()
            found.append(kind)
        except Exception as error:
            missing[kind.name] = f"{type(error).__name__}: {error}"[:120]
    return found

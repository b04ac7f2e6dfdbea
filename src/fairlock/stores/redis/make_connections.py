"""Makes the servers and their connections from an address; clients of the same address share them.

The connections are redis-py's own classes, so that TLS, AUTH and credentials work as there. No pool counts them or
lends them out. What the driver adds by itself is switched off: retries (the engine repeats a request, and counts it),
health checks, notifications.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError

from ..base import Runtime
from ..shared_connections import Share, SharedConnections, reset_all
from .encoding import LISTENERS, pack
from .topology import Cluster, Place, SentinelTopology, SingleServer, Topology, connect_to
from .url import TLS, Address

ASK = 1.0  # seconds that a sentinel may take; the next one knows the same


class RedisConnections(SharedConnections):
    """The connections to the servers of one address, and the listener there. Opens nothing yet."""

    def __init__(self, address: Address, runtime: Runtime) -> None:
        super().__init__()
        self.session = OpenSession(address.driver)
        self.database: int = address.driver.get("db", 0)
        self.topology = make_topology(address, runtime.blocking, self.session)
        self.listener = os.urandom(8).hex()
        """The name under which all clients that share this are notified."""
        _, _, _, listener = _classes(runtime.blocking)
        self.listeners = listener(runtime, LISTENERS + self.listener)
        if not runtime.blocking:
            self.listeners.on_break = partial(reset_all, self.shares)
        self._pid = os.getpid()

    async def close(self) -> None:
        await self.listeners.close()
        await self.topology.close()

    def forked(self) -> None:
        """The connections are the parent's. Each client calls this; once is enough."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self.session.owner = ""
            self.listener = os.urandom(8).hex()
            self.listeners.forget(LISTENERS + self.listener)
            self.topology.forget()


def share_connections(address: Address, runtime: Runtime) -> Share[RedisConnections]:
    """Return a share of the connections to this address. min_replicas makes no difference to them."""
    kind, where, hosts, service, driver, _, secure = address
    key = ("redis", kind, where, hosts, service, tuple(sorted(driver.items())), secure)
    return Share(runtime, key, lambda: RedisConnections(address, runtime))


class OpenSession:
    """Opens the session on a new connection: as redis-py does; then the connection gets a name, for CLIENT LIST.

    HELLO sets it, which every user may send. (CLIENT SETNAME would need one more right, and redis-py fails without
    it.) A proxy that refuses does not matter.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.owner = ""  # of the first client that uses the connections
        self._name = settings.get("client_name")
        self._protocol = settings.get("protocol") or 3

    def command(self) -> tuple[Any, ...]:
        name = self._name or f"fairlock:{self.owner}"
        plain = "".join(c if "!" <= c <= "~" else "_" for c in name)  # all that the server allows
        return "HELLO", self._protocol, "SETNAME", plain

    def blocking(self, connection: Any) -> None:
        connection.on_connect()
        connection.send_command(*self.command(), check_health=False)
        try:
            connection.read_response()
        except ResponseError:
            pass

    async def tasks(self, connection: Any) -> None:
        await connection.on_connect()
        await connection.send_command(*self.command(), check_health=False)
        try:
            await connection.read_response()
        except ResponseError:
            pass


def make_topology(address: Address, blocking: bool, session: OpenSession) -> Topology:
    """Make the topology for an address. Opens nothing."""
    driver, retry, node, _ = _classes(blocking)
    kind = driver.SSLConnection if address.secure else driver.Connection
    if not address.hosts:
        kind = driver.UnixDomainSocketConnection
    once = {"retry": retry(NoBackoff(), 0), "redis_connect_func": session.blocking if blocking else session.tasks}
    if blocking:
        once["command_packer"] = Packer()

    def make_node(where: str, place: Place, settings: dict[str, Any] = address.driver) -> Any:
        arguments = {**settings, **once}
        arguments.pop("client_name", None)
        return node(lambda: kind(**place(), **arguments), where)

    if address.kind == "cluster":
        return Cluster(address.where, address.hosts, make_node)
    if address.kind == "sentinel":
        # They have users of their own, which no URL has room for.
        ask = {"socket_timeout": ASK, "socket_connect_timeout": ASK, "protocol": 3}
        ask |= {name: value for name, value in address.driver.items() if name in TLS}
        return SentinelTopology(address.where, address.service, address.hosts, make_node, ask)
    place = connect_to(*address.hosts[0]) if address.hosts else {}
    return SingleServer(make_node(address.where, lambda: place))


class Packer:
    """Packs the commands with which redis-py opens a connection.

    hiredis would do it quicker, but it writes numbers by a call that Ctrl-C may interrupt, and then crashes (3.5).
    """

    def pack(self, *args: Any) -> list[bytes]:
        first, *rest = args
        words = first.split() if isinstance(first, str | bytes) else [first]
        return [pack(*words, *rest)]


def _classes(blocking: bool) -> tuple[Any, Any, Any, Any]:
    """Return the module of redis-py with its connections, its class of retries, our class of servers, and of
    listeners."""
    if blocking:
        from redis.retry import Retry

        from .blocking_listener import ThreadListener
        from .thread_connections import ThreadNode

        return redis, Retry, ThreadNode, ThreadListener
    from redis import asyncio
    from redis.asyncio.retry import Retry as AsyncRetry

    from .async_connection import AsyncNode
    from .async_listener import AsyncListener

    return asyncio, AsyncRetry, AsyncNode, AsyncListener

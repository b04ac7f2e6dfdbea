"""From an address to the servers: who makes the connections, and of which kind.

redis-py's connections are made from its own classes and arguments, so TLS, AUTH and credentials are its business. They
are ours alone: nobody's pool counts them or lends them out. What a driver adds by itself is left out: retries (the
flows repeat a request, and know that they do), health checks, notifications.
"""

from __future__ import annotations

from typing import Any

import redis
from redis.backoff import NoBackoff

from .address import TIMEOUT, TLS, Address
from .atlas import Atlas, Cluster, OneServer, Place, Watched
from .layout import pack

ASK = 1.0  # seconds that a sentinel may take; the next one knows the same


def atlas_of(address: Address, blocking: bool) -> Atlas:
    """Opens nothing."""
    driver = _driver(blocking)
    kind = driver.SSLConnection if address.secure else driver.Connection

    def make_node(where: str, place: Place, settings: dict[str, Any] = address.driver) -> Any:
        arguments = arranged(blocking, settings)

        def connection() -> Any:
            host, port = place()
            return kind(host=host, port=port, **arguments)

        return _make_node(blocking)(connection, where)

    if address.kind == "cluster":
        return Cluster(address.where, address.hosts, make_node)
    if address.kind == "sentinel":
        # They have users of their own, which no URL has room for.
        ask = {"socket_timeout": ASK, "socket_connect_timeout": ASK, "protocol": 3}
        ask |= {name: value for name, value in address.driver.items() if name in TLS}
        return Watched(address.where, address.service, address.hosts, make_node, ask)
    if address.hosts:
        return OneServer(make_node(address.where, lambda: address.hosts[0]))
    arguments = arranged(blocking, address.driver)
    return OneServer(_make_node(blocking)(lambda: driver.UnixDomainSocketConnection(**arguments), address.where))


def arranged(blocking: bool, arguments: dict[str, Any]) -> dict[str, Any]:
    """A connection's arguments as those of a connection that does what it is told, once."""
    found = {**arguments, "retry": _once(blocking)}
    if blocking:
        found["command_packer"] = Packer()
    found["socket_timeout"] = found.get("socket_timeout") or TIMEOUT
    found["socket_connect_timeout"] = found.get("socket_connect_timeout") or TIMEOUT
    return found


class Packer:
    """Packs the commands with which redis-py opens a connection.

    hiredis would do it quicker, but it writes numbers by a call that Ctrl-C may interrupt, and then crashes (3.5).
    """

    def pack(self, *args: Any) -> list[bytes]:
        first, *rest = args
        words = first.split() if isinstance(first, str | bytes) else [first]
        return [pack(*words, *rest)]


def _driver(blocking: bool) -> Any:
    if blocking:
        return redis
    from redis import asyncio

    return asyncio


def _once(blocking: bool) -> Any:
    if blocking:
        from redis.retry import Retry

        return Retry(NoBackoff(), 0)
    from redis.asyncio.retry import Retry as TaskRetry

    return TaskRetry(NoBackoff(), 0)


def _make_node(blocking: bool) -> Any:
    if blocking:
        from .wire import ThreadNode

        return ThreadNode
    from .tasks import TaskNode

    return TaskNode


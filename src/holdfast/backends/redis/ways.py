"""From an address to the servers: who makes the connections, and of which kind.

redis-py's connections are made from its own classes and arguments, so TLS, AUTH, credentials and the sentinels' answers
are its business. They are ours alone: nobody's pool counts them or lends them out. What a driver adds by itself is left
out: tries of its own (the flows say the same again, and know that they do), health checks, notifications.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.sentinel import Sentinel

from .address import TIMEOUT, Address
from .atlas import Atlas, Cluster, OneServer
from .layout import pack

LEFT_OUT = (
    "retry_on_timeout", "retry_on_error", "health_check_interval", "maint_notifications_config",
    "maint_notifications_pool_handler", "oss_cluster_maint_notifications_handler", "orig_host_address",
    "orig_socket_timeout", "orig_socket_connect_timeout", "cache", "cache_config",
)  # fmt: skip


def atlas_of(address: Address, blocking: bool) -> Atlas:
    """Opens nothing."""
    driver = _driver(blocking)
    if address.kind == "cluster":
        node = redis.cluster.ClusterNode if blocking else driver.cluster.ClusterNode
        once = {"retry": _once(blocking)}
        settings = {**address.driver, **once, **({"ssl": True} if address.secure else {})}

        def open_cluster() -> Any:
            return driver.RedisCluster(startup_nodes=[node(host, port) for host, port in address.hosts], **settings)

        return Cluster(address.where, open_cluster, blocking, _make_node(blocking), arranged(blocking))
    if address.kind == "sentinel":
        guide = Sentinel if blocking else driver.Sentinel
        ask = {"socket_timeout": 1.0, "socket_connect_timeout": 1.0, "retry": _once(blocking)}
        if address.secure:
            ask["ssl"] = True
        sentinel = guide(list(address.hosts), sentinel_kwargs=ask)
        client = sentinel.master_for(address.service, **address.driver, **({"ssl": True} if address.secure else {}))
        pool = client.connection_pool
        arguments = arranged(blocking)(pool.connection_kwargs)
        kind = pool.connection_class if blocking else _hanging_up(pool.connection_class, sentinel.sentinels)
        node = _make_node(blocking)(lambda: kind(**arguments), address.where)
        return OneServer(node, sentinel, client)
    if address.hosts:
        kind = driver.SSLConnection if address.secure else driver.Connection
        host, port = address.hosts[0]
        arguments = arranged(blocking)({**address.driver, "host": host, "port": port})
    else:
        kind = driver.UnixDomainSocketConnection
        arguments = arranged(blocking)(address.driver)
    return OneServer(_make_node(blocking)(lambda: kind(**arguments), address.where))


def arranged(blocking: bool) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Makes a connection's arguments those of a connection that does what it is told, once."""

    def arrange(arguments: dict[str, Any]) -> dict[str, Any]:
        found = {name: value for name, value in arguments.items() if name not in LEFT_OUT}
        found["retry"] = _once(blocking)
        if blocking:
            found["command_packer"] = Packer()
        found["socket_timeout"] = found.get("socket_timeout") or TIMEOUT
        found["socket_connect_timeout"] = found.get("socket_connect_timeout") or TIMEOUT
        return found

    return arrange


def _hanging_up(kind: Any, guides: list[Any]) -> Any:
    """Connections that hang up on the sentinels when they know the master: a loop may end before anybody else does."""

    class Guided(kind):  # type: ignore[misc]
        async def connect(self) -> None:
            try:
                await super().connect()
            finally:
                for guide in guides:
                    await guide.connection_pool.disconnect(inuse_connections=False)

    return Guided


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


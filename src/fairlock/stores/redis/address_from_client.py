"""Reads the address from a client of redis-py: the same address as a URL would give.

Only the address and the credentials of the client are used, not its connections: these decode replies, retry, cache and
count against a maximum as their owner likes, and ours must do none of that. So the client stays as it is, may be closed
before our locks are, and is not kept alive by them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ...errors import ConfigError
from . import url
from .url import Address

KINDS = ("Redis", "RedisCluster")  # of each runtime; StrictRedis, and what Sentinel.master_for gives, are the first


def read(client: Any, blocking: bool, options: Mapping[str, Any]) -> Address:
    """Return the address of this client. ConfigError for a client of another runtime, or for another object."""
    refuse_runtime(client, blocking)
    if hasattr(client, "nodes_manager"):
        nodes, settings = client.nodes_manager.startup_nodes.values(), client.nodes_manager.connection_kwargs
        secure = settings.get("ssl") or "SSL" in getattr(settings.get("connection_class"), "__name__", "")
        return _address("cluster", [(node.host, node.port) for node in nodes], settings, options, bool(secure))
    pool = client.connection_pool
    settings, secure = pool.connection_kwargs, "SSL" in pool.connection_class.__name__
    service = getattr(pool, "service_name", "")
    if not service:
        hosts = [] if "path" in settings else [(settings.get("host", "localhost"), settings.get("port", 6379))]
        return _address("", hosts, settings, options, secure)
    if not pool.is_master:
        raise ConfigError("This client reads from replicas, and locks need the master. Use Sentinel.master_for(…).")
    sentinels = [one.connection_pool.connection_kwargs for one in pool.sentinel_manager.sentinels]
    return _address("sentinel", [(one["host"], one["port"]) for one in sentinels], settings, options, secure, service)


def refuse_runtime(client: object, blocking: bool) -> None:
    """Refuse a client of the other face: its replies would be coroutines, or it would block the loop."""
    if blocking:
        if _is_one_of("redis.asyncio", client):
            raise ConfigError("This client of Redis is for asyncio. Use fairlock.aio with it, or redis.Redis here.")
    elif _is_one_of("redis", client):
        raise ConfigError("This client of Redis blocks, and the whole loop with it. Use redis.asyncio.Redis here.")
    if not _is_one_of("redis" if blocking else "redis.asyncio", client):
        raise ConfigError(f"This is not a client of redis-py: {type(client).__module__}.{type(client).__qualname__}.")


def _is_one_of(module: str, client: object) -> bool:
    """Check without an import: a caller with such a client has imported it, and importing asyncio is slow."""
    classes = [getattr(sys.modules.get(module), kind, None) for kind in KINDS]
    return isinstance(client, tuple(each for each in classes if each is not None))


def _address(
    kind: str,
    hosts: list[tuple[str, int]],
    settings: Mapping[str, Any],
    options: Mapping[str, Any],
    secure: bool,
    service: str = "",
) -> Address:
    own = url.checked("redis", list(options.items()), url.OWN)
    known = {**url.DRIVER, **url.TLS} if secure else url.DRIVER
    driver = {name: settings[name] for name in known if settings.get(name) is not None}
    driver |= {name: settings.get(name) or url.TIMEOUT for name in ("socket_timeout", "socket_connect_timeout")}
    driver["protocol"] = 3
    if not hosts:
        driver.pop("socket_keepalive", None)
        return Address("", f"unix://{settings['path']}", (), "", {**driver, "path": settings["path"]}, own, False)
    scheme = f"redis{'s' if secure else ''}{'+' if kind else ''}{kind}"
    shown = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts)
    words = [f"{scheme}://{shown}", service, str(driver.get("db") or "")]
    return Address(kind, "/".join(filter(None, words)), tuple(hosts), service, driver, own, secure)

"""Reads a URL: hosts, database, credentials, options.

redis-py does not read it, because it takes `/O` for database 0, `/1/2` for 12, and passes an option that it does not
know on to a constructor that fails much later. What is wrong is refused before anything is opened; ../split_url.py
takes the URL apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from ...errors import ConfigError
from .. import split_url
from ..split_url import SPECIAL

TIMEOUT = 2.0  # seconds; for a connection, and for each answer


class Address(NamedTuple):
    kind: str
    """'' for one server, or 'sentinel' or 'cluster'."""
    where: str
    """The server as shown to people, without credentials and options."""
    hosts: tuple[tuple[str, int], ...]
    """None of them for a unix:// socket."""
    service: str
    """What the sentinels call the master."""
    driver: dict[str, Any]
    """Arguments of a connection, without host and port; with `path` for a unix:// socket."""
    own: dict[str, Any]
    """Our own options, which the driver does not get."""
    secure: bool


def read(url: str, options: Mapping[str, Any]) -> Address:
    """Options are keywords of connect(); a URL has them as `?name=value`, and a keyword counts for more."""
    scheme = url.partition("://")[0]
    secure, kind = scheme.startswith("rediss"), scheme.partition("+")[2]
    parts = split_url.split(url, FORMS[scheme])
    place, path = parts.place, unquote(parts.path)
    known = {**OWN, **DRIVER, **(TLS if secure else {})}
    if scheme == "unix":
        del known["socket_keepalive"]
    given = checked(scheme, [*parts.query, *options.items()], known)
    own = {name: given.pop(name) for name in OWN if name in given}
    driver: dict[str, Any] = {"socket_timeout": TIMEOUT, "socket_connect_timeout": TIMEOUT, "protocol": 3}
    if parts.user:
        driver["username"] = parts.user
    if parts.password is not None:
        driver["password"] = parts.password
    if scheme == "unix":
        if place or len(path) < 2:
            raise ConfigError(f"This unix:// URL names no socket. Its form is {FORMS[scheme]}. {SPECIAL}")
        return Address("", f"unix://{path}", (), "", {**driver, "path": path, **given}, own, False)
    if not kind and "," in place:
        raise ConfigError(f"A {scheme}:// URL names one host. For several: {scheme}+sentinel:// or {scheme}+cluster://.")
    hosts = tuple(_host(scheme, one, 26379 if kind == "sentinel" else 6379) for one in place.split(","))
    words = [word for word in path.split("/") if word]
    service = words.pop(0) if kind == "sentinel" and words else ""
    if kind == "sentinel" and not service:
        raise ConfigError(f"This {scheme}:// URL does not name the service. Its form is {FORMS[scheme]}.")
    if len(words) > 1 or (words and not (words[0].isdecimal() and words[0].isascii() and len(words[0]) < 10)):
        raise ConfigError(f"Behind the host of a {scheme}:// URL comes the number of a database: {FORMS[scheme]}.")
    if words:
        given.setdefault("db", int(words[0]))
    words = [str(given["db"])] if "db" in given else []
    if kind == "cluster" and given.pop("db", 0):
        raise ConfigError("A Redis Cluster has only the database 0. Use namespace=… to keep things apart.")
    shown = ",".join(_shown(one, place) for one in hosts)
    where = "/".join([f"{scheme}://{shown}", *([service] if service else []), *words])
    return Address(kind, where, hosts, service, {**driver, **given}, own, secure)


def _host(scheme: str, text: str, default: int) -> tuple[str, int]:
    with suppress(ValueError):
        one = urlsplit(f"redis://{text}")
        return unquote(one.hostname or "localhost"), one.port or default
    bad = f"The port in this {scheme}:// URL is not a number from 1 to 65535"
    raise ConfigError(f"{bad}. Its form is {FORMS[scheme]}. {SPECIAL}")


def _shown(host: tuple[str, int], place: str) -> str:
    name = f"[{host[0]}]" if ":" in host[0] else host[0]
    return f"{name}:{host[1]}" if ":" in place.rpartition("]")[2] else name


# Options


def _positive(value: Any) -> float:
    number = float(value)
    if not 0 < number < 1e6:
        raise ValueError
    return number


def _whole(value: Any) -> int:
    if isinstance(value, float) or int(value) < 0:
        raise ValueError
    return int(value)


def _yes(value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "yes", "1", "false", "no", "0"):
        raise ValueError
    return text in ("true", "yes", "1")


def _protocol(value: Any) -> int:
    if str(value) not in ("2", "3"):
        raise ValueError
    return int(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not split_url.is_text(value):
        raise ValueError
    return value


def _as_it_is(value: Any) -> Any:
    return value


Read = tuple[Callable[[Any], Any], str]

SECONDS, NUMBER, TRUTH, TEXT = "a number of seconds", "a whole number", "true or false", "a text"
OWN: dict[str, Read] = {"min_replicas": (_whole, NUMBER)}
DRIVER: dict[str, Read] = {
    "db": (_whole, NUMBER),
    "username": (_text, TEXT),
    "password": (_text, TEXT),
    "client_name": (_text, TEXT),
    "protocol": (_protocol, "2 or 3"),
    "socket_timeout": (_positive, SECONDS),
    "socket_connect_timeout": (_positive, SECONDS),
    "socket_keepalive": (_yes, TRUTH),
    "credential_provider": (_as_it_is, "an object of redis-py"),
}
TLS: dict[str, Read] = {
    "ssl_ca_certs": (_text, "a path"),
    "ssl_ca_path": (_text, "a path"),
    "ssl_ca_data": (_text, TEXT),
    "ssl_certfile": (_text, "a path"),
    "ssl_keyfile": (_text, "a path"),
    "ssl_password": (_text, TEXT),
    "ssl_cert_reqs": (_text, "none, optional or required"),
    "ssl_check_hostname": (_yes, TRUTH),
    "ssl_ciphers": (_text, TEXT),
    "ssl_min_version": (_as_it_is, "a version of the ssl module"),
}
FORMS = {
    "redis": "redis://user:password@host:6379/0",
    "rediss": "rediss://user:password@host:6379/0",
    "unix": "unix://user:password@/path/to/redis.sock?db=0",
    "redis+sentinel": "redis+sentinel://user:password@host1:26379,host2:26379/service/0",
    "rediss+sentinel": "rediss+sentinel://user:password@host1:26379,host2:26379/service/0",
    "redis+cluster": "redis+cluster://user:password@host1:6379,host2:6379",
    "rediss+cluster": "rediss+cluster://user:password@host1:6379,host2:6379",
}


def checked(scheme: str, given: list[tuple[str, Any]], known: dict[str, Read]) -> dict[str, Any]:
    found = {}
    tls = f"It is one of rediss{scheme[5:]}://."
    for name, value in split_url.options(given, known, scheme, lambda name: tls if name in TLS else "").items():
        reads, meaning = known[name]
        with suppress(TypeError, ValueError):
            found[name] = reads(value)
        if name not in found:
            raise ConfigError(f"The option {name!r} of {scheme}:// is {meaning}.")
    return found

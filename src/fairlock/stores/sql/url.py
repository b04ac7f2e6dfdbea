"""From a URL or an Engine of SQLAlchemy to an engine of our own: one driver per database, autocommit.

An Engine of the caller stays untouched. Its connections are opened the way it opens them (with its arguments and event
handlers), and each is detached from its pool: ours must be in autocommit and send only our statements, and the settings
of the caller may be any.
"""

import re
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, make_url

from ...errors import ConfigError
from .. import split_url
from ..deadline import limit
from ..keys import canonical

# The driver of each database, for threads and for tasks.
DRIVERS = {
    "postgresql": ("psycopg", "psycopg"),
    "mariadb": ("pymysql", "aiomysql"),
    "mysql": ("pymysql", "aiomysql"),
    "oracle": ("oracledb", "oracledb"),
}
ORACLE = ("oracle", "timesten")
LOOPBACK = (None, "", "localhost", "127.0.0.1", "::1")
OWN = ("listen", "timeout", "skew", "timesten")
TIMEOUT = 5.0  # seconds to wait for a reply
PSYCOPG = (3, 3, 6)  # the first whose waits have a limit
CONNECTIONS = 8  # of all clients that share them, at most; statements are short
RESERVED = 1  # of these, for statements that never wait for a locked row: reads, and the renewals of leases

Connect = Callable[[Any], None]


class Pool(sa.QueuePool):
    """A pool in which a thread waits for a connection no longer than its caller does."""

    @property
    def _timeout(self) -> float:
        return limit(self._most)

    @_timeout.setter
    def _timeout(self, most: float) -> None:
        self._most = most


class Address(NamedTuple):
    scheme: str  # one of DRIVERS, or "timesten"
    where: str  # for people, without credentials
    engine: sa.Engine  # of which only the pool is used
    listen: URL | None  # where wake-ups can be received
    timeout: float
    skew: float  # seconds by which the clocks of the servers behind one address may differ


def read(target: object, blocking: bool, options: Mapping[str, Any]) -> Address:
    """Read a URL or an Engine. ImportError if a driver is missing, ConfigError if it cannot be used."""
    own = split_url.options(options.items(), OWN, target.partition("://")[0] if isinstance(target, str) else "sql")
    if not isinstance(target, str):
        return _from_engine(target, blocking, own)
    url = _url(target)
    scheme = url.get_backend_name()
    for option in OWN:
        if option in url.query:
            own.setdefault(option, url.query[option])
            url = url.difference_update_query([option])
    if "+" not in url.drivername:
        url = url.set(drivername=f"{scheme}+{DRIVERS[scheme][0 if blocking else 1]}")
    return _made(scheme, url, own, blocking, None)


def _url(text: str) -> URL:
    """Return the URL as SQLAlchemy reads it, except for the end of a password: an @ in it is one of its letters."""
    form = f"{text.partition('://')[0].partition('+')[0]}://user:password@host/database"
    parts = split_url.split(text, form)
    with suppress(sa.exc.ArgumentError, ValueError):
        return make_url(parts.quoted(parts.scheme))
    raise ConfigError(f"This URL cannot be read. Its form is {form}. {split_url.SPECIAL}")


def _from_engine(target: Any, blocking: bool, own: dict[str, Any]) -> Address:
    inner = getattr(target, "sync_engine", None)
    if blocking and inner is not None:
        raise ConfigError("This engine is for asyncio. Use fairlock.aio with it, or sqlalchemy.create_engine() here.")
    if not blocking and inner is None:
        raise ConfigError("This engine blocks, and the whole loop with it. Use create_async_engine() here.")
    engine = inner if inner is not None else target
    if not isinstance(engine, sa.Engine):
        raise ConfigError(f"connect() takes a URL or an Engine of SQLAlchemy, not {type(target).__name__}.")
    scheme = "mariadb" if getattr(engine.dialect, "is_mariadb", False) else engine.dialect.name
    if scheme not in DRIVERS:
        raise ConfigError(f"There is no store for {engine.dialect.name}. Known: {', '.join(DRIVERS)}.")

    def creator() -> Any:
        lent = engine.raw_connection()
        lent.detach()
        return lent.dbapi_connection

    return _made(scheme, engine.url, own, blocking, creator)


def _made(scheme: str, url: URL, own: dict[str, Any], blocking: bool, creator: Callable[[], Any] | None) -> Address:
    if own.get("timesten") is not None:
        scheme = _timesten(scheme, own["timesten"])
    timeout = split_url.seconds(own, "timeout", TIMEOUT, 3600)
    skew = split_url.seconds(own, "skew", 0.0, 3600, zero=True)
    settings: dict[str, Any] = {
        "isolation_level": "AUTOCOMMIT", "pool_reset_on_return": None, "pool_use_lifo": True,
        "pool_size": CONNECTIONS // 2, "max_overflow": CONNECTIONS // 2, "pool_timeout": timeout,
    }  # fmt: skip
    if scheme == "postgresql":
        settings["use_native_hstore"] = False  # or it queries the server about something that we do not use
    if url.get_driver_name() == "psycopg":
        settings["paramstyle"] = "numeric_dollar"  # as libpq wants it
    limited: Callable[[Callable[[], Any]], Any] | None = None
    if blocking or scheme in ORACLE:
        from .connect_with_deadline import Handshake

        limited = Handshake(timeout, blocking, scheme in ORACLE).make
    if creator is not None:
        settings["creator"] = creator if limited is None else partial(limited, creator)
    else:
        settings["connect_args"] = _arguments(url, timeout)
    engine = _engine(scheme, url, blocking, settings)
    version = getattr(engine.dialect, "psycopg_version", PSYCOPG)
    if version < PSYCOPG:
        least = ".".join(map(str, PSYCOPG))
        raise ImportError(f"psycopg is {'.'.join(map(str, version))}, and at least {least} is needed")
    if limited is not None:
        event.listen(engine, "do_connect", lambda own, _, args, named: limited(partial(own.connect, *args, **named)))
    engine.dialect.initialize = lambda connection: None  # type: ignore[method-assign]  # statements of no use to us
    return Address(scheme, _shown(scheme, url), engine, _listen(scheme, own.get("listen"), url), timeout, skew)


def _refuse_old_sqlalchemy() -> None:
    """Raise ImportError for a version in which two tasks that connect first can block their loop forever: it holds a
    lock of threads while one of them waits."""
    if [int(part) for part in re.findall(r"\d+", sa.__version__)[:3]] < [2, 0, 25]:
        raise ImportError(f"SQLAlchemy is {sa.__version__}, and at least 2.0.25 is needed in asyncio")


def _engine(scheme: str, url: URL, blocking: bool, settings: dict[str, Any]) -> sa.Engine:
    try:
        if blocking:
            return sa.create_engine(url, poolclass=Pool, **settings)
        _refuse_old_sqlalchemy()
        from sqlalchemy.ext.asyncio import create_async_engine

        return create_async_engine(url, **settings).sync_engine
    except sa.exc.NoSuchModuleError:
        raise ConfigError(f"SQLAlchemy knows no {url.drivername}://. Leave out the driver: {scheme}://") from None
    except sa.exc.InvalidRequestError:
        raise ConfigError(f"{url.drivername}:// is not for {'threads' if blocking else 'asyncio'}.") from None
    except (sa.exc.ArgumentError, ValueError, TypeError):
        pass  # it repeats the value
    raise ConfigError(f"SQLAlchemy cannot use this {scheme}:// URL: its host or a parameter is missing or not valid.")


def _timesten(scheme: str, value: object) -> str:
    text = str(value).lower()
    if scheme != "oracle" or text not in ("1", "true", "0", "false"):
        raise ConfigError("timesten=true goes with oracle:// and means that the server is TimesTen.")
    return "timesten" if text in ("1", "true") else scheme


def _arguments(url: URL, timeout: float) -> dict[str, Any]:
    driver = url.get_driver_name()
    known: dict[str, dict[str, Any]] = {
        "psycopg": {"connect_timeout": max(int(timeout), 2), "prepare_threshold": None, "application_name": "fairlock"},
        "pymysql": {"connect_timeout": timeout, "read_timeout": timeout, "write_timeout": timeout},
        "aiomysql": {"connect_timeout": timeout},
        "oracledb": {"tcp_connect_timeout": timeout, "retry_count": 0},
    }
    if driver == "pymysql" and url.get_backend_name() == "mariadb" and url.host in LOOPBACK:
        # It would read all certificates of the machine for each connection, and then trust any: 40 ms, for nothing.
        if not any(name.startswith("ssl") for name in url.query):
            known["pymysql"]["ssl_disabled"] = True
    return {name: value for name, value in known.get(driver, {}).items() if name not in url.query}


def _listen(scheme: str, listen: object, url: URL) -> URL | None:
    if scheme != "postgresql":
        if listen is not None:
            raise ConfigError("listen is for PostgreSQL; the other databases cannot wake waiters.")
        return None
    if listen is None:
        return url
    if str(listen) == "":
        return None  # do not listen
    try:
        direct = _url(canonical(str(listen)))
    except ConfigError:
        direct = None
    if direct is None or direct.get_backend_name() != "postgresql":
        raise ConfigError("listen is the URL of the same PostgreSQL without a pooler: postgresql://user:…@host/database.")
    if direct.username is None:
        direct = direct.set(username=url.username, password=url.password)
    return direct


def _shown(scheme: str, url: URL) -> str:
    host = url.host or ""
    host = f"[{host}]" if ":" in host else host
    query = url.query.get("host")
    if not host and isinstance(query, str):
        host = query
    database = url.database or url.query.get("service_name") or ""
    return f"{scheme}://{host}{f':{url.port}' if url.port else ''}/{database}"


def on(happens: str, engine: sa.Engine, call: Connect, first: bool = False) -> None:
    """Call a method with each connection to which this happens ("connect", "close"). Its object may be dropped.
    `first`: before anything is sent on it, also by SQLAlchemy.

    SQLAlchemy keeps each pool alive, and what it calls, as long as one of its connections is lent. One always is.
    """
    there = weakref.WeakMethod(call)

    def show(connection: Any, record: Any) -> None:
        alive = there()
        if alive is not None:
            alive(connection)

    event.listen(engine, happens, show, insert=first)

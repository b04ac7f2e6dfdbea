"""From a URL to a client. Drivers are imported only when their store is asked for; nothing is opened yet."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .engine import validate
from .engine.validate import Seconds
from .errors import ConfigError
from .stores.base import Backend, Runtime
from .stores.keys import canonical

SCOPES = ("any", "machines")
LEASE = 30.0
Opener = Callable[[Any, Runtime, str, dict[str, Any]], Backend]


def settle(
    target: object,
    runtime: Runtime,
    owner: str | None,
    lease: Seconds | None,
    namespace: str | None,
    scope: str | None,
    options: dict[str, Any],
) -> tuple[Backend, str | None, float]:
    """Return backend, owner and lease of a client, from the arguments, else from the environment (FAIRLOCK_URL,
    _URL_FILE, _LEASE, _OWNER, _NAMESPACE, _SCOPE)."""
    env = os.environ.get
    if owner is None:
        owner = env("FAIRLOCK_OWNER") or None  # None: host:pid
    if lease is None:
        text = env("FAIRLOCK_LEASE")
        lease = validate.lease(validate.duration(text, "FAIRLOCK_LEASE"), "FAIRLOCK_LEASE") if text else LEASE
    if namespace is None:
        namespace = env("FAIRLOCK_NAMESPACE") or ""
    if namespace:
        validate.name(namespace, "A namespace")
        if namespace == "*":
            raise ConfigError("'*' is no namespace. Name one; snapshot(namespaces=True) looks at all of them.")
    scope = scope or env("FAIRLOCK_SCOPE") or "any"
    if scope not in SCOPES:
        raise ConfigError(f"scope is 'any' or 'machines', not {scope!r}.")
    backend = open_backend(target, runtime, namespace, options)
    if scope == "machines" and backend.scope != "machines":
        raise ConfigError(
            f"{backend.where} reaches only this {backend.scope}, and scope='machines' asks for more. "
            "Give the URL of a server: FAIRLOCK_URL=redis://…"
        )
    return backend, validate.label(owner, "An owner") if owner is not None else None, validate.lease(lease)


def open_backend(target: object, runtime: Runtime, namespace: str, options: dict[str, Any]) -> Backend:
    if target is None:
        target = os.environ.get("FAIRLOCK_URL") or None
    file = url_file(target)
    if file is not None:
        target = read_url(*file)
    if target is None:
        import warnings

        backend = _sqlite(None, runtime, namespace, options)
        text = f"no URL given: locks are kept in {backend.where} and reach only this user on this machine"
        warnings.warn(text, stacklevel=4)
        return backend
    if isinstance(target, os.PathLike):
        return _sqlite(os.path.abspath(os.fsdecode(target)), runtime, namespace, options)
    if not isinstance(target, str):
        # The top modules of its classes: a user's own subclass is still a client of its driver.
        modules = [each.__module__.partition(".")[0] for each in type(target).__mro__]
        opener = next((DRIVERS[module] for module in modules if module in DRIVERS), None)
        if opener is None:
            raise ConfigError(f"connect() takes a URL, a path, {_OBJECTS}, not {type(target).__name__}.")
        return opener(target, runtime, namespace, options)
    target = canonical(target)
    scheme, colon, _ = target.partition("://")
    sql = scheme.partition("+")[0] in _SQL  # it may also name a driver, as SQLAlchemy's URLs do: postgresql+psycopg://
    opener = (_sql if sql else SCHEMES.get(scheme)) if colon else None
    if opener is None:
        known = ", ".join(f"{s}://" for s in SCHEMES)
        # A text that is no URL may hold a password: it is not repeated.
        what = f"No store is called {scheme + '://'!r}" if colon and scheme.isalnum() else "This is not a store's URL"
        raise ConfigError(f"{what}. Known: {known}.")
    return opener(target, runtime, namespace, options)


def url_file(target: object) -> tuple[str, str] | None:
    """Return the file that holds the URL and what names it: `@FILE` in place of a URL, or FAIRLOCK_URL_FILE.

    None if the URL is in no file. ConfigError if the environment names two URLs.
    """
    if isinstance(target, str) and target.startswith("@"):
        return target[1:], "@ in place of a URL"
    file = os.environ.get("FAIRLOCK_URL_FILE")
    if not file or (target is not None and target != os.environ.get("FAIRLOCK_URL")):
        return None
    if target is not None:
        raise ConfigError("FAIRLOCK_URL and FAIRLOCK_URL_FILE are both set, and only one can count. Unset one of them.")
    return file, "FAIRLOCK_URL_FILE"


def read_url(path: str, by: str) -> str:
    """Return the one line of this file. ConfigError if it cannot be read or has none, or more than one.

    A file that others may read is used, with a warning: secrets that a platform mounts often have such a mode.
    """
    login = ":" in path  # rather a URL in place of the file that holds it: it may have a password
    what = f"The file {'' if login else f'{path!r} '}({by})"
    text = problem = None
    try:
        with suppress(ValueError), open(path, encoding="utf-8") as file:  # a codec repeats the file
            text = file.read(100_000)
    except OSError as bad:
        problem = bad.strerror  # the error itself repeats the name
    if problem is not None:
        raise ConfigError(f"{what} cannot be read: {problem}. It holds the URL of a store, on one line.")
    if text is None:
        raise ConfigError(f"{what} is not text. It holds the URL of a store, on one line.")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) != 1:
        raise ConfigError(f"{what} holds {len(lines)} lines. It holds the URL of a store, on one line.")
    if others_may_read(path):
        import warnings

        warnings.warn(f"{what} holds a URL that all users of this machine may read. Use chmod 600.", stacklevel=5)
    return lines[0]


def others_may_read(path: str) -> bool:
    return bool(os.stat(path).st_mode & 0o004)


def _sqlite(url: str | None, runtime: Runtime, namespace: str, options: dict[str, Any]) -> Backend:
    from .stores.cas import CasBackend
    from .stores.sqlite import SqliteStore

    return CasBackend(SqliteStore(url, runtime, **_only(options, ("busy_timeout",))), runtime, namespace)


def _memory(url: str, runtime: Runtime, namespace: str, options: dict[str, Any]) -> Backend:
    from .stores.memory import Hub, MemoryBackend

    _only(options, ())
    name = url.removeprefix("memory://")
    if any(sign in name for sign in "@:?#"):
        raise ConfigError("After memory:// comes a name without @ : ? and #, or nothing: memory://tests.")
    return MemoryBackend(Hub.named(name) if name else Hub(), runtime, namespace, url)


def _by_driver(package: str, thing: str) -> Opener:
    """Return the opener of a store that needs a driver. Without the driver it raises the sentence that helps."""

    def opens(target: Any, runtime: Runtime, namespace: str, options: dict[str, Any]) -> Backend:
        from importlib import import_module

        try:
            backend = import_module(f".stores.{package}", __package__)
            opened: Backend = getattr(backend, f"open_{package.partition('_')[0]}")(target, runtime, namespace, options)
            return opened
        except ImportError as error:
            scheme = target.partition("://")[0] if isinstance(target, str) else ""
            what = f"{scheme}://" if scheme else thing
            lacks = error.name.partition(".")[0] if isinstance(error, ModuleNotFoundError) and error.name else ""
            if lacks and sys.modules.get(lacks) is None:
                needs = lacks
            else:
                needs = f"the driver, and the one that is here is broken or too old ({error})"
            extra = scheme.partition("+")[0] or package
            extra = EXTRAS.get(extra, extra)
            raise ConfigError(f"{what} needs {needs}: pip install 'fairlock[{extra}]'.") from None

    return opens


def _only(options: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    for option in options:
        if option not in known:
            has = f"It knows: {', '.join(known)}." if known else "It has none."
            raise ConfigError(f"{option!r} is not an option of this store. {has}")
    return options


_redis = _by_driver("redis", "A client of redis-py")
_sql = _by_driver("sql", "An Engine of SQLAlchemy")
_cassandra = _by_driver("cassandra", "A Session of Cassandra's driver")
_oci = _by_driver("oci_nosql", "A NosqlClient of OCI")

_REDIS = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
_SQL = ("postgresql", "mariadb", "mysql", "oracle")
SCHEMES: dict[str, Opener] = {
    "memory": _memory,
    "sqlite": _sqlite,
    **dict.fromkeys(_REDIS, _redis),
    **dict.fromkeys(_SQL, _sql),
    "cassandra": _cassandra,
    "oci-nosql": _oci,
}

# What to install for a scheme or for an object of a driver, if the extra has another name.
EXTRAS = {
    "rediss": "redis", "unix": "redis", "mysql": "mariadb", "sql": "postgresql", "oci-nosql": "oci", "oci_nosql": "oci",
}  # fmt: skip

# What a driver's own objects are opened with.
DRIVERS: dict[str, Opener] = {
    "redis": _redis,
    "sqlalchemy": _sql,
    "cassandra": _cassandra,
    "oci": _oci,
}
_OBJECTS = "a client of redis-py, an Engine of SQLAlchemy, a Session of Cassandra's driver or a NosqlClient of OCI"

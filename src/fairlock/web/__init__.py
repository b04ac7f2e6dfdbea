"""The page that shows every lock: `fairlock ui` serves it, and `app` makes it a part of your own application.

    from starlette.routing import Mount
    Mount("/locks", fairlock.web.app(locks, who=current_user, may=is_operator))

Modules, in reading order:

    snapshot_rows          one name of a snapshot as JSON
    events_from_snapshots  what happened between two snapshots
    event_journal_file     the SQLite file, or memory, that keeps what happened
    event_journal_writer   `on_event=journal(FILE)` and the lock that makes one `fairlock ui` the writer
    snapshot_poller        takes the snapshots, and knows what changed since a sequence number
    access_control         Host, Origin, CSRF and headers
    server_sent_events     the stream of server-sent events
    asgi_app               the routes
    static/                the page: ES modules that a browser loads as they are

`app` needs the extra `ui`; `journal` needs only the standard library.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from ..errors import ConfigError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request

    from .. import Locks
    from ..aio import Locks as AsyncLocks
    from .event_journal_writer import JournalWriter

__all__ = ["app", "journal"]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def look_only(who: str, action: str, name: str) -> bool:
    """Allow to look, and nothing else: the default of `may`."""
    return action == "look"


def app(
    locks: Locks | AsyncLocks,
    *,
    who: Callable[[Request], str | Awaitable[str | None] | None],
    may: Callable[[str, str, str], bool] = look_only,
    hosts: Sequence[str] = LOOPBACK,
    journal: str | PathLike[str] | None = None,
    metrics_token: str = "",
    namespaces: bool = False,
) -> Starlette:
    """Return the page as an ASGI application, to be mounted behind your own login.

    who: gets the request and returns the name of the user, or None if no user is logged in; it may be a coroutine.
    may: gets that name, an action ("look" or "evict") and the name of a lock ("" for all of them), and returns True if
    that is allowed; without it, users may only look. hosts: the values of the Host header that the page replies to.
    journal: a file that keeps what happened for 7 days; without it, the last events are kept in memory.
    metrics_token: opens /metrics, and nothing else, to Prometheus. namespaces: show the names of all namespaces, as
    'namespace/name'; then no user may evict. ConfigError if the extra is not installed.
    """
    if isinstance(hosts, str):
        raise ConfigError(f"hosts= is a list of names, not one text: hosts=[{hosts!r}].")
    try:
        from .asgi_app import Page, make_app
    except ModuleNotFoundError as missing:
        raise ConfigError(f"fairlock.web.app needs {missing.name}: pip install 'fairlock[ui]'.") from None
    return make_app(Page(locks, who, may, journal, metrics_token, namespaces), hosts)


def journal(file: str | PathLike[str]) -> JournalWriter:
    """Return a callback for `on_event` that writes each event to a journal, which `fairlock ui --journal FILE` shows.

    It never blocks the program: a thread of its own writes. If the file cannot be written, events are dropped and the
    logger `fairlock` gets one warning.
    """
    from .event_journal_writer import JournalWriter

    return JournalWriter(file)

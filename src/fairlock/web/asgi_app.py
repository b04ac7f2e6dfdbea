"""The routes of the page. Data is sent only to a user that `who` knows; the files of the page are not secret."""

from __future__ import annotations

import asyncio
import json
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from inspect import isawaitable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..errors import ConfigError, LockError
from ..rules.locks import EXCLUSIVE
from .access_control import LARGEST_BODY, OnlyTheseHosts, csrf_token, has_token, refuse_foreign
from .call_client import call
from .event_journal_file import REPORTED, Journal
from .events_from_snapshots import Happened
from .server_sent_events import MOST_READERS, EventStream
from .snapshot_poller import Poller, Reader
from .snapshot_rows import Json

if TYPE_CHECKING:
    from .. import Locks
    from ..aio import Locks as AsyncLocks
    from ..metrics.prometheus import Metrics

    Client = Locks | AsyncLocks

STATIC = Path(__file__).with_name("static")
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
EVENTS_OF_A_NAME = 50
ITEMS_OF_A_POOL = 100
SPANS = 4_000
SAME_CLOCK = 15.0  # seconds by which the store's clock and ours may differ and still mean the same
LONGEST_TIMELINE = 7 * 86400.0 + 1
LOG_IN = "This page does not know you. Open the address that `fairlock ui` printed, or log in again."

Who = Callable[[Request], "str | Awaitable[str | None] | None"]
May = Callable[[str, str, str], bool]


def make_app(page: Page, hosts: Sequence[str]) -> Starlette:
    routes = [
        Route("/", page.file),
        Route("/static/{name:path}", page.file),
        Route("/api/stream", page.stream),
        Route("/api/name", page.name),
        Route("/api/history", page.history),
        Route("/metrics", page.metrics),
        Route("/api/ask", partial(page.intervene, action="ask"), methods=["POST"]),
        Route("/api/evict", partial(page.intervene, action="evict"), methods=["POST"]),
    ]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        page.poller.start()
        try:
            yield
        finally:
            await page.close()

    return Starlette(routes=routes, middleware=[Middleware(OnlyTheseHosts, hosts=hosts)], lifespan=lifespan)


def read_files() -> dict[str, tuple[bytes, str]]:
    """Return the files of the page by name. They are read once, so that no path of a request reaches the disk."""
    paths = [path for path in STATIC.rglob("*") if path.suffix in TYPES]
    return {path.relative_to(STATIC).as_posix(): (path.read_bytes(), TYPES[path.suffix]) for path in paths}


class Page:
    """Holds what the routes share: the client, the poller and the functions that decide who may do what."""

    def __init__(
        self, locks: Client, who: Who, may: May, journal: str | PathLike[str] | None, metrics_token: str,
        namespaces: bool,
    ) -> None:  # fmt: skip
        self.locks = locks
        self.who = who
        # A client acts in its own namespace only.
        self.may = may if not namespaces else lambda who, action, name: action == "look" and may(who, action, name)
        self.journal = Journal(journal)
        self.poller = Poller(locks, self.journal, namespaces)
        self.csrf_secret = secrets.token_bytes(32)
        self.files = read_files()
        self.metrics_token = metrics_token
        self._metrics: Metrics | None = None

    async def close(self) -> None:
        await self.poller.stop()
        self.journal.close()

    async def user(self, request: Request) -> str:
        """Return the name of the user. HTTPException if there is none, or if it may not look."""
        found = self.who(request)
        user = await found if isawaitable(found) else found
        if user is None:
            raise HTTPException(401, LOG_IN)
        if not self.may(user, "look", ""):
            raise HTTPException(403, f"{user} may not look at this page.")
        self.poller.start()
        return user

    async def file(self, request: Request) -> Response:
        found = self.files.get(request.path_params.get("name", "index.html"))
        if found is None:
            raise HTTPException(404, "There is no such file.")
        body, kind = found
        return Response(body, media_type=kind, headers={"Cache-Control": "no-cache"})

    async def stream(self, request: Request) -> EventStream:
        user = await self.user(request)
        if self.poller.readers >= MOST_READERS:
            raise HTTPException(503, f"{MOST_READERS} pages are open already. Close one.")
        hello = {
            "store": self.locks.store,
            "who": user,
            "csrf": csrf_token(self.csrf_secret, user),
            "admin": self.may(user, "evict", "") or self.may(user, "ask", ""),
            "journal": self.journal.file is not None,
            "exclusive": EXCLUSIVE,
        }
        reader = Reader.parse(request.headers.get("last-event-id", ""))
        return EventStream(self.poller, reader, json.dumps(hello).encode())

    async def name(self, request: Request) -> Response:
        """Reply with one name in detail: all its waiters, its last events, the items of the pool of that name, and
        what operators did."""
        user = await self.user(request)
        name = request.query_params.get("name", "")
        detail: Json = {
            "row": self.poller.view.as_json(name, None),
            "events": await asyncio.to_thread(self.journal.of_name, name, EVENTS_OF_A_NAME),
            "ask": self.may(user, "ask", name),
            "evict": self.may(user, "evict", name),
            "pool": None,
            "audit": await self._audit(name),
        }
        try:
            pool = self.locks.pool(name)
            items: Any = await call(pool.items)
            if items:
                detail["pool"] = {"total": len(items), "items": [one._asdict() for one in items[:ITEMS_OF_A_POOL]]}
        except LockError:  # a store without pools, or a name that no pool can have
            pass
        return JSONResponse(detail)

    async def _audit(self, name: str) -> list[Json]:
        """Return what operators did to this name, with times of the wall clock."""
        try:
            lines: Any = await call(self.locks.audit, name)
        except LockError:  # a name that no lock can have, or a store that is down: the stream says so
            return []
        seen = self.poller.view.snapshot
        ahead = time.time() - seen.now if seen is not None else 0.0
        return [{**one._asdict(), "at": one.at + (ahead if abs(ahead) > SAME_CLOCK else 0.0)} for one in lines]

    async def history(self, request: Request) -> Response:
        """Reply with the holds and waits of a time, for the timeline."""
        await self.user(request)
        try:
            begin, end = float(request.query_params["from"]), float(request.query_params["to"])
        except (KeyError, ValueError):
            raise HTTPException(400, "Name the time: ?from=SECONDS&to=SECONDS.") from None
        if not 0 < end - begin <= LONGEST_TIMELINE:
            raise HTTPException(400, "The timeline shows at most 7 days.")
        spans = await asyncio.to_thread(self.journal.spans, begin, end, SPANS + 1)
        complete_from = spans[SPANS]["at"] if len(spans) > SPANS else None  # the newest are first
        return JSONResponse({"spans": spans[:SPANS], "complete_from": complete_from})

    async def metrics(self, request: Request) -> Response:
        """Reply with the state of the store for Prometheus, to a user or to the token that opens only this."""
        if not (self.metrics_token and has_token(request, self.metrics_token)):
            await self.user(request)
        self.poller.start()
        if self.poller.view.snapshot is None:
            self.poller.hurry()
            await self.poller.next_look.wait()
        from ..metrics.prometheus import CONTENT_TYPE, Metrics

        if self._metrics is None:
            self._metrics = Metrics()
            self.poller.on_lost = self._metrics.add_lost
        if self.poller.view.snapshot is not None:
            self._metrics.show(self.poller.view.snapshot, self.poller.view.rings)
        return Response(await asyncio.to_thread(self._metrics.text), media_type=CONTENT_TYPE)

    async def intervene(self, request: Request, action: str) -> Response:
        """Ask or evict one holder, by its ticket: the one that the user saw, and none that came later."""
        user = await self.user(request)
        refuse_foreign(request, csrf_token(self.csrf_secret, user))
        match given := await read_json(request):
            case {"name": str(name), "ticket": str(ticket), "reason": str(reason)}:
                at_once = given.get("at_once", False)
            case _:
                raise HTTPException(400, "Send name, ticket and reason as JSON.")
        if not self.may(user, action, name):
            why = f"No user may {action} here: this page is read-only. `fairlock ui --admin` allows it."
            raise HTTPException(403, why)
        if not ticket:
            raise HTTPException(400, "Name the ticket of the holder.")
        if not isinstance(at_once, bool) or (at_once and action == "ask"):
            raise HTTPException(400, "To evict at once, send at_once as true.")
        if at_once and given.get("typed") != name:
            raise HTTPException(400, "Type the name of the lock to evict its holder at once.")
        if not reason.strip():
            raise HTTPException(400, "Give a reason; the holder reads it.")
        suffix = "" if user == self.locks.session.owner else f" ({user})"  # audit lines name the owner of the client
        options = {"reason": reason.strip() + suffix, "ticket": ticket}
        try:
            if action == "ask":
                tickets: Any = await call(self.locks.ask, name, **options)
            else:
                tickets = await call(self.locks.evict, name, **options, at_once=at_once)
        except LockError as error:
            raise HTTPException(400 if isinstance(error, ConfigError) else 502, str(error)) from None
        if tickets:
            kind = "asked" if action == "ask" else "evicted" if at_once else "evicting"
            await asyncio.to_thread(self._record, kind, name, ticket, f"by {user}: {reason.strip()}")
        self.poller.hurry()
        return JSONResponse({"count": len(tickets)})

    def _record(self, kind: str, name: str, ticket: str, detail: str) -> None:
        row = self.poller.view.as_json(name, None) or {"holders": []}
        (one,) = [each for each in row["holders"] if each["ticket"] == ticket][:1] or [{}]
        held = one.get("held_for") if kind == "evicted" else None
        owner, note, fence = one.get("owner", ""), one.get("note", ""), one.get("fence", 0)
        event = Happened(time.time(), kind, name, owner, note, ticket, fence, held, detail)
        with suppress(sqlite3.Error):  # it is done, and the store has an audit line of it
            self.journal.add([event], REPORTED)


async def read_json(request: Request) -> Any:
    """Return the body, or None if it is too large or not JSON."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None

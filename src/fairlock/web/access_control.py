"""Access: which Host, which Origin, which token. Every reply has headers that keep foreign code out of the page.

The token of `fairlock ui` comes in the fragment of the address and goes into a header of each request. A browser sends
neither by itself, so another site cannot use them. Rejected alternative: a cookie. Cookies are shared by all ports of a
host, so every other server on this machine that the browser visits would receive it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LARGEST_BODY = 16 * 1024


class OnlyTheseHosts:
    """Replies only to requests for these hosts, with any port, and adds the headers. DNS rebinding ends here: a
    foreign name that resolves to this machine is still a foreign name."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self.app = app
        self.hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        given = Headers(scope=scope).getlist("host")
        if len(given) != 1 or host_without_port(given[0]) not in self.hosts:
            text = "This page does not reply to that host. Add it with --allow-host, or with hosts= in your program."
            return await PlainTextResponse(text, 421)(scope, receive, with_headers)
        await self.app(scope, receive, with_headers)


def host_without_port(netloc: str) -> str:
    """Return the host of 'host:port', in lower case."""
    host, colon, port = netloc.rpartition(":")
    return (host if colon and port.isdecimal() else netloc).lower()


def refuse_foreign(request: Request, csrf: str) -> None:
    """Raise HTTPException for a POST that does not come from the page itself."""
    headers = request.headers
    origin = urlsplit(headers.get("origin", ""))
    if origin.scheme not in ("http", "https") or origin.netloc.lower() != headers.get("host", "").lower():
        raise HTTPException(403, "This request comes from another site.")
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise HTTPException(403, "This request comes from another site.")
    if not hmac.compare_digest(headers.get("x-fairlock-csrf", "").encode(), csrf.encode()):
        raise HTTPException(403, "The page is too old for this server. Reload it.")
    if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "Send JSON.")


def csrf_token(secret: bytes, who: str) -> str:
    """Return the token of this user, which only a page that may read our replies knows."""
    return hmac.new(secret, who.encode(errors="backslashreplace"), hashlib.sha256).hexdigest()


def has_token(request: Request, token: str) -> bool:
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())

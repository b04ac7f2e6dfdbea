"""`fairlock ui`: serves the page on this machine until Ctrl-C.

With --json it prints url, token, store as one line when it listens.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from . import exit_codes, make_client, output
from .parse_arguments import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlock import Locks
    from fairlock.web.serve import ASGIApp

PORT = 7070
HOST = "127.0.0.1"


def ui(args: Arguments) -> int:
    from fairlock.web.serve import require_extra

    require_extra()
    with make_client.client(args) as locks:
        return serve(args, locks, admin=bool(args["admin"]))


def serve(args: Arguments, locks: Locks, *, admin: bool, ready: Callable[[str], object] | None = None) -> int:
    """Serve the page until a signal ends it. `ready` is called with the address when the page can be opened."""
    import secrets

    from fairlock.web.access_control import by_token
    from fairlock.web.serve import run

    token = secrets.token_urlsafe(24)
    user = f"{user_name()}@{os.uname().nodename}"
    host = (args["host"] or HOST).strip("[]")
    listener = listen(host, PORT if args["port"] is None else args["port"])
    app = make_page(args, locks, host, by_token(token, user), admin)
    address = f"[{host}]" if ":" in host else host
    base = f"http://{address}:{listener.getsockname()[1]}/"
    url = f"{base}#token={token}"
    if args["json"]:
        output.json({"url": url, "token": token, "store": locks.store})
    else:
        output.out(f"{output.plain(locks.store)} is shown on\n  {url}\n")
        if not args["quiet"]:
            output.out(f"{'holders can be evicted' if admin else 'read-only'}; Ctrl-C ends it\n")
    if not is_loopback(host):
        output.err("This address can be reached from other machines, and the page is not encrypted.")
    if ready is not None:
        ready(url)
    run(app, listener)
    return 0


def make_page(args: Arguments, locks: Locks, host: str, who: Callable[..., str | None], admin: bool) -> ASGIApp:
    from fairlock.web import LOOPBACK, app

    named = [name.strip() for name in (args["allow_host"] or "").split(",") if name.strip()]
    hosts = [*LOOPBACK, f"[{host}]" if ":" in host else host, *named]
    return app(
        locks,
        who=who,
        may=lambda who, action, name: admin or action == "look",
        hosts=hosts,
        journal=args["journal"],
        namespaces=make_client.every_namespace(args),
        metrics_token=make_client.text_or_file(args["metrics_token"], "token") if args["metrics_token"] else "",
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. A port that is in use is a sentence with the cure."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        cure = "Use --port 0 for any port that is free." if port else "Use --host with an address of this machine."
        why = os.strerror(error.errno) if error.errno else str(error)
        raise exit_codes.Exit(exit_codes.CONFIG, f"{host} port {port} cannot be used: {why}. {cure}") from None


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def user_name() -> str:
    """Return the name of the user, or its number if it has none."""
    if sys.platform != "win32":
        import pwd

        with suppress(KeyError):
            return pwd.getpwuid(os.getuid()).pw_name
    return str(os.getuid())

"""`fairlock ui`: serves the page on this machine until Ctrl-C.

With --json it prints url, token, store as one line when it listens.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from . import exit_codes, make_client, output
from .parse_arguments import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlock import Locks

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

    from fairlock.web import LOOPBACK, app
    from fairlock.web.access_control import has_token
    from fairlock.web.serve import run

    token = secrets.token_urlsafe(24)
    user = f"{make_client.user_name()}@{os.uname().nodename}"
    host = (args["host"] or HOST).strip("[]")
    listener = listen(host, PORT if args["port"] is None else args["port"])
    address = f"[{host}]" if ":" in host else host
    page = app(
        locks,
        who=lambda request: user if has_token(request, token) else None,
        may=lambda who, action, name: admin or action == "look",
        hosts=[*LOOPBACK, address, *(name.strip() for name in (args["allow_host"] or "").split(",") if name.strip())],
        journal=args["journal"],
        namespaces=make_client.every_namespace(args),
        metrics_token=make_client.text_or_file(args["metrics_token"], "token") if args["metrics_token"] else "",
    )
    url = f"http://{address}:{listener.getsockname()[1]}/#token={token}"
    if args["json"]:
        output.json({"url": url, "token": token, "store": locks.store})
    else:
        output.out(f"{output.plain(locks.store)} is shown on\n  {url}\n")
        if not args["quiet"]:
            output.out(f"{'holders can be evicted' if admin else 'read-only'}; Ctrl-C ends it\n")
    if host not in ("localhost", "::1") and not host.startswith("127."):
        output.err("This address can be reached from other machines, and the page is not encrypted.")
    if ready is not None:
        ready(url)
    run(page, listener)
    return 0


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. A port that is in use is a sentence with the cure."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        cure = "Use --port 0 for any port that is free." if port else "Use --host with an address of this machine."
        why = os.strerror(error.errno) if error.errno else str(error)
        raise exit_codes.Exit(exit_codes.CONFIG, f"{host} port {port} cannot be used: {why}. {cure}") from None

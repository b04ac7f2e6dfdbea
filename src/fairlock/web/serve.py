"""Serves the page with uvicorn, for `fairlock ui` and `fairlock demo`."""

from __future__ import annotations

import signal
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import ConfigError

if TYPE_CHECKING:
    from starlette.types import ASGIApp as ASGIApp


def require_extra() -> None:
    """Raise ConfigError with the cure if the extra is not installed."""
    try:
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as missing:
        raise ConfigError(f"The page needs {missing.name}: pip install 'fairlock[ui]'.") from None


def run(app: ASGIApp, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM. Open streams are ended a second later."""
    import uvicorn

    settings = uvicorn.Config(
        app, log_level="error", access_log=False, server_header=False, timeout_graceful_shutdown=1, lifespan="on"
    )
    # uvicorn raises the signal again at its end. SIGTERM must not end the process before the caller has cleared up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        uvicorn.Server(settings).run(sockets=[listener])

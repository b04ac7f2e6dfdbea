"""Serves the page with uvicorn, for `fairlock ui` and `fairlock demo`."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING

from ..errors import ConfigError

if TYPE_CHECKING:
    from starlette.types import ASGIApp


def require_extra() -> None:
    """Raise ConfigError with the cure if the extra is not installed."""
    try:
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as missing:
        raise ConfigError(f"The page needs {missing.name}: pip install 'fairlock[ui]'.") from None


def end_in_order() -> None:
    """Let SIGTERM, and SIGHUP of a terminal that was closed, end this process as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # not under nohup
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def run(app: ASGIApp, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM. Open streams are ended a second later."""
    import uvicorn

    # Without log_config, which fails if stdout is closed: errors go to stderr, as they are.
    settings = uvicorn.Config(
        app, log_config=None, log_level="error", access_log=False, server_header=False, timeout_graceful_shutdown=1,
        lifespan="on",
    )  # fmt: skip
    end_in_order()
    server = uvicorn.Server(settings)

    def end(*_: object) -> None:
        server.should_exit = True

    # A signal in the moments before and after uvicorn's own handlers, while a loop is half made, ends it in order too.
    # (uvicorn raises each signal again at its end.)
    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run(sockets=[listener])
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if not server.started:
        raise ConfigError("The page could not be started; the lines above have the reason.")

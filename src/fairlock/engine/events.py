"""Events: a client reports to `on_event` and to the logger `fairlock`.

The logger is imported only when there is something worth a warning or the program uses logging anyway: start-up time
counts in cron.
"""

import sys
from typing import Any, Literal, NamedTuple

EventKind = Literal[
    "waiting", "acquired", "released", "renewed", "lost", "place_lost", "evicted", "store_down", "store_up"
]

silent = False
"""Set by the command-line tool, which prints its own messages."""

LEVELS = {"lost": 30, "place_lost": 30, "evicted": 30, "store_down": 30, "store_up": 20}
QUIET = frozenset(("waiting", "acquired", "released", "renewed"))  # not logged in a program that has not set up logging


class Event(NamedTuple):
    """One event: its kind, the name and the hold."""

    kind: EventKind
    name: str = ""
    ticket: str = ""
    """Shortened: it shows people which hold is meant, and cannot be used to release it."""
    fence: int = 0
    detail: str = ""


def short(ticket: str) -> str:
    return f"{ticket[:6]}-{ticket[24:].lstrip('0')}"


_logger: Any = None


def heeded(kind: str) -> Any:
    """Return True if events of this kind are logged. For a quiet kind alone `logging` is not imported."""
    global _logger
    if _logger is None:
        if silent or (kind in QUIET and "logging" not in sys.modules):
            return False
        import logging

        _logger = logging.getLogger("fairlock")
    return _logger.isEnabledFor(LEVELS.get(kind, 10)) and not silent


def log(event: Event) -> None:
    if heeded(event.kind):
        level = LEVELS.get(event.kind, 10)
        text = f"{event.name!r}: {event.kind}" if event.name else event.kind
        _logger.log(level, "%s%s", text, f": {event.detail}" if event.detail else "", extra={"event": event})


def warn(text: str) -> None:
    if silent:
        return
    import logging

    logging.getLogger("fairlock").warning("%s", text)


def stumbled(text: str) -> None:
    """Log an exception that must not stop anything."""
    import logging

    logging.getLogger("fairlock").exception("%s", text)

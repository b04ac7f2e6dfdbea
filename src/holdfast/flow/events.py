"""What a client reports while it works: to `on_event`, and to the logger `holdfast`.

The logger is imported only when there is something worth a warning or the program uses logging anyway: start-up time
counts in cron.
"""

import sys
from typing import Any, Literal, NamedTuple

EventKind = Literal[
    "waiting", "acquired", "released", "renewed", "lost", "place_lost", "evicted", "store_down", "store_up"
]

silent = False
"""Set by the command-line tool, which says these things in its own words."""

LEVELS = {"lost": 30, "place_lost": 30, "evicted": 30, "store_down": 30, "store_up": 20}
QUIET = frozenset(("waiting", "acquired", "released", "renewed"))  # nobody reads these in a program without logging


class Event(NamedTuple):
    """What has happened, to which name and which hold."""

    kind: EventKind
    name: str = ""
    ticket: str = ""
    """Shortened: it names the hold to people and cannot be used to release it."""
    fence: int = 0
    detail: str = ""


def short(ticket: str) -> str:
    return f"{ticket[:6]}-{ticket[24:].lstrip('0')}"


_logger: Any = None


def heeded(kind: str) -> Any:
    """Whether anybody reads events of this kind in the log. What is quiet is not worth importing logging for."""
    global _logger
    if _logger is None:
        if silent or (kind in QUIET and "logging" not in sys.modules):
            return False
        import logging

        _logger = logging.getLogger("holdfast")
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

    logging.getLogger("holdfast").warning("%s", text)


def stumbled(text: str) -> None:
    """Log an exception that must not stop anything."""
    import logging

    logging.getLogger("holdfast").exception("%s", text)

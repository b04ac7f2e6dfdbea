"""What a client reports while it works: to `on_event`, and to the logger `holdfast`.

The logger is imported only when there is something worth a warning or the program uses logging anyway: start-up time
counts in cron.
"""

from typing import NamedTuple

silent = False
"""Set by the command-line tool, which says these things in its own words."""

LEVELS = {"lost": 30, "place_lost": 30, "evicted": 30, "store_down": 30, "store_up": 20}
QUIET = frozenset(("waiting", "acquired", "released", "renewed"))  # nobody reads these in a program without logging


class Event(NamedTuple):
    """kind is one of waiting, acquired, released, renewed, lost, place_lost, evicted, store_down, store_up."""

    kind: str
    name: str = ""
    ticket: str = ""
    """Shortened: it names the hold to people and cannot be used to release it."""
    fence: int = 0
    detail: str = ""


def short(ticket: str) -> str:
    return f"{ticket[:6]}-{ticket[24:].lstrip('0')}"


def log(event: Event) -> None:
    if silent:
        return
    import logging

    level = LEVELS.get(event.kind, 10)

    logger = logging.getLogger("holdfast")
    if logger.isEnabledFor(level):
        text = f"{event.name!r}: {event.kind}" if event.name else event.kind
        logger.log(level, "%s%s", text, f": {event.detail}" if event.detail else "", extra={"event": event})


def warn(text: str) -> None:
    if silent:
        return
    import logging

    logging.getLogger("holdfast").warning("%s", text)

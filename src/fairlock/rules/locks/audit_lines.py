"""The audit lines of a name: what operators did to it, and their reasons. The newest hundred are kept.

They are beside the state of the lock and not in it: a step would read and write them again and again. One JSON array
with a checksum, the newest line first.

Rejected alternatives: a log without an end (nothing would ever remove it), and a line written in the same step as the
command (every command would then carry its text through the rules and the scripts; a line that is lost when a client
dies between the two is the smaller evil, and the command itself never waits for its line).
"""

import json
from collections.abc import Sequence
from typing import Literal, NamedTuple

from ..checksum import seal, unseal

AuditKind = Literal["asked", "evicted", "released", "resized", "repaired"]

NEWEST = 100  # lines that are kept
KEPT_FOR = 30 * 86400  # seconds after the newest line
FORMAT = 1
START = '["audit"'  # how the text begins


class AuditLine(NamedTuple):
    """One thing that an operator did to a name."""

    at: float
    """The store's clock, in seconds."""
    kind: AuditKind
    by: str
    """The owner of the client that did it."""
    reason: str
    owner: str = ""
    """The holder or waiter that it was about; '' if it was about the name."""
    ticket: str = ""
    """Its ticket, shortened."""


def add(lines: Sequence[AuditLine], line: AuditLine) -> list[AuditLine]:
    """Return these lines with a new one, which comes first; the oldest goes if there are too many."""
    return [line, *lines][:NEWEST]


def are_old(lines: Sequence[AuditLine], now: int, age: int = 0) -> bool:
    """Return True if the newest of them is older than this many microseconds and than KEPT_FOR, or if there is none."""
    return not lines or lines[0].at * 1e6 + max(age, KEPT_FOR * 1_000_000) < now


def encode(lines: Sequence[AuditLine]) -> str:
    body = ["audit", FORMAT, *[[int(line.at * 1e6), *line[1:]] for line in lines]]
    return seal(json.dumps(body, separators=(",", ":"), ensure_ascii=False))


def encode_line(line: AuditLine) -> str:
    """Return one line without its time, for a store that keeps each by itself and adds the time."""
    return json.dumps(line[1:], separators=(",", ":"), ensure_ascii=False)


def decode_line(at: int, text: str) -> AuditLine:
    """Return the line with this text, of this time in microseconds. ValueError if it is none."""
    kind, by, reason, owner, ticket = json.loads(text)
    return AuditLine(at / 1e6, kind, by, reason, owner, ticket)


def decode(text: str | None) -> list[AuditLine]:
    """Return the lines in this text; [] if there is none, or if it cannot be read: the next line is then the first."""
    try:
        mark, number, *lines = json.loads(unseal(text)) if text else ("audit", FORMAT)
        if mark != "audit" or number != FORMAT:
            return []
        return [AuditLine(at / 1e6, kind, by, reason, owner, ticket) for at, kind, by, reason, owner, ticket in lines]
    except (TypeError, ValueError):
        return []

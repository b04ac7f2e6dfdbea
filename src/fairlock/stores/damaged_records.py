"""One record that cannot be read costs one name: the error that reports it, and the fence after its repair."""

from typing import Any

from ..errors import RecordDamaged
from ..rules.other_format import NewerFormat

AHEAD = 366 * 86400 * 1_000_000  # microseconds; a fence further ahead of the store's clock is damage, too


def damaged(name: str, where: str, why: object, what: str = "") -> RecordDamaged:
    """`name`: what is to be repaired; `what`: what of it cannot be read, if not the record of the lock."""
    from shlex import quote

    record, repair = what or f"The record of {name!r}", f"`fairlock doctor --repair {quote(name)}` resets it"
    text, cure = "is damaged", f"No other name is affected; {repair}."
    if isinstance(why, NewerFormat):
        text = "was written by a later version of fairlock"
        cure = f"Upgrade this one. Only if no client of the later version is left: {repair}."
    error = RecordDamaged(f"{record} in {where} {text}: {why}. {cure}")
    error.name = name
    return error


def fence_after(score: Any, now: int) -> int:
    """Return the last fence of a record that is reset: whatever was granted before is below the next one."""
    return max(now, score) if type(score) is int and score <= now + AHEAD else now

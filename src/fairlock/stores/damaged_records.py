"""One record that cannot be read costs one name: the error that reports it, and the fence after its repair."""

from typing import Any

from ..errors import RecordDamaged

AHEAD = 366 * 86400 * 1_000_000  # microseconds; a fence further ahead of the store's clock is damage, too


def damaged(name: str, where: str, why: object, what: str = "") -> RecordDamaged:
    """`name`: what is to be repaired; `what`: what of it cannot be read, if not the record of the lock."""
    from shlex import quote

    error = RecordDamaged(
        f"{what or f'The record of {name!r}'} in {where} is damaged: {why}. No other name is affected; "
        f"`fairlock doctor --repair {quote(name)}` resets it."
    )
    error.name = name
    return error


def fence_after(score: Any, now: int) -> int:
    """Return the last fence of a record that is reset: whatever was granted before is below the next one."""
    return max(now, score) if type(score) is int and score <= now + AHEAD else now

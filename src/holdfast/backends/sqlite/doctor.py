"""What there is to know about this file as a place for locks."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .store import SqliteStore


async def examine(store: "SqliteStore") -> list[tuple[str, str]]:
    return []

"""What an operator should know about a table of the service as a place for locks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from .table_requests import COLUMNS

if TYPE_CHECKING:
    from .store import OciStore

FAR = 2.0  # seconds between the table's clock and ours from which on it is reported
FEW = 10  # units with which a handful of waiters would be refused


async def examine(store: OciStore) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    about = await store.table.about()
    found.append(("ok", f"The table {about.name} is {str(about.lifecycle_state or 'there').lower()}."))
    found += _columns(about.schema)
    if any(level == "error" for level, _ in found):
        return found
    now = await store.clock.call()
    apart = now / 1e6 - time.time()
    if abs(apart) > FAR:
        found.append(("note", f"Its clock is {apart:+.1f} s from this machine's. Only its own counts for leases."))
    else:
        found.append(("ok", "Its clock agrees with this machine's."))
    limits = about.table_limits
    if limits is not None and limits.max_read_units is not None:
        units = f"{limits.max_read_units} read and {limits.max_write_units} write units"
        few = min(limits.max_read_units, limits.max_write_units or 0) < FEW and limits.capacity_mode != "ON_DEMAND"
        text = f"It has {units}: more requests in a second are refused, and waited out." if few else f"It has {units}."
        found.append(("warning" if few else "ok", text))
    found.append(("note", "The service pushes nothing: waiters poll, up to 50 times a second."))
    found.append(("note", "`ls`, `top` and the page read all names that were ever used, in pages."))
    return found


def _columns(schema: Any) -> list[tuple[str, str]]:
    """Return whether the table has the columns that it needs, and no others; no reply about them is no fault."""
    if schema is None or not schema.columns:
        return []
    wanted = [tuple(column.split()[:2]) for column in COLUMNS.split(", PRIMARY")[0].split(", ")]
    there = [(column.name.lower(), column.type.upper()) for column in schema.columns]
    if sorted(there) == sorted(wanted) and [key.lower() for key in schema.primary_key or ["key"]] == ["key"]:
        return [("ok", "It has the columns that it needs.")]
    names = ", ".join(" ".join(column) for column in there)
    return [("error", f"Its columns are {names}. They must be {COLUMNS}: make another table by 'fairlock schema'.")]

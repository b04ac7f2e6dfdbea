"""What an operator should know about a table of the service as a place for locks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ...errors import ConfigError

if TYPE_CHECKING:
    from .store import OciStore

FAR = 2.0  # seconds between the table's clock and ours that are worth a word
FEW = 10  # units with which a handful of waiters would be refused


async def examine(store: OciStore) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    about = await store.table.about()
    found.append(("ok", f"The table {about.name} is {str(about.lifecycle_state or 'there').lower()}."))
    now = await store.clock.ask()
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
    try:
        await store.items._found("\x1f", 0, 0)
    except ConfigError as error:
        found.append(("error", str(error)))
    else:
        if store.sorts:
            found.append(("ok", "What is due in a pool is found by an index on the score."))
        else:
            found.append(("note", "There is no index on the score: a take reads all that is due (see schema)."))
    found.append(("note", "The service pushes nothing: whoever waits looks, up to 50 times a second."))
    return found

"""What time it is in the table. A PUT cannot be made conditional on the clock, so the clock is asked for beforehand.

`current_time()` is part of a query, and a query returns nothing without a row. So there is one row for that, the same
for all clients: then it is also the clock of the same server for all of them.

From the last reply a lower bound of the time is known for a while without a request. It may grant and renew, and an
error of it only makes a lease longer. No holder is dropped by it, and nothing is cut short: see `checks_time` in
`stores.base`. Where a row shows that this may happen, the clock is read.
"""

from __future__ import annotations

from ...errors import StoreError
from ...rules.locks import codec
from ..base import OutcomeUnknown, Row
from ..cas import lapsed
from ..keys import SEPARATOR
from ..server_clock import ServerClock
from .table_requests import Table

CLOCK = f"{SEPARATOR}{SEPARATOR}clock"  # no lock and no item can be called so
STATEMENT = "DECLARE $row STRING; SELECT current_time() AS now FROM {table} t WHERE t.key = $row"
KEPT = 10.0  # seconds for which the time of a reply is used
VAGUE = 0.5  # seconds; a reply that took longer is too inexact: a lease would be shorter by as much
SHARP = 0.02  # seconds; one that took less is always good enough
OUTLIER = 3  # one that took this many times as long as usual is not used: the next one will be better


class Clock:
    def __init__(self, table: Table) -> None:
        self._table = table
        self._server = ServerClock(table.runtime.clock, KEPT, VAGUE)
        self._usual = VAGUE  # seconds that a reply takes at the least; rises slowly if all take longer

    async def call(self) -> int:
        """Return the time, in whole microseconds since 1970."""
        clock = self._table.runtime.clock
        for _ in range(3):
            before = clock()
            found = await self._table.query(STATEMENT, {"$row": CLOCK}, most=1)
            if found:
                now = micros(str(found[0]["now"]))
                self._note(now, before, clock())
                return now
            try:
                await self._table.put({"key": CLOCK, "score": -1, "owner": "", "body": None}, None)
            except OutcomeUnknown:
                pass  # the next read shows it
        raise StoreError(f"{self._table.where} does not keep the row by which its clock is read.")

    def _note(self, now: int, before: float, after: float) -> None:
        took = after - before
        self._usual = min(took, self._usual * 1.5)
        if took <= max(SHARP, OUTLIER * self._usual):
            self._server.note(now, before, after)
        else:
            self._server.forget()

    def guess(self) -> tuple[int, float] | None:
        """Return a time that is hardly ahead of the table's, and when it was by our clock at the earliest; None:
        ask."""
        return self._server.estimate()


def rests_on_it(row: Row | None, now: int) -> bool:
    """Return whether a step from this row at this time may drop an entry or cut a lease short."""
    if row is None or row.body == "null":
        return False
    from ...rules.pools.codec import decode_item, decode_queue, is_item_text, is_queue_text

    try:
        if is_item_text(row.body):
            item = decode_item(row.key, row.score, row.owner, row.body)
            return (bool(item.ticket) and item.score <= now) or item.score > now + item.lease
        if is_queue_text(row.body):
            line = decode_queue(row.body)
            return line.seen > now or any(w.expires <= now for w in (*line.workers, *line.watchers))
        record = codec.decode(row.body)
        return record.seen > now or lapsed(record, now)
    except ValueError:
        return True  # the client that asks gets the error


def micros(text: str) -> int:
    """Parse '2026-11-16T04:47:10.123Z', with or without the Z."""
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(text.rstrip("Z")).replace(tzinfo=UTC)
    return round(moment.timestamp() * 1_000_000)

"""Reads many rows of locks, a page at a time: all of them, or those that are busy."""

from collections.abc import Callable, Sequence
from typing import Any

from ..base import RowSnapshot, Store
from .dialects import SCANNED, Dialect


class ScanRows(Store):
    dialect: Dialect
    call: Any
    _clock: Callable[[], float]

    def _seen(self, key: str, row: Sequence[Any], at: float) -> RowSnapshot:
        raise NotImplementedError

    async def scan(self, prefix: str) -> list[RowSnapshot]:
        found: list[RowSnapshot] = []
        dialect = self.dialect
        statement, values = (dialect.scan, {"v_key": prefix}) if prefix else (dialect.scan_all, {})
        while True:
            at = self._clock()
            result = await self.call(statement, values)
            for now, key, *rest in result.rows:
                if not key.startswith(prefix):
                    return found
                found.append(self._seen(key, (now, *rest), at))
            if len(result.rows) < SCANNED:
                return found
            statement, values = dialect.scan_on, {"v_key": found[-1].row.key}  # type: ignore[union-attr]

    async def scan_busy(self, prefix: str) -> list[RowSnapshot]:
        """Read the busy rows, without a lower bound: with one, the server would follow the index row by row and take
        many times as long."""
        found, statement, values = list[RowSnapshot](), self.dialect.scan_busy, dict[str, Any]()
        while True:
            at = self._clock()
            rows = (await self.call(statement, values)).rows
            found += [self._seen(key, (now, *rest), at) for now, key, *rest in rows if key.startswith(prefix)]
            if len(rows) < SCANNED:
                return found
            statement, values = self.dialect.scan_busy_on, {"v_key": rows[-1][1]}

"""A transaction of the user, in which `lease.seal` locks the row of its lock.

It is a connection of SQLAlchemy or of a driver, for threads or for asyncio. Each runs a statement in its own way; here
they are one thing. A statement has its values by name (`:v_key`), as SQLAlchemy writes them.

Rejected alternative: a connection that fairlock makes for the user. The transaction that must not be committed is the
one that the program has already.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from ..errors import ConfigError

POSTGRESQL, MYSQL, SQLITE = "postgresql", "mysql", "sqlite"
DRIVERS = {
    "psycopg": POSTGRESQL, "psycopg2": POSTGRESQL, "pymysql": MYSQL, "aiomysql": MYSQL, "MySQLdb": MYSQL,
    "sqlite3": SQLITE,
}  # fmt: skip
IN_TRANSACTION = 2  # PQTRANS_INTRANS of libpq
STATUS_IN_TRANS = 1  # SERVER_STATUS_IN_TRANS of MySQL


class UserTransaction:
    """Make it of what the caller gives. ConfigError if that is no connection, or one of the other face."""

    def __init__(self, given: Any, blocking: bool) -> None:
        roots = [kind.__module__.partition(".")[0] for kind in type(given).__mro__]
        self._by_sqlalchemy = "sqlalchemy" in roots
        driver = next((DRIVERS[root] for root in roots if root in DRIVERS), None)
        if (not self._by_sqlalchemy and driver is None) or not hasattr(given, "commit"):
            raise ConfigError(
                f"seal() takes the connection of your transaction, not {type(given).__name__}: a Connection, Session, "
                "AsyncConnection or AsyncSession of SQLAlchemy, or a connection of psycopg, PyMySQL or sqlite3."
            )
        from inspect import iscoroutinefunction

        if blocking and iscoroutinefunction(given.commit):
            raise ConfigError("This connection is for asyncio. Use fairlock.aio with it, and `await lease.seal(…)`.")
        self._given = given
        self._kind = driver

    async def open(self) -> str:
        """Return what kind of database it leads to. Flushes a Session of SQLAlchemy first."""
        if self._by_sqlalchemy:
            if hasattr(self._given, "flush"):
                await _value(self._given.flush())
                self._given = await _value(self._given.connection())
            name: str = self._given.dialect.name
            self._kind = MYSQL if name == "mariadb" else name
        assert self._kind is not None
        return self._kind

    async def run(self, text: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Run this statement and return its rows. Raises what the driver raises."""
        if self._by_sqlalchemy:
            sqlalchemy = sys.modules["sqlalchemy"]  # an object of it was given
            try:
                result = await _value(self._given.execute(sqlalchemy.text(text), values))
            except Exception as error:
                raise getattr(error, "orig", None) or error from error
            return [tuple(row) for row in result.fetchall()] if result.returns_rows else []
        if self._kind != SQLITE:
            text = re.sub(r":(v_\w+)", r"%(\1)s", text)
        cursor = await _value(self._given.cursor())
        if self._kind == SQLITE:
            cursor.row_factory = None
        try:
            await _value(cursor.execute(text, values))
            rows = await _value(cursor.fetchall()) if cursor.description else []
        finally:
            await _value(cursor.close())
        return [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in rows]

    def is_open(self) -> bool:
        """Return False if its last statement was in no transaction (autocommit), True if that is not known."""
        driver = self._given
        if self._by_sqlalchemy:
            driver = getattr(driver, "sync_connection", driver).connection.driver_connection
        if hasattr(driver, "in_transaction"):
            return bool(driver.in_transaction)
        status = getattr(getattr(driver, "info", None), "transaction_status", None)
        if status is not None:
            return int(status) == IN_TRANSACTION
        status = getattr(driver, "server_status", None)
        return True if status is None else bool(status & STATUS_IN_TRANS)


async def _value(result: Any) -> Any:
    return await result if hasattr(result, "__await__") else result

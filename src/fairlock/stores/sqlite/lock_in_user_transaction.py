"""Take the write lock of the lock file in a transaction of the user, and read the row of the lock or item.

SQLite has one writer at a time per file. A transaction that may write keeps out every step of every lock of that file
until it ends. So the user's connection must have the lock file: it is the user's database, too, or it is attached to it
(`ATTACH 'locks.db' AS locks`). At COMMIT SQLite writes the data of all files before it gives up one of their locks.

An UPDATE that matches no row takes the write lock and changes nothing. A transaction that has read before and finds
that others have written since then cannot get it: BEGIN IMMEDIATE has it from the start.
"""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError, StoreError
from ..base import Row, RowSnapshot
from ..user_transaction import SQLITE, UserTransaction
from . import errors

if TYPE_CHECKING:
    from .store import SqliteStore

LOCK = "UPDATE {}.fairlock_locks SET version = version WHERE 0"
READ = "SELECT score, owner, body, version FROM {}.fairlock_locks WHERE key = :v_key"
READ_ITEM = """SELECT key, score, fence, ticket, lease, owner, note, body FROM {}.fairlock_items
    WHERE pool = :v_pool AND key = :v_key"""


async def lock_row(store: SqliteStore, key: str, transaction: UserTransaction) -> RowSnapshot:
    """Take the write lock until the transaction ends; return the row. StoreError if that fails, ConfigError if it
    would protect nothing."""
    rows, now, at = await lock(store, READ, {"v_key": key}, transaction)
    if not rows:
        return RowSnapshot(None, None, now, at)
    score, owner, body, version = rows[0]
    return RowSnapshot(Row(key, score, owner, body.decode() if type(body) is bytes else body), version, now, at)


async def lock(
    store: SqliteStore, read: str, values: dict[str, str], transaction: UserTransaction
) -> tuple[list[tuple[Any, ...]], int, float]:
    """Do the same for whatever is read. Return the row, if there is one, the time, and the client's clock before."""
    if await transaction.open() != SQLITE:
        raise _elsewhere(store)
    await store.ping()  # opens it again if it was closed for a fork, and notices if it was replaced
    at = store.client_clock()
    try:
        files = {name: file for _, name, file in await transaction.run("PRAGMA database_list", {})}
        name = next((name for name, file in files.items() if _same(file, store)), None)
        if name is None:
            raise _elsewhere(store)
        quoted = '"' + name.replace('"', '""') + '"'
        await transaction.run(LOCK.format(quoted), {})
        rows = await transaction.run(read.format(quoted), values)
    except sqlite3.Error as error:
        raise _meaning(error) from error
    if not transaction.is_open():
        raise ConfigError("seal() needs an open transaction, and this connection is in autocommit: BEGIN IMMEDIATE.")
    return rows, store._db.now(), at


def _same(file: str, store: SqliteStore) -> bool:
    try:
        there = os.stat(file)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == store._db.file


def _elsewhere(store: SqliteStore) -> ConfigError:
    path = store.where.removeprefix("sqlite:///").replace("'", "''")
    return ConfigError(
        f"This transaction is not in the file of the lock. Before it begins: ATTACH '{path}' AS locks. Or hand "
        "the fence to what you protect."
    )


def _meaning(error: sqlite3.Error) -> StoreError:
    if errors.is_busy(error):
        return StoreError(
            "The transaction could not be sealed: others are writing to the file of the lock, or have written since it "
            "began. Roll it back and repeat it, with BEGIN IMMEDIATE."
        )
    return StoreError(f"The transaction could not be sealed: {error}. Roll it back.")

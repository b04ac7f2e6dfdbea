"""Lock the row of a lock or an item in a transaction of the user: one statement, the last before its COMMIT.

The row stays locked until that transaction ends, and every step of that lock or item writes the row. So no
other client is granted it before.

- PostgreSQL: SELECT … FOR SHARE. Holders that share a lock do not wait for each other. Under REPEATABLE READ and
  SERIALIZABLE it fails if the row was written since the transaction began (also by a renewal): then it is repeated, as
  after every serialization failure. A session that stays idle in the sealed transaction for longer than the lease is
  ended by the server: a process that was stopped there would keep all others out for as long.
- MariaDB and MySQL: a locking read shows the latest row under every isolation level.

The table is named with its schema, because the connection of the user may have another search path or default database,
and the row shows on which server it is: a copy, a replica or another node of a cluster would exclude no other client.

Rejected alternatives: a condition on the fence in the user's own tables (docs/fences.md has it: each table needs a
column), and an advisory lock (it does not show that the lease is still held, and steps do not respect it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import ConfigError, LockError, StoreError
from ..user_transaction import MYSQL, POSTGRESQL, UserTransaction
from .dialects import CLOCK, MariaDB, PostgreSQL
from .schema import Statement

if TYPE_CHECKING:
    from .lock_rows import SqlRows

IDLE = "idle_in_transaction_session_timeout"

# Where the store is: the table with its schema, and the server.
_POSTGRESQL = "current_database() || ' ' || CAST(EXTRACT(epoch FROM pg_postmaster_start_time()) * 1000000 AS BIGINT)"
_MYSQL = "CONCAT_WS(' ', @@hostname, @@port, @@datadir)"
PLACE = {
    POSTGRESQL: f"""SELECT CAST(CAST(relnamespace AS regnamespace) AS TEXT) || '.fairlock_locks', {_POSTGRESQL}
FROM pg_class WHERE oid = CAST('fairlock_locks' AS regclass)""",
    MYSQL: f"SELECT CONCAT('`', REPLACE(DATABASE(), '`', '``'), '`.fairlock_locks'), {_MYSQL}",
}

# The clock is read after the row was locked: an outer query of a locking one.
_SEAL = {
    POSTGRESQL: f"""WITH sealed AS (SELECT {{columns}} FROM {{{{}}}} WHERE {{this}} FOR SHARE)
SELECT {CLOCK}, {{columns}}, {_POSTGRESQL},
    CASE WHEN current_setting('{IDLE}') = '0' THEN set_config('{IDLE}', :v_limit, true) END
FROM (SELECT 1) AS just LEFT JOIN sealed ON true""",
    MYSQL: f"""SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)), {{columns}}, {_MYSQL},
    @@autocommit
FROM (SELECT 1 AS one) AS just LEFT JOIN {{{{}}}} ON {{this}} LOCK IN SHARE MODE""",
}
_LOCK = "score, owner, body, version", "{key} = :v_key"
_ITEM = "{key}, score, fence, ticket, lease, owner, note, body", "pool = :v_pool AND {key} = :v_key"
_KEY = {POSTGRESQL: "key", MYSQL: "`key`"}  # a word of MySQL


class Sealed(NamedTuple):
    """What is sealed: a lock, or an item of a pool."""

    what: str
    table: str
    statements: dict[str, str]


def _sealed(what: str, table: str, columns: str, this: str) -> Sealed:
    texts = {
        kind: text.format(columns=columns.format(key=_KEY[kind]), this=this.format(key=_KEY[kind]))
        for kind, text in _SEAL.items()
    }
    return Sealed(what, table, texts)


LOCK, ITEM = _sealed("lock", "fairlock_locks", *_LOCK), _sealed("item", "fairlock_items", *_ITEM)


async def lock_row(
    sealed: Sealed, store: SqlRows, values: dict[str, str], transaction: UserTransaction, lease: float
) -> tuple[tuple[Any, ...], float]:
    """Lock the row of a lock or an item until the transaction ends. Return the time of the server with the columns of
    the row, and the client's clock before. StoreError if that fails, ConfigError if it would protect nothing."""
    kind = POSTGRESQL if isinstance(store.dialect, PostgreSQL) else MYSQL if isinstance(store.dialect, MariaDB) else ""
    if not kind:
        raise ConfigError(f"seal() works on PostgreSQL, MariaDB, MySQL and SQLite, not on {store.where}.")
    found = await transaction.open()
    if found != kind:
        raise _elsewhere(store, sealed, f"it leads to {found}")
    table, server = store.place or await _find(store, kind)
    at = store.client_clock()
    if kind == POSTGRESQL:
        values["v_limit"] = str(max(int(lease * 1000), 1))
    table = table.removesuffix(LOCK.table) + sealed.table  # in the same schema
    try:
        (row,) = await transaction.run(sealed.statements[kind].format(table), values)
    except LockError:
        raise
    except Exception as error:
        raise _meaning(store, sealed, error) from error
    if row[-2] != server and row[-2] != (await _find(store, kind))[1]:  # it may have been started again since
        raise _elsewhere(store, sealed, "it leads to another server or database")
    begins_by_itself = kind == MYSQL and not row[-1]  # which its drivers do not report after a SELECT
    if not begins_by_itself and not transaction.is_open():
        raise ConfigError("seal() needs an open transaction, and this connection is in autocommit: begin one.")
    return row[:-2], at


async def _find(store: SqlRows, kind: str) -> tuple[str, str]:
    result = await store.call(Statement(PLACE[kind], (), True, True, False), {})
    store.place = place = tuple(result.rows[0])
    return place


def _elsewhere(store: SqlRows, sealed: Sealed, why: str) -> ConfigError:
    return ConfigError(
        f"This transaction is not in the database of the {sealed.what}, {store.where}: {why}. seal() needs both in the "
        "same one: give connect() the URL of your database, or hand the fence to what you protect."
    )


def _meaning(store: SqlRows, sealed: Sealed, error: Exception) -> LockError:
    dialect = store.dialect
    code: Any = dialect.code(error)
    if code in dialect.no_table or code in dialect.no_database:
        return _elsewhere(store, sealed, "there is no such table")
    if code in dialect.no_right:
        return ConfigError(
            f"The user of this transaction may not lock the row of the {sealed.what}: it needs SELECT and UPDATE on "
            f"the table {sealed.table}. `fairlock schema` prints the GRANT."
        )
    if code in dialect.read_only:
        return ConfigError("This transaction is read only. seal() locks a row, so it needs one that may write.")
    if code in dialect.conflict:
        return StoreError(
            f"The transaction could not be sealed: the row of the {sealed.what} was written since it began (by a "
            "renewal, most likely). Roll it back and repeat it, or use READ COMMITTED."
        )
    return StoreError(f"The transaction could not be sealed: {' '.join(str(error).split())}. Roll it back.")

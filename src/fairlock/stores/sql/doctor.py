"""`fairlock doctor` for a SQL database: its settings, its tables, its clock."""

import time
from typing import TYPE_CHECKING

from ...errors import StoreError
from .schema import Statement

if TYPE_CHECKING:
    from .store import SqlStore

Finding = tuple[str, str]

POSTGRESQL = {
    "SELECT current_setting('server_version')": "version",
    "SELECT current_setting('fsync')": "fsync",
    "SELECT current_setting('synchronous_commit')": "synchronous_commit",
    "SELECT pg_is_in_recovery()::text": "recovery",
    "SELECT count(*)::text FROM pg_stat_replication": "replicas",
}
ORACLE = {"SELECT value FROM nls_database_parameters WHERE parameter = 'NLS_CHARACTERSET'": "characters"}
MARIADB = {
    "SELECT version()": "version",
    "SELECT @@innodb_flush_log_at_trx_commit": "flush",
    "SELECT @@read_only": "read_only",
}


async def examine(store: "SqlStore") -> list[Finding]:
    await store.ping()
    look = {"PostgreSQL": _postgresql, "MariaDB": _mariadb}.get(store.dialect.name, _oracle)
    return [*await look(store), await _tables(store), _clock(store)]


async def _call(store: "SqlStore", questions: dict[str, str]) -> dict[str, str]:
    answers = {}
    for text, name in questions.items():
        try:
            rows = (await store.executor.run(Statement(text, (), True, True, False), {})).rows
            answers[name] = str(rows[0][0])
        except StoreError:
            pass  # not allowed, so not known
    return answers


async def _postgresql(store: "SqlStore") -> list[Finding]:
    result = await _call(store, POSTGRESQL)
    found: list[Finding] = [("ok", f"It is PostgreSQL {result.get('version', '?')}.")]
    if result.get("fsync") == "off":
        found.append(("warning", "fsync is off: a crash of its machine can lose locks, or the whole database."))
    elif result.get("synchronous_commit") == "off":
        found.append(
            ("warning", "synchronous_commit is off: a crash can lose the last moments, and a lock just granted.")
        )
    else:
        found.append(("ok", "What it confirms is on its disk."))
    if result.get("replicas", "0") != "0" and result.get("synchronous_commit") in ("on", "local"):
        found.append(
            ("note", "It has replicas. After a failover to one that is not synchronous, two may hold a lock.")
        )
    if store.executor.pooled and not store.open_listener():
        found.append(
            ("note", "A pooler is in front of it, so waiters poll. listen= with a direct URL wakes them at once.")
        )
    elif store.open_listener():
        found.append(("ok", "Waiters are woken by NOTIFY."))
    return found


async def _mariadb(store: "SqlStore") -> list[Finding]:
    result = await _call(store, MARIADB)
    found: list[Finding] = [("ok", f"It is {result.get('version', '?')}.")]
    if result.get("flush", "1") != "1":
        found.append(
            ("warning", "innodb_flush_log_at_trx_commit is not 1: a crash of its machine can lose a lock just granted.")
        )
    else:
        found.append(("ok", "What it confirms is on its disk."))
    found.append(("note", "It has no notifications: waiters poll, at first every 10 ms."))
    return found


async def _oracle(store: "SqlStore") -> list[Finding]:
    name = store.dialect.name
    found: list[Finding] = [("note", f"The tests of fairlock have never run on a real {name}, see docs/sql.md.")]
    if name != "Oracle":
        return found
    characters = (await _call(store, ORACLE)).get("characters", "")
    if characters in ("AL32UTF8", "UTF8"):
        found.append(("ok", f"Its character set, {characters}, has every character that a name may have."))
    elif characters:
        found.append(
            ("warning", f"Its character set is {characters}: two names may become one. Use ASCII names, or AL32UTF8.")
        )
    found.append(("note", "It has no notifications: waiters poll, at first every 10 ms."))
    if not store.skew:
        found.append(("note", "On RAC each instance has the clock of its host: set skew= to what they may differ by."))
    return found


async def _tables(store: "SqlStore") -> Finding:
    key = "\x1fdoctor"
    seen = await store.read(key, settle=True)  # writes, so the rights are tried, too
    assert seen.version is not None
    await store.delete(key, seen.version)
    return ("ok", "Its tables are there, and this user may read and write them.")


def _clock(store: "SqlStore") -> Finding:
    sample = store.now()
    assert sample is not None
    skew = sample.now / 1e6 - time.time()
    text = f"Its clock and this machine's differ by {abs(skew):.3g} s; only its own counts."
    return ("ok" if abs(skew) < 5 else "note", text)

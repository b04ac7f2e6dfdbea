"""A process that moves a counter under a lock: reads it, and writes it one higher in a transaction, sealed or not.

    python -m tests.engine.seal_worker KIND URL PATH seal|plain

Each line of its input is one turn; it replies with `done` or with the name of the error. Whether all turns that were
committed are in the counter shows whether one of them was stale.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from typing import Any

import fairlock
from fairlock.errors import LockError

LEASE = 0.8


def connect(kind: str, url: str, path: str) -> tuple[Any, type[Exception]]:
    if kind == "sqlite":
        db = sqlite3.connect(f"{path}/app.db", isolation_level=None, timeout=20)
        db.execute(f"ATTACH '{path}/locks.db' AS locks")
        return db, sqlite3.Error
    if kind == "postgresql":
        import psycopg

        return psycopg.connect(url), psycopg.Error
    import pymysql
    from sqlalchemy import make_url

    at = make_url(url)
    return pymysql.connect(
        host=at.host, port=at.port or 0, user=at.username, password=at.password or "", database=at.database,
        ssl_disabled=True,
    ), pymysql.Error  # fmt: skip


def turn(locks: fairlock.Locks, db: Any, kind: str, sealed: bool) -> None:
    with locks.lock("counter", lease=LEASE).acquire(timeout=30) as lease:  # type: ignore[union-attr]
        cursor = db.cursor()
        cursor.execute("SELECT value FROM counter")
        (value,) = cursor.fetchone()
        db.rollback()
        time.sleep(0.003)
        if kind == "sqlite":
            cursor.execute("BEGIN IMMEDIATE")
        cursor.execute(f"UPDATE counter SET value = {value + 1}")
        cursor.execute(f"INSERT INTO journal VALUES ({lease.fence})")
        if sealed:
            lease.seal(db)
        db.commit()


def main(kind: str, url: str, path: str, sealed: str) -> None:
    db, error_of_driver = connect(kind, url, path)
    with fairlock.connect(url) as locks:
        for _ in sys.stdin:
            try:
                turn(locks, db, kind, sealed == "seal")
                print("done", flush=True)
            except (LockError, error_of_driver) as error:
                print(type(error).__name__, flush=True)
                try:
                    db.rollback()
                except error_of_driver:
                    db, _ = connect(kind, url, path)


if __name__ == "__main__":
    main(*sys.argv[1:])

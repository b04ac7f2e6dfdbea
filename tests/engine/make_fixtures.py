"""Writes what this version stores, for the tests of later ones: the rows of SQLite and PostgreSQL, the keys of Redis.

    PYTHONPATH=src python tests/engine/make_fixtures.py sqlite FILE.db > sqlite_3.json
    PYTHONPATH=src python tests/engine/make_fixtures.py redis redis://localhost:PORT > redis_3.json
    PYTHONPATH=src python tests/engine/make_fixtures.py sql postgresql://user:password@host/database > sql_3.json

Run it with the source of a tag before the format changes, and keep the files in fixtures/: test_earlier_formats.py
reads them. The servers are empty before.
"""

import json
import sqlite3
import sys
import threading
import time
from typing import Any

import fairlock

LONG = 10 * 365 * 86400  # seconds: it is still held when a later version reads it


def fill(url: str) -> Any:
    """Store something of everything, and return what the store has then."""
    with fairlock.connect(url, owner="tina") as locks, fairlock.connect(url, owner="tom", namespace="shop") as other:
        locks.lock("idle").acquire().release()
        locks.lock("held", note="é “note”").acquire().detach(LONG)
        locks.rwlock("read").read().acquire().detach(LONG)
        locks.resize("sized", 3)
        locks.semaphore("sized", None).acquire().detach(LONG)
        locks.lock("evicted").acquire().detach(LONG)
        locks.evict("evicted", reason="a fixture")
        other.lock("held").acquire().detach(LONG)
        pool = locks.pool("jobs")
        for key in ("free", "taken", "done"):
            pool.add(key, {"n": 1, "text": "é"})
        pool.acquire(key="done").done()
        pool.acquire(key="taken").extend(LONG)
        waiter = threading.Thread(target=lambda: locks.lock("held").acquire(timeout=2), daemon=True)
        waiter.start()
        time.sleep(0.5)
        found = dump(url)
        waiter.join()
        return found


def dump(url: str) -> Any:
    if url.startswith("sqlite"):
        db = sqlite3.connect(url.removeprefix("sqlite:///"))
        tables = {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in ("fairlock_locks", "fairlock_items")}
        tables["fairlock_meta"] = db.execute("SELECT * FROM fairlock_meta").fetchall()
        return tables
    if url.startswith("postgresql"):
        import sqlalchemy as sa

        with sa.create_engine(url.replace("://", "+psycopg://", 1)).connect() as connection:
            names = ("fairlock_locks", "fairlock_items")
            rows = {name: [list(row) for row in connection.execute(sa.text(f"SELECT * FROM {name}"))] for name in names}
        return rows
    import redis

    client = redis.Redis.from_url(url, decode_responses=True, encoding="latin-1")  # each byte is a letter
    found: dict[str, Any] = {}
    for key in sorted(client.keys()):
        kind = client.type(key)
        if kind == "hash":
            found[key] = [kind, client.hgetall(key)]
        elif kind == "zset":
            found[key] = [kind, client.zrange(key, 0, -1, withscores=True)]
        elif kind == "list":
            found[key] = [kind, client.lrange(key, 0, -1)]
        else:
            found[key] = [kind, client.get(key)]
    return found


if __name__ == "__main__":
    kind, where = sys.argv[1:]
    print(json.dumps(fill(f"sqlite:///{where}" if kind == "sqlite" else where), indent=1))

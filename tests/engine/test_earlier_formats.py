"""What earlier versions have stored is read by this one; what a later one stores is refused with a sentence.

The fixtures were made by make_fixtures.py beside this file: format 3, before fairlock was first published.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import redis

import fairlock
from fairlock.engine.run_sync import run
from fairlock.errors import RecordDamaged
from fairlock.rules.locks import EMPTY, codec
from tests.servers.server import Server
from tests.servers.sql import Database

FIXTURES = Path(__file__).parent / "fixtures"
TABLES = ("fairlock_locks", "fairlock_items")


def read(name: str) -> Any:
    return json.loads((FIXTURES / name).read_text())


def on_sqlite(path: Path) -> str:
    url = f"sqlite:///{path}/locks.db"
    with fairlock.connect(url) as locks:
        locks.lock("first").acquire().release()
        locks.pool("first").add("a")
    with sqlite3.connect(path / "locks.db") as db:
        for table, rows in read("sqlite_3.json").items():
            db.execute(f"DELETE FROM {table}")
            for row in rows:
                db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    db.close()
    return url


def on_sql(server: Database) -> str:
    with fairlock.connect(server.url) as locks:
        locks.lock("first").acquire().release()
        locks.pool("first").add("a")
    connection = server.connect()
    cursor = connection.cursor()
    for table in TABLES:
        cursor.execute(f"DELETE FROM {table}")
        for row in read("sql_3.json")[table]:
            cursor.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)
    connection.commit()
    connection.close()
    return server.url


def raw(text: str) -> bytes:
    return text.encode("latin-1")  # each letter is a byte


def on_redis(server: Server) -> str:
    client = redis.Redis(port=server.port)
    for key, (kind, content) in read("redis_3.json").items():
        if kind == "hash":
            client.hset(key, mapping={raw(field): raw(value) for field, value in content.items()})
        elif kind == "zset":
            client.zadd(key, {raw(member): score for member, score in content})
        elif kind == "list":
            client.rpush(key, *map(raw, content))
        else:
            client.set(key, raw(content))
    client.close()
    return server.url


@pytest.fixture(params=["sqlite", "postgresql", "mariadb", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return on_sqlite(tmp_path)
    if request.param == "redis":
        return on_redis(request.getfixturevalue("redis_alone"))
    return on_sql(request.getfixturevalue(request.param))


def test_format_3_is_read(url: str) -> None:
    with fairlock.connect(url) as locks, fairlock.connect(url, namespace="shop") as shop:
        (held,), now = (found := run(locks.session.read("held")))[0].holders, found[1]
        assert held.owner == "tina" and held.note == "é “note”" and held.expires > now
        assert run(locks.session.read("sized"))[0].capacity == 3
        assert locks.lock("held").acquire(blocking=False) is None
        assert shop.lock("held").acquire(blocking=False) is None
        with locks.rwlock("read").read():
            pass
        fence = run(locks.session.read("idle"))[0].fence
        with locks.lock("idle") as lease:
            assert lease.fence > fence
        items = {item.key: item for item in locks.pool("jobs").items()}
        assert {key: item.state for key, item in items.items()} == {"free": "free", "taken": "taken", "done": "done"}
        assert items["free"].body == {"n": 1, "text": "é"}
        item = locks.pool("jobs").acquire(blocking=False)
        assert item is not None and item.key == "free"
        item.done()
        locks.evict("held", reason="a test", at_once=True)
        locks.lock("held").acquire(timeout=5).release()  # type: ignore[union-attr]


def test_a_later_format_is_refused_and_not_changed(tmp_path: Path) -> None:
    """As an older client sees it: one name, a sentence, and what is stored stays as it is."""
    url = f"sqlite:///{tmp_path}/locks.db"
    with fairlock.connect(url) as locks:
        locks.lock("newer").acquire().release()
        later = codec.encode(EMPTY).replace(f"[{codec.FORMAT},", f"[{codec.FORMAT + 1},", 1)
        with sqlite3.connect(tmp_path / "locks.db") as db:
            db.execute("UPDATE fairlock_locks SET body=?, version=version+1 WHERE key='newer'", (later,))
        with pytest.raises(
            RecordDamaged, match=f"a record of format {codec.FORMAT + 1}; this version of fairlock reads"
        ):
            locks.lock("newer").acquire()
        with locks.lock("other"):
            pass
        assert db.execute("SELECT body FROM fairlock_locks WHERE key='newer'").fetchone() == (later,)
        db.close()

"""What earlier versions have stored is read by this one; what a later one stores is refused with a sentence.

The fixtures were made by make_fixtures.py beside this file: format 3, before fairlock was first published. The newest
of them shows today's format: what is written now must look the same, so nobody changes it without a new number.
"""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import redis

import fairlock
from fairlock.cli import main
from fairlock.engine.run_sync import run
from fairlock.errors import RecordDamaged
from fairlock.rules.locks import EMPTY, codec
from fairlock.rules.pools.codec import decode_body, decode_queue, encode_body, encode_queue, is_queue_text
from fairlock.stores.redis import encoding
from fairlock.stores.sqlite.item_checksums import sealed, unsealed
from tests.engine import make_fixtures
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


def test_a_later_format_is_refused_and_not_changed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
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
        assert main(["-u", url, "doctor"]) != 0
        assert "was written by a later version of fairlock: a record of format" in capfd.readouterr().out
        with locks.lock("other"):
            pass
        assert db.execute("SELECT body FROM fairlock_locks WHERE key='newer'").fetchone() == (later,)
        db.close()


# -- today's format is the newest fixture's


NUMBER = "A change of the format needs a new number, and fixtures of it: see make_fixtures.py."


@pytest.mark.parametrize("store, number", [("sqlite", codec.FORMAT), ("sql", codec.FORMAT), ("redis", encoding.FORMAT)])
def test_the_number_of_todays_format_has_a_fixture(store: str, number: int) -> None:
    assert (FIXTURES / f"{store}_{number}.json").exists(), NUMBER


@pytest.mark.parametrize("store", ["sqlite", "sql"])
def test_records_are_written_as_the_newest_fixture_has_them(store: str) -> None:
    found = read(f"{store}_{codec.FORMAT}.json")
    for row in found["fairlock_locks"]:
        body = row[3]
        again = encode_queue(decode_queue(body)) if is_queue_text(body) else codec.encode(codec.decode(body))
        assert again == body, NUMBER
    for pool, *row in found["fairlock_items"]:
        if store == "sqlite":
            assert sealed(pool, unsealed(pool, tuple(row))) == row[-1], NUMBER
        else:
            assert encode_body(decode_body(row[-1], pool, row[0]), pool, row[0]) == row[-1], NUMBER


def shape(stored: dict[str, Any]) -> dict[str, Any]:
    """Return how it is laid out: the kind of each key, its fields, and the length of each packed value. The numbers in
    them have a fixed length, and owners and notes are the same in each fixture."""

    def plain(text: str) -> str:
        return re.sub(r"[0-9a-f]{32}", "TICKET", text)

    found: dict[str, Any] = {}
    for key, (kind, content) in stored.items():
        if "{" not in key:
            continue  # an index, which is made by use
        if kind == "hash":
            values = {plain(field): value for field, value in content.items()}
            found[key] = {field: (value[:1] if field == "n" else "", len(value)) for field, value in values.items()}
        else:
            found[key] = sorted(len(member[0] if kind == "zset" else member) for member in content)
    return found


def test_redis_writes_what_the_newest_fixture_has(redis_alone: Server) -> None:
    now = shape(json.loads(json.dumps(make_fixtures.fill(redis_alone.url))))
    then = shape(read(f"redis_{encoding.FORMAT}.json"))
    assert {key: now.get(key) for key in then} == then, NUMBER


def test_another_layout_with_the_same_number_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "encode", lambda state: real(state).replace("false", "0"), raising=True)
    with pytest.raises(AssertionError, match="needs a new number"):
        test_records_are_written_as_the_newest_fixture_has_them("sql")


real = codec.encode

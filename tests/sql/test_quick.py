"""PostgreSQL by the short way, past psycopg's cursor: what is said arrives as it is, and what comes back, too."""

from __future__ import annotations

import threading
import time

import pytest

import holdfast
from holdfast.backends.sql.tables import by_number
from tests.servers.sql import PgBouncer, PostgreSQL

ODD = ["it's", 'say "no"', "100 %", "%(v_key)s", "$1", "back\\slash", "{a,b}", "ünïcödé 🔒"]


@pytest.mark.parametrize("server", ["postgresql", "pgbouncer"])
def test_odd_words_arrive_as_they_are(server: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(server).url
    with holdfast.connect(url, owner="; ".join(ODD)) as one, holdfast.connect(url) as other:
        for name in ODD:
            for _ in range(3):  # said for the first time, prepared, prepared already
                with one.lock(name, note=name):
                    (found,) = other.snapshot(name).resources
                    assert (found.name, found.inside[0].note) == (name, name)
                    assert found.inside[0].owner == "; ".join(ODD)
                    assert other.lock(name).acquire(False) is None


def test_a_hint_brings_odd_words_to_whom_it_is_for(postgresql: PostgreSQL) -> None:
    name = "".join(ODD)
    with holdfast.connect(postgresql.url, owner=name) as one, holdfast.connect(postgresql.url, owner=name) as other:
        lease = one.lock(name).acquire()
        assert lease is not None
        got: list[bool] = []

        def wait() -> None:
            with other.lock(name):
                got.append(True)

        waiting = threading.Thread(target=wait)
        waiting.start()
        limit = time.monotonic() + 20
        while not one.snapshot(name).resources[0].line:
            assert time.monotonic() < limit, "nobody waits"
            time.sleep(0.01)
        lease.release()
        waiting.join(20)
        assert got


def test_a_database_of_another_encoding(postgresql: PostgreSQL) -> None:
    with postgresql.connect("") as operator:
        operator.execute("DROP DATABASE IF EXISTS western")
        operator.execute("CREATE DATABASE western OWNER app ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    url = postgresql.url.rpartition("/")[0] + "/western"
    with holdfast.connect(url, owner="Müller") as locks:
        for _ in range(3):
            with locks.lock("Straße"):
                assert locks.snapshot("*").resources[0].inside[0].owner == "Müller"
    with postgresql.connect("western") as operator:
        assert operator.execute("SELECT key FROM holdfast_locks").fetchall() == [("Straße",)]
    with postgresql.connect("") as operator:
        operator.execute("DROP DATABASE western WITH (FORCE)")


def prepared(server: PostgreSQL, url: str) -> int:
    """How many statements a connection has prepared, as it says itself."""
    with holdfast.connect(url) as locks:
        for _ in range(4):
            with locks.lock("x"):
                pass
        hands = locks._desk.backend.store.hands  # type: ignore[attr-defined]
        lent, _ = hands._lend()
        found = lent.cursor().execute("SELECT count(*) FROM pg_prepared_statements").fetchone()[0]
        lent.close()
        return int(found)


def test_what_is_said_often_is_prepared_but_not_behind_a_pooler(postgresql: PostgreSQL, pgbouncer: PgBouncer) -> None:
    assert prepared(postgresql, postgresql.url) >= 1
    assert prepared(postgresql, pgbouncer.url) == 0


def test_values_are_numbered_as_they_come() -> None:
    text = "SELECT %(v_b)s::TEXT, %(v_a)s WHERE x LIKE 'a%%' AND y = %(v_b)s"
    assert by_number(text) == ("SELECT $1::TEXT, $2 WHERE x LIKE 'a%' AND y = $1", ("v_b", "v_a"))

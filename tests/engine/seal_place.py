"""A store with a table of the user in the same database, for the tests of lease.seal."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pymysql
import pytest
import sqlalchemy as sa

import fairlock
from tests.servers.sql import DATABASE, PASSWORD, USER, Database

STORES = ("postgresql", "mariadb", "sqlite")


class Place(NamedTuple):
    """A store with a table `journal` of the user in the same database."""

    kind: str
    url: str
    server: Database | None
    path: Path

    def driver(self, **options: Any) -> Any:
        """A connection of the driver that is in a transaction."""
        if self.kind == "sqlite":
            db = sqlite3.connect(self.path / "app.db", isolation_level=None, check_same_thread=False)
            db.execute(f"ATTACH '{self.path}/locks.db' AS locks")
            db.execute("BEGIN IMMEDIATE")
            return db
        if self.kind == "postgresql":
            return psycopg.connect(self.url, **options)
        assert self.server is not None
        host, _, port = self.server.address.partition(":")
        return pymysql.connect(
            host=host, port=int(port), user=USER, password=PASSWORD, database=DATABASE, ssl_disabled=True, **options
        )

    def engine_url(self, tasks: bool = False) -> str:
        if self.kind == "sqlite":
            return f"sqlite:///{self.path}/app.db"
        name = "psycopg" if self.kind == "postgresql" else "aiomysql" if tasks else "pymysql"
        return self.url.replace("://", f"+{name}://", 1)

    def engine(self) -> sa.Engine:
        engine = sa.create_engine(self.engine_url())
        if self.kind == "sqlite":
            sa.event.listen(engine, "connect", lambda db, _: db.execute(f"ATTACH '{self.path}/locks.db' AS locks"))
        return engine

    def written(self) -> int:
        with contextlib.closing(self.driver()) as db, contextlib.closing(db.cursor()) as cursor:
            cursor.execute("SELECT count(*) FROM journal")
            return int(cursor.fetchone()[0])


def make_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    server: Database | None = None
    url = f"sqlite:///{tmp_path}/locks.db"
    if request.param != "sqlite":
        server = request.getfixturevalue(request.param)
        assert server is not None
        url = server.url
    with fairlock.connect(url) as locks:
        locks.lock("first").acquire().release()  # makes the tables
    place = Place(request.param, url, server, tmp_path)
    with contextlib.closing(place.driver()) as db:
        db.cursor().execute("DROP TABLE IF EXISTS journal")
        db.cursor().execute("CREATE TABLE journal (fence BIGINT)")
        db.commit()
    return place

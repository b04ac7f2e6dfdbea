"""A stand-in for Oracle Database: H2 in its Oracle mode, behind the face of python-oracledb.

    server = OracleStandIn(); server.url; server.run("SELECT …"); server.kill(); server.restart(); server.stop()
    with server.instead_of_oracle(): fairlock.connect(server.url)

It is no server of Oracle's, and no test that uses it proves anything about one. It runs the very statements that an
Oracle would be sent, through SQLAlchemy's own dialect, and it refuses what Oracle and python-oracledb are documented to
refuse and H2 is not: see `oracle_strict`. One expression is replaced, the one that reads the clock: H2 has no
fraction of a second in an interval.

H2 is reached by its PostgreSQL protocol, for which there is a driver in the house; `oracle_face` gives each connection
the face of one of python-oracledb.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import oracledb
import psycopg

from . import programs
from .h2 import reach
from .oracle_face import connect, task_connect
from .sql import DATABASE, PASSWORD, USER, Database

FLAGS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m"]
NLS = [("NLS_CHARACTERSET", "AL32UTF8"), ("NLS_SORT", "GERMAN"), ("NLS_COMP", "BINARY")]
SET_UP = [
    "SET DB_CLOSE_DELAY -1", "SET DEFAULT_LOCK_TIMEOUT 20000",
    f"CREATE USER {USER} PASSWORD '{PASSWORD}' ADMIN",  # nobody else may connect by this protocol
    "CREATE TABLE nls_database_parameters (parameter VARCHAR2(64) PRIMARY KEY, value VARCHAR2(64))",
    *(f"INSERT INTO nls_database_parameters VALUES ('{name}', '{value}')" for name, value in NLS),
]  # fmt: skip


def missing() -> str:
    """Return what this machine lacks for the stand-in; '' if nothing."""
    if programs.find("java") is None:
        return "This machine has no java"
    return "" if jar() else "This checkout has no H2, the stand-in for Oracle"


def jar() -> Path | None:
    folder = programs.find_jars("h2", "h2-*.jar")
    return next(folder.glob("h2-*.jar"), None) if folder else None


class OracleStandIn(Database):
    scheme = "oracle"
    errors = (psycopg.Error, TimeoutError)

    def __init__(self) -> None:
        super().__init__("java")

    @property
    def url(self) -> str:
        return f"oracle://{USER}:{PASSWORD}@{self.address}/?service_name={DATABASE}"

    def make(self) -> None:
        self.data.mkdir()
        self.log.touch()

    def _command(self) -> list[str]:
        place = ["-pg", "-pgPort", str(self.port), "-ifNotExists", "-baseDir", str(self.data)]
        return ["java", *FLAGS, "-cp", str(jar()), "org.h2.tools.Server", *place]

    def connect(self, database: str = DATABASE) -> Any:
        return reach(self.port, "operator", PASSWORD, 5)

    def prepare(self) -> None:
        for text in SET_UP:
            self.run(text)

    def tables(self) -> list[str]:
        found = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'fairlock%'"
        return [name for (name,) in self.run(found)]

    def sessions(self) -> int:
        """Return the number of connections besides the operator's."""
        return int(self.run("SELECT count(*) FROM information_schema.sessions")[0][0]) - 1

    def end(self) -> None:
        self.cont()
        super().end()

    @contextmanager
    def instead_of_oracle(self) -> Iterator[None]:
        """Make python-oracledb connect to this server from now on."""
        with mock.patch.multiple(oracledb, connect=connect, connect_async=task_connect):
            yield

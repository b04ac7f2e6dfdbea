"""lease.seal with a connection of psycopg2, plain and by SQLAlchemy, in a process that has this driver."""

from __future__ import annotations

from tests.integrations.conftest import Project
from tests.servers.sql import PostgreSQL

PROGRAM = """
import sys
import threading
import time

import psycopg2
import psycopg2.extras
import sqlalchemy as sa

import fairlock

url = sys.argv[1]
locks, other = fairlock.connect(url), fairlock.connect(url)
db = psycopg2.connect(url)
cursor = db.cursor()
cursor.execute("DROP TABLE IF EXISTS journal")
cursor.execute("CREATE TABLE journal (step BIGINT)")
db.commit()

with locks.lock("a") as lease:
    cursor.execute("INSERT INTO journal VALUES (1)")
    lease.seal(db)
    lease.seal(db)
    db.commit()

lease = locks.lock("a").acquire()  # nobody gets in before a sealed transaction ends
cursor.execute("INSERT INTO journal VALUES (2)")
lease.seal(db)
evicted = threading.Event()
evict = threading.Thread(target=lambda: (other.evict("a", reason="a test", at_once=True), evicted.set()))
evict.start()
print("kept out:", not evicted.wait(0.5))
db.commit()
evict.join()

lease = locks.lock("b").acquire()  # a holder that was replaced cannot commit
other.evict("b", reason="a test", at_once=True)
cursor.execute("INSERT INTO journal VALUES (3)")
try:
    lease.seal(db)
    db.commit()
except fairlock.LeaseLost:
    print("lost")
    db.rollback()

rows = psycopg2.connect(url, cursor_factory=psycopg2.extras.RealDictCursor)
with locks.lock("c") as lease:
    rows.cursor().execute("INSERT INTO journal VALUES (4)")
    lease.seal(rows)
    rows.commit()
rows.autocommit = True
with locks.lock("c") as lease:
    try:
        lease.seal(rows)
    except fairlock.ConfigError as error:
        print("autocommit" in str(error))

engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg2://"))
with locks.lock("d") as lease, engine.begin() as connection:
    connection.execute(sa.text("INSERT INTO journal VALUES (5)"))
    lease.seal(connection)
cursor.execute("SELECT step FROM journal ORDER BY step")
print([step for step, in cursor.fetchall()])
"""


def test_a_transaction_of_psycopg2_is_sealed(project: Project, postgresql: PostgreSQL) -> None:
    project.write("sealed.py", PROGRAM)
    printed = [line for line in project.run("sealed.py", postgresql.url).splitlines() if not line.startswith("'")]
    assert printed == ["kept out: True", "lost", "True", "[1, 2, 4, 5]"]

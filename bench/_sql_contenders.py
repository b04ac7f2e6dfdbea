"""The contenders on SQL databases: fairlock, its own statements sent by hand, what one writes on an evening with the
locks of the database itself, and two libraries. Each is opened in the process that uses it."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from _contenders import Contender

import fairlock

POOL = "jobs"


class OnSql(Contender):
    def __init__(self, url: str) -> None:
        self.url = url

    def use(self, section: Callable[[], Any]) -> None:
        self.fresh = self.same = section


class Fairlock(OnSql):
    name = "fairlock"

    def open(self, folder: str) -> None:
        self.locks = locks = fairlock.connect(self.url)
        self.fresh = lambda: locks.lock("x")
        same = locks.lock("x")
        self.same = lambda: same

    def close(self) -> None:
        self.locks.close()


class ByPsycopg(OnSql):
    """The statements of fairlock with the texts that it writes, sent by psycopg with nothing around them."""

    name = "the same statements, psycopg"

    def open(self, folder: str) -> None:
        import psycopg

        with fairlock.connect(self.url) as locks:
            with locks.lock("raw"):
                held = self._row("raw")
            outside = self._row("raw")
            self.statement = locks._session.backend.store.dialect.write  # type: ignore[attr-defined]
        self.bodies = [held[1:3], outside[1:3]]
        self.score, self.version = outside[0], outside[3]
        raw = psycopg.RawCursor  # the statement has $1 for its first value
        self.db = psycopg.connect(self.url, autocommit=True, prepare_threshold=2, cursor_factory=raw)
        self.use(self._section)

    def _row(self, key: str) -> Any:
        import psycopg

        with psycopg.connect(self.url) as db:
            found = db.execute("SELECT score, owner, body, version FROM fairlock_locks WHERE key = %s", [key])
            return found.fetchone()

    def _write(self, owner: str, body: str) -> None:
        version = int.from_bytes(os.urandom(8)) >> 2
        values = {
            "v_key": "raw", "v_score": self.score, "v_owner": owner, "v_body": body, "v_version": version,
            "v_expected": self.version, "v_now": time.time_ns() // 1000 - 1000,
        }  # fmt: skip
        written = self.db.execute(self.statement.text, self.statement.fill(values)).fetchall()[0]
        assert written[5] == version, "it was refused"
        self.version = version

    @contextlib.contextmanager
    def _section(self) -> Iterator[None]:
        self._write(*self.bodies[0])
        yield
        self._write(*self.bodies[1])

    def close(self) -> None:
        self.db.close()


class AdvisoryAnew(OnSql):
    """As it is written where connections are not kept: the session ends, and with it the lock."""

    name = "advisory lock, new connection"

    def open(self, folder: str) -> None:
        self.use(self._section)

    @contextlib.contextmanager
    def _section(self) -> Iterator[None]:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute("SELECT pg_advisory_lock(43)")
            yield
            db.execute("SELECT pg_advisory_unlock(43)")


class Kept(OnSql):
    before, after, autocommit = "", "", True

    def open(self, folder: str) -> None:
        import psycopg

        self.db = psycopg.connect(self.url, autocommit=self.autocommit, prepare_threshold=2)
        self.use(lambda: self)

    def __enter__(self) -> None:
        self.db.execute(self.before)

    def __exit__(self, *_: object) -> None:
        self.db.execute(self.after)

    def close(self) -> None:
        self.db.close()


class AdvisoryKept(Kept):
    name = "advisory lock, kept connection"
    before, after = "SELECT pg_advisory_lock(42)", "SELECT pg_advisory_unlock(42)"


class ForUpdate(Kept):
    """A transaction that holds a row."""

    name = "SELECT FOR UPDATE"
    before, after, autocommit = "SELECT n FROM bench_rows WHERE n = 1 FOR UPDATE", "COMMIT", False


class Pals(OnSql):
    name = "pals"

    def open(self, folder: str) -> None:
        import pals

        self.locker = pals.Locker("bench", self.url.replace("postgresql://", "postgresql+psycopg2://"))
        same = self.locker.lock("x")
        self.fresh = lambda: self.locker.lock("x")
        self.same = lambda: same

    def close(self) -> None:
        self.locker.engine.dispose()


class Tooz(OnSql):
    name = "tooz"

    def open(self, folder: str) -> None:
        from tooz import coordination

        url = self.url.replace("mariadb://", "mysql://")
        self.coordinator = coordination.get_coordinator(url, f"bench-{os.getpid()}".encode())
        self.coordinator.start()
        same = self.coordinator.get_lock(b"x")
        self.fresh = lambda: self.coordinator.get_lock(b"x")
        self.same = lambda: same

    def close(self) -> None:
        self.coordinator.stop()


# -- workers on a pool


class Worker:
    """`take` an item and finish it; False if there was none."""

    name = "fairlock"

    def __init__(self, url: str) -> None:
        self.pool = fairlock.connect(url).pool(POOL, lease=60)

    def __call__(self) -> bool:
        item = self.pool.acquire(False)
        if item is None:
            return False
        item.done()
        return True


class RawWorker(Worker):
    """One statement to take with SKIP LOCKED and one to finish, by psycopg."""

    name = "SKIP LOCKED and an UPDATE, psycopg"

    def __init__(self, url: str) -> None:
        import psycopg

        self.db = psycopg.connect(url, autocommit=True, prepare_threshold=2)
        self.ticket = os.urandom(12).hex()

    def __call__(self) -> bool:
        found = self.db.execute(TAKE, [POOL, self.ticket]).fetchone()
        if found is None:
            return False
        self.db.execute(FINISH, [POOL, found[0], self.ticket, found[1]])
        return True


NOW = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"
TAKE = f"""
WITH one AS (SELECT pool, key FROM fairlock_items WHERE pool = %s AND score >= 0 AND score <= {NOW}
             ORDER BY score LIMIT 1 FOR UPDATE SKIP LOCKED)
UPDATE fairlock_items SET score = {NOW} + 60000000, ticket = %s, fence = greatest(fence + 1, {NOW}) FROM one
WHERE fairlock_items.pool = one.pool AND fairlock_items.key = one.key
RETURNING fairlock_items.key, fairlock_items.fence, fairlock_items.body"""
FINISH = """
UPDATE fairlock_items SET score = -1, ticket = '' WHERE pool = %s AND key = %s AND ticket = %s AND fence = %s"""

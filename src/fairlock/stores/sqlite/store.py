"""The embedded store: one SQLite file for all processes of a machine. Nothing to install, nothing to run.

A step is one autocommit statement, `UPDATE … WHERE key=? AND version=?`, so that there is no transaction in which a
process could be stopped or killed for long. BUSY is handled by our own back-off, in the runtime of the client.
`connection` has the settings and the traps of SQLite, `clock` the time, `listener_sockets` and `wait_for_wakeup` the
wake-ups, `maintenance` checkpoints and the sweep, `location` and `errors` what is refused and why.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import ConfigError, LockError
from ...rules.locks import Wakeup
from ..base import NEVER, ItemSnapshot, OutcomeUnknown, Pushed, Row, RowSnapshot, RowWrite, Runtime, Written
from ..jitter import jitter
from ..polling import Ahead, PollingStore, standing
from ..row_cache import decode
from . import clock, errors, fork_hooks, location
from .connection import SETTINGS, TABLES, Closed, Connection
from .listener_sockets import WakeupSockets
from .maintenance import GLANCE, Maintenance
from .wait_for_wakeup import WakeupWaiters

if TYPE_CHECKING:
    from ..user_transaction import UserTransaction
    from .pool_items import SqliteItemStore

UPDATE = "UPDATE fairlock_locks SET score=?, owner=?, body=?, version=? WHERE key=? AND version=?"
INSERT = (
    "INSERT INTO fairlock_locks (score, owner, body, version, key) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"
)
SELECT = "SELECT score, owner, body, version FROM fairlock_locks WHERE key=?"
SCAN = "SELECT key, score, owner, body, version FROM fairlock_locks WHERE key > ? ORDER BY key LIMIT 1000"
SCAN_BUSY = """SELECT key, score, owner, body, version, rowid FROM fairlock_locks WHERE rowid > ? AND owner IS NOT ''
    ORDER BY rowid LIMIT 1000"""  # by rowid: as they lie in the file, without a look at the index
FIRST_SCAN = SCAN.replace("key > ?", "key >= ?")
DELETE = "DELETE FROM fairlock_locks WHERE key=? AND version=?"
_ANYHOW = "CASE typeof({0}) WHEN 'integer' THEN {0} ELSE CAST({0} AS BLOB) END"  # of a text that may not be UTF-8
_COLUMNS = ", ".join(map(_ANYHOW.format, ("score", "owner", "body", "version")))
UNREADABLE = f"SELECT {_COLUMNS} FROM fairlock_locks WHERE key=?"
SCAN_UNREADABLE = f"SELECT CAST(key AS BLOB), {_COLUMNS} FROM fairlock_locks WHERE key > ? ORDER BY key LIMIT 1000"
SCAN_BUSY_UNREADABLE = f"""SELECT CAST(key AS BLOB), {_COLUMNS}, rowid FROM fairlock_locks
    WHERE rowid > ? AND owner IS NOT '' ORDER BY rowid LIMIT 1000"""
REPLACE = """UPDATE fairlock_locks SET score=?, owner=?, body=?, version=?
    WHERE key=? AND CAST(version AS BLOB) IS CAST(? AS BLOB)"""
UNLISTED = "SELECT 1 FROM fairlock_locks WHERE rowid > (SELECT max(rowid) FROM fairlock_locks) - 5000 AND +key=?"
LOOK = "SELECT version FROM fairlock_locks WHERE key=?"
CLAIM = "UPDATE fairlock_locks SET version=? WHERE key=?"

BUSY_TIMEOUT = 5.0  # seconds for which a step tries while others are writing
BATCH = 128  # rows in one statement; six values each, and some builds of SQLite take no more than 999
BATCHES_SINCE = (3, 35)  # the version of SQLite that has UPDATE ... FROM ... RETURNING
READ_MANY = "SELECT key, score, owner, body, version FROM fairlock_locks WHERE key IN ({})"
WRITE_MANY = """UPDATE fairlock_locks SET score=new.column2, owner=new.column3, body=new.column4, version=new.column5
    FROM (VALUES {}) AS new WHERE fairlock_locks.key=new.column1 AND fairlock_locks.version=new.column6
    RETURNING fairlock_locks.key"""

UNHURRIED = 0.001  # seconds since our last write: this is no tight loop
LOSSES = 2  # this many races lost in a row: even the odds
CHECK = 0.2  # seconds between two checks whether the files are still ours
SPINS = 3  # tries without a pause
NOBODY: frozenset[str] = frozenset()

_yield_cpu: Callable[[], None] = getattr(os, "sched_yield", lambda: None)

T = TypeVar("T")
_new = tuple.__new__  # makes a named tuple in half the time of its own constructor; every field must be given


class SqliteStore(PollingStore):
    scope = "machine"
    cache_ttl = 0.001  # an older row has likely changed if others use the lock
    reads_queues = True  # most writes from the cache would be refused, and each keeps other writers waiting
    has_nowait = True
    batch_size = BATCH if sqlite3.sqlite_version_info >= BATCHES_SINCE else 1

    def __init__(
        self,
        target: str | os.PathLike[str] | None,
        runtime: Runtime,
        *,
        busy_timeout: float | str | None = None,
        boot_id: str | None = None,
    ) -> None:
        """Name the file of the store (a path or an sqlite: URL; None: the default one). Touches nothing on disk.

        busy_timeout: for how many seconds a step tries when others are writing (5). boot_id: only for tests.
        """
        path, options = location.parse(target if target is not None else location.default_path())
        if busy_timeout is not None:
            options["busy_timeout"] = str(busy_timeout)
        self.busy_timeout = _read_busy_timeout(options) if options else BUSY_TIMEOUT
        boot = (lambda: boot_id) if boot_id else clock.boot_id
        self._listeners = WakeupSockets(lambda: db.place, boot)
        self._waiters = WakeupWaiters(self._listeners, runtime)
        super().__init__("sqlite:///" + path, runtime, self._waiters)
        self.path = self.keeper_key = path
        self._db = db = Connection(path, boot, self._listeners.another_boot_lives)
        self._maintenance = Maintenance(self._db, self._listeners)
        self._opening = threading.Lock()
        self._check_at = 0.0
        self._pid = os.getpid()
        self._closed = False
        self._wrote_at = 0.0
        self._blocking = runtime.blocking  # a task that blocks its loop stops the keeper, which ends snapshots
        self._lost: dict[str, int] = {}  # races for a row, lost in a row
        self._on_reset: Callable[[], None] = lambda: None
        fork_hooks.register(self)

    @property
    def items(self) -> "SqliteItemStore":
        """The items of pools."""
        from .pool_items import SqliteItemStore

        return SqliteItemStore(self)  # not kept: a cycle would keep a forgotten store alive

    def open_listener(self) -> str:
        if self.listener or self._closed:
            return self.listener
        try:
            self._open()  # first: it checks the location, and the rights to the file are those to the listener
        except LockError:
            return ""  # the next call raises it
        except sqlite3.Error as error:
            if not errors.is_busy(error):
                return ""
        with self._opening:
            self.listener = self._listeners.open()
            return self.listener

    def now(self) -> tuple[int, float] | None:
        db = self._db
        if db.cursor is None:
            return None
        at = self._clock()
        return db.now(), at

    # -- rows

    async def read(self, key: str, settle: bool = False) -> RowSnapshot:
        at = self._clock()
        if at >= self._check_at:
            await self._check(at)
        if self._lost and self._lost.get(key, 0) >= LOSSES:
            # A faster client has won every race so far, because it writes from its cache and we must read first. A new
            # version makes its cache stale: now it must read, too, and we are ahead.
            del self._lost[key]
            await self._run(self._db.change, CLAIM, (self._db.version(), key))
        return await self._read(key)

    async def _read(self, key: str) -> RowSnapshot:
        at, db = self._clock(), self._db
        try:
            rows = db.rows(SELECT, (key,))
        except (sqlite3.Error, Closed):
            rows = await self._run(self._select, SELECT, UNREADABLE, (key,))
        now = db.now()  # after the row, or the row could be from the future
        if not rows:
            return RowSnapshot(None, None, now, at)
        score, owner, body, version = rows[0]
        return RowSnapshot(Row(key, score, owner, body), version, now, at)

    def read_nowait(self, key: str) -> RowSnapshot | None:
        """Return the row if that takes no waiting and no maintenance is due; else None."""
        at = self._clock()
        if at >= self._check_at or self._maintenance.commits % GLANCE == GLANCE - 1:
            return None
        if self._lost and self._lost.get(key, 0) >= LOSSES:
            return None
        db = self._db
        with db.guard:
            cursor = db.cursor
            if cursor is None:
                return None
            db.end_snapshot()
            db.writes_in_row = 0
            try:
                rows = cursor.execute(SELECT, (key,)).fetchall()
            except (sqlite3.Error, UnicodeDecodeError):
                return None
        now = db.now()  # after the row, or the row could be from the future
        if not rows:
            return RowSnapshot(None, None, now, at)
        score, owner, body, version = rows[0]
        return _new(RowSnapshot, (_new(Row, (key, score, owner, body)), version, now, at))

    async def write(
        self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wakeup]
    ) -> Written | RowSnapshot:
        at = self._clock()
        if at >= self._check_at and await self._check(at):
            return await self.read(row.key)  # another file, perhaps another clock: start over
        key, score, owner, body = row
        db = self._db
        if expected is None:
            there: list[Any] = await self._run(db.rows, UNLISTED, (key,))
            if there and not await self._run(self._db.rows, LOOK, (key,)):
                # The row exists, and the index does not lead to it: a new row would grant the lock twice.
                raise errors.explain(errors.corrupt("its index is damaged"), db.real)
        version = db.version()
        values: tuple[object, ...] = (score, owner, body, version, key)
        if expected is not None:
            values = (score, owner, body, version, key, expected)
        try:
            done = db.change(UPDATE if expected is not None else INSERT, values)
        except (sqlite3.Error, Closed):
            done = await self._run(db.change, UPDATE if expected is not None else INSERT, values)
        self._raced(key, bool(done), woken, at)
        if not done:
            return await self._read(key)  # a claim would be in vain: the next try may come after a pause
        self._wrote_at = at
        await self.wrote()
        return Written(version, db.now(), at)  # the time must not be from before `at`, or a lease would count longer

    async def read_many(self, keys: Sequence[str]) -> list[RowSnapshot | OutcomeUnknown | LockError]:
        at = self._clock()
        if at >= self._check_at:
            await self._check(at)
        db = self._db
        marks = ", ".join("?" * len(keys))
        try:
            rows = await self._run(db.rows, READ_MANY.format(marks), tuple(keys))
        except LockError:
            return await super().read_many(keys)  # one of them is damaged: this shows which
        now = db.now()  # after the rows, or they could be from the future
        found = {row[0]: RowSnapshot(Row(*row[:4]), row[4], now, at) for row in rows}
        return [found.get(key) or RowSnapshot(None, None, now, at) for key in keys]

    async def write_many(self, writes: Sequence[RowWrite]) -> list[int | str | OutcomeUnknown | LockError | None]:
        at = self._clock()
        if at >= self._check_at and await self._check(at):
            return [None] * len(writes)  # another file, perhaps another clock: start over
        db = self._db
        versions = [db.version() for _ in writes]
        values: list[object] = []
        for one, version in zip(writes, versions, strict=True):
            values += (*one.row, version, one.expected)
        marks = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(writes))
        done = await self._run(db.rows, WRITE_MANY.format(marks), tuple(values))
        await self.wrote()
        written = {key for (key,) in done}
        return [version if one.row.key in written else None for one, version in zip(writes, versions, strict=True)]

    def write_nowait(
        self, row: Row, expected: int | str, now: int, woken: Sequence[Wakeup], at: float
    ) -> int | None:
        """Write if that takes no waiting and no maintenance is due. Return the new version; None: not written."""
        maintenance = self._maintenance
        if at >= self._check_at or maintenance.commits % GLANCE == GLANCE - 1:
            return None
        key, score, owner, body = row
        db = self._db
        version = db.version()
        with db.guard:
            cursor = db.cursor
            if cursor is None:
                return None
            if at - self._wrote_at > UNHURRIED:
                db.writes_in_row = 0
            elif db.writes_in_row >= db.enough and db.snapshot is None and self._blocking:
                db.keep_snapshot()
            try:
                done = cursor.execute(UPDATE, (score, owner, body, version, key, expected)).rowcount
            except (sqlite3.Error, UnicodeDecodeError):
                db.refused()
                return None
            db.writes_in_row += 1
        if self._lost or not done:
            self._raced(key, bool(done), woken, at)
            if not done:
                return None
        elif woken:
            self._send(woken, at)
        self._wrote_at = at
        maintenance.commits += 1
        return version

    def _raced(self, key: str, won: bool, woken: Sequence[Wakeup], at: float) -> None:
        """Count a race that was lost; after one that was won, send the wake-ups."""
        if not won:
            if len(self._lost) > 1000:
                self._lost.clear()
            self._lost[key] = self._lost.get(key, 0) + 1
            return
        self._lost.pop(key, None)
        if woken:
            self._send(woken, at)

    async def scan(self, prefix: str) -> list[RowSnapshot]:
        found: list[RowSnapshot] = []
        last = prefix
        await self._check(self._clock())
        while True:
            at = self._clock()
            scan, anyhow = (SCAN, SCAN_UNREADABLE) if found else (FIRST_SCAN, SCAN_UNREADABLE.replace(">", ">="))
            rows = await self._run(self._select, scan, anyhow, (last,))
            now = self._db.now()
            for key, score, owner, body, version in rows:
                key = _text(key)
                if not key.startswith(prefix):
                    return found
                found.append(RowSnapshot(Row(key, score, owner, body), version, now, at))
                last = key
            if len(rows) < 1000:
                return found

    async def scan_busy(self, prefix: str) -> list[RowSnapshot]:
        found: list[RowSnapshot] = []
        last = 0
        await self._check(self._clock())
        while True:
            at = self._clock()
            rows = await self._run(self._select, SCAN_BUSY, SCAN_BUSY_UNREADABLE, (last,))
            now = self._db.now()
            for key, score, owner, body, version, _ in rows:
                if (name := _text(key)).startswith(prefix):
                    found.append(RowSnapshot(Row(name, score, owner, body), version, now, at))
            if len(rows) < 1000:
                return found
            last = rows[-1][-1]

    def _select(self, sql: str, anyhow: str, values: tuple[object, ...]) -> list[Any]:
        """Return these rows; if a text in them is not UTF-8, as bytes, which are never decoded as a record."""
        try:
            return self._db.rows(sql, values)
        except sqlite3.OperationalError as error:
            if "decode to UTF-8" not in str(error):
                raise
        return self._db.rows(anyhow, values)

    async def replace(
        self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wakeup]
    ) -> Written | RowSnapshot:
        """Write as `write` does, over a row that cannot be read, whatever its version is."""
        at = self._clock()
        version = self._db.version()
        values = (row.score, row.owner, row.body, version, row.key, expected)
        if await self._run(self._db.change, REPLACE, values):
            return Written(version, self._db.now(), at)
        return await self.read(row.key)

    async def delete(self, key: str, expected: int | str) -> bool:
        return bool(await self._run(self._db.change, DELETE, (key, expected)))

    # -- errors of SQLite

    async def _run(self, statement: Callable[..., T], *args: Any) -> T:
        """Run one statement. Open the database first if needed, and repeat while another client is writing."""
        tries = 0
        end: float | None = None
        while True:
            try:
                if self._db.cursor is None:
                    self._open()
                return statement(*args)
            except Closed:
                continue  # a fork came between
            except sqlite3.Error as error:
                if not errors.is_busy(error):
                    if errors.is_full(error) and not tries:
                        tries = 1
                        if await self.runtime.call(self._maintenance.checkpoint):  # perhaps the log takes the space
                            continue
                    if errors.is_lasting(error):
                        self._db.close()  # whatever it was, open it again
                    raise errors.explain(error, self._db.real) from error
            tries += 1
            if tries <= SPINS:
                continue
            now = self._clock()
            if end is None:
                end = now + self.busy_timeout
            elif now >= end:
                raise errors.stuck(self._db.real, self.busy_timeout)
            await self.runtime.sleep(jitter() * min(20e-6 * 2 ** min(tries - SPINS, 6), 1e-3))

    def _open(self) -> None:
        if self._closed:
            raise ConfigError(f"{self.where} was closed. Connect again.")
        before = self._db.file
        self._db.open()
        self._check_at = self._clock() + CHECK
        if before is not None and self._db.file != before:
            self._on_reset()  # replaced while it was closed for a fork or after an error

    async def lock_row(self, key: str, transaction: "UserTransaction", lease: float) -> RowSnapshot:
        from .lock_in_user_transaction import lock_row

        return await lock_row(self, key, transaction)

    async def lock_item(self, pool: str, key: str, transaction: "UserTransaction", lease: float) -> ItemSnapshot:
        from .lock_in_user_transaction import READ_ITEM, lock

        return self.items._seen(pool, *await lock(self, READ_ITEM, {"v_pool": pool, "v_key": key}, transaction))

    async def statement(self, run: Callable[[Connection], T]) -> T:
        """Run one statement of the item store, as all others are run."""
        at = self._clock()
        if at >= self._check_at:
            await self._check(at)
        return await self._run(run, self._db)

    async def wrote(self) -> None:
        """Count a commit of the item store: the log grows with that, too."""
        maintenance = self._maintenance
        maintenance.commits += 1
        if not maintenance.commits % GLANCE and maintenance.is_urgent() and not maintenance.start_checkpoint():
            await self.runtime.call(maintenance.checkpoint)  # writers wait: the log grows faster than it is cut

    async def _check(self, at: float) -> bool:
        """Check whether the files are still ours. If not, our writes go nowhere: open it again, and log a warning."""
        self._check_at = at + CHECK
        if replaced := self._db.replaced():
            self._db.close()
            self._on_reset()  # first: another client may open another file although we cannot
            await self._run(lambda: None)
        with self._opening:  # or a close in between would leave the new socket open
            self._listeners.heal()
        if not replaced:
            return False
        import logging

        logging.getLogger("fairlock").warning(
            "%s was deleted or replaced while in use; it was opened again, and all locks held in the old one are lost",
            self._db.real,
        )
        return True

    def notify_reset(self, call: Callable[[], None]) -> None:
        self._on_reset = call

    # -- waiting

    async def wake(self, woken: Sequence[Wakeup]) -> None:
        self._send(woken, self._wrote_at)

    def _send(self, woken: Sequence[Wakeup], at: float) -> None:
        for wake in woken:
            if wake.listener:
                self._listeners.send(wake.listener, f"{wake.ticket} {wake.place} {wake.fence}")
        if at - self._wrote_at > UNHURRIED and self.runtime.blocking:
            # The process that we woke is often put on this CPU and would wait until we sleep (0.3 of 1.0 ms on a busy
            # machine). In a tight loop it is the opposite: then it pays to get back into the queue first.
            _yield_cpu()

    async def wait_for_wakeup(self, key: str, ticket: str, timeout: float, listeners: Collection[str]) -> Pushed | None:
        if self.open_listener():
            look = partial(self.look_for_grant, key, ticket)
            return await self._waiters.wait_at(ticket, timeout, listeners, look)
        return await super().wait_for_wakeup(key, ticket, timeout, listeners)

    async def look_for_grant(self, key: str, ticket: str, age: float) -> Pushed | Ahead:
        """Read how this ticket stands. The row is read and decoded only if its version has changed."""
        at = self._clock()
        if at >= self._check_at:
            await self._check(at)
        known = self.row_cache.get(key)
        rows = await self._run(self._db.rows, LOOK, (key,))
        try:
            if known is None or not rows or rows[0][0] != known.version:
                rows = await self._run(self._select, SELECT, UNREADABLE, (key,))
                if not rows:
                    return Pushed(ticket)
                score, owner, body, version = rows[0]
                seen = RowSnapshot(Row(key, score, owner, body), version, self._db.now(), at)
                known = self.row_cache.show(key, seen, decode(key, body))
            return standing(known._replace(now=0), ticket)  # a wake-up or the keeper ends the wait, not the time
        except ValueError:
            return Pushed(ticket)  # the next call raises it

    async def attend(self) -> float:
        return 0.0 if self.open_listener() else NEVER

    def take_wakeups(self, tickets: Iterable[str]) -> Collection[str]:
        return self._waiters.take_wakeups(tickets)

    def liveness(self, listeners: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        dead = NOBODY
        for e in listeners:
            if self._listeners.is_dead(e):
                dead |= {e}
        return NOBODY, dead

    # -- maintenance and the end

    async def tidy(self) -> None:
        if self._db.cursor is not None:
            await self._check(self._clock())
            await self.runtime.call(self._maintenance.tidy)

    async def ping(self) -> None:
        await self._check(self._clock())
        await self._run(self._db.rows, "SELECT boot FROM fairlock_meta")

    async def close(self) -> None:
        self._closed = True
        self._waiters.wake_all()
        try:
            if self._db.cursor is not None and self._maintenance.is_due_at_the_end():
                await self.runtime.call(self._maintenance.finish)
        finally:
            with self._opening:
                self._listeners.close()
                self.listener = ""
            self._db.close()
            await self.runtime.call(self._maintenance.wait_for_checkpoint)
            self._db.place = None

    def abandon(self) -> bool:
        """Close for a process that ends now: leave the database as a killed process does, but remove our listener.

        The last client to close it would empty the log and wait for the disk, and so would the next one to open it;
        `run` in a loop would do nothing else. False if the log is long: then close.
        """
        if self._maintenance.is_due_at_the_end():
            self._maintenance.finish()
        if not self._maintenance.is_short():
            return False
        with self._opening:
            self._listeners.close()
            self.listener = ""
        return True

    def __del__(self) -> None:
        """A client that holds nothing may be dropped without being closed, in silence."""
        try:
            self._listeners.drop()  # the file stays, as proof that this client is gone
            self._db.drop()
        except Exception:
            pass  # at the end of the interpreter anything may be missing

    def before_fork(self) -> bool:
        return self._db.before_fork()

    def after_fork(self) -> None:
        self._db.after_fork()

    def forked(self) -> None:
        """Called by `fork_hooks` and by the client, in any order: the first call does the work."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._opening = threading.Lock()
            self._db.in_child()
            self._listeners.in_child()
            self.listener = ""
            super().forked()
            self._lost.clear()

    def liveness_fd(self) -> int | None:
        return self._listeners.socket.fileno() if self.open_listener() and self._listeners.socket is not None else None

    async def doctor(self) -> list[tuple[str, str]]:
        from .doctor import examine

        return await examine(self)

    def schema(self) -> str:
        from .pool_items import ITEMS

        lines = [f"-- {self.where}: created by the first use, nothing to do by hand", "PRAGMA page_size=2048;"]
        lines += ["PRAGMA journal_mode=WAL;", *(s + ";" for s in SETTINGS), *(t + ";" for t in (*TABLES, *ITEMS))]
        return "\n".join(lines)


def _text(key: object) -> str:
    """Return a key as text, whatever a damaged file has in its place."""
    if type(key) is str:
        return key
    return str(key, "utf-8", "replace") if type(key) is bytes else str(key)


def _read_busy_timeout(options: dict[str, str]) -> float:
    from .. import split_url  # only here: it takes long to import

    given = split_url.options(options.items(), ("busy_timeout",), "sqlite")
    return split_url.seconds(given, "busy_timeout", BUSY_TIMEOUT, 86400, zero=True)

"""The embedded store: one SQLite file for all processes of a machine. Nothing to install, nothing to run.

A step is one autocommit statement, `UPDATE … WHERE key=? AND version=?`, so that there is no transaction in which a
process could be stopped or killed for long. BUSY is answered by our own back-off, in the colour of the client.
`connection` has the settings and the traps of SQLite, `clock` the time, `ears` and `waiting` the wake-ups,
`housekeeping` checkpoints and the sweep, `place` and `sentences` what is refused and how it is said.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ...doorman import Wake, wire
from ...errors import ConfigError, LockError
from ..contract import Colour, Pushed, Row, Seen, Written
from . import clock, forks, place, sentences
from .connection import SETTINGS, TABLES, Closed, Connection
from .ears import Ears
from .housekeeping import GLANCE, Housekeeping
from .waiting import WaitingRoom

if TYPE_CHECKING:
    from .shelf import SqliteShelf

UPDATE = "UPDATE holdfast_locks SET score=?, owner=?, body=?, version=? WHERE key=? AND version=?"
INSERT = (
    "INSERT INTO holdfast_locks (score, owner, body, version, key) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"
)
SELECT = "SELECT score, owner, body, version FROM holdfast_locks WHERE key=?"
SCAN = "SELECT key, score, owner, body, version FROM holdfast_locks WHERE key > ? ORDER BY key LIMIT 1000"
FIRST_SCAN = SCAN.replace("key > ?", "key >= ?")
DELETE = "DELETE FROM holdfast_locks WHERE key=? AND version=?"
_ANYHOW = "CASE typeof({0}) WHEN 'integer' THEN {0} ELSE CAST({0} AS BLOB) END"  # of a text that may not be UTF-8
_COLUMNS = ", ".join(map(_ANYHOW.format, ("score", "owner", "body", "version")))
UNREADABLE = f"SELECT {_COLUMNS} FROM holdfast_locks WHERE key=?"
SCAN_UNREADABLE = f"SELECT CAST(key AS BLOB), {_COLUMNS} FROM holdfast_locks WHERE key > ? ORDER BY key LIMIT 1000"
REPLACE = """UPDATE holdfast_locks SET score=?, owner=?, body=?, version=?
    WHERE key=? AND CAST(version AS BLOB) IS CAST(? AS BLOB)"""
UNLISTED = "SELECT 1 FROM holdfast_locks WHERE rowid > (SELECT max(rowid) FROM holdfast_locks) - 5000 AND +key=?"
LOOK = "SELECT version FROM holdfast_locks WHERE key=?"
CLAIM = "UPDATE holdfast_locks SET version=? WHERE key=?"

UNHURRIED = 0.001  # seconds since our last write: this is no tight loop
LOSSES = 2  # this many races lost in a row: even the odds
CHECK = 0.2  # seconds between two looks whether the files are still ours
SPINS = 3  # tries without a pause
NOBODY: frozenset[str] = frozenset()

_yield_cpu: Callable[[], None] = getattr(os, "sched_yield", lambda: None)

T = TypeVar("T")


class SqliteStore:
    span = "machine"
    trust = 0.001  # an older row has likely changed if anybody waits: reading it first is cheaper than a conflict
    skew = 0.0

    def __init__(
        self,
        target: str | os.PathLike[str] | None,
        colour: Colour,
        *,
        busy_timeout: float | str | None = None,
        boot_id: str | None = None,
    ) -> None:
        """The store in this file (a path or an sqlite: URL; None: the default one). Touches nothing on disk.

        busy_timeout: for how many seconds a step tries when others are writing (5). boot_id: only for tests.
        """
        path, options = place.parse(target if target is not None else place.default_path())
        given = options.pop("busy_timeout", None)
        if options:
            raise ConfigError(
                f"sqlite: does not know the parameter {next(iter(options))!r}. There is only busy_timeout (seconds)."
            )
        self.path = path
        self.where = "sqlite:///" + path
        self.patience = _seconds(busy_timeout if busy_timeout is not None else given, 5.0)
        # Whoever lets somebody in tells it so after the write, which is as good as from inside it. But such a grant has
        # to be confirmed within a second or two, and an event loop may be blocked for longer.
        self.pushes_grants = colour.blocking
        self._colour = colour
        self._clock = colour.clock
        boot = (lambda: boot_id) if boot_id else clock.boot_id
        self._ears = Ears(path, boot)
        self._room = WaitingRoom(self._ears, colour)
        self._db = Connection(path, boot, self._ears.another_boot_lives)
        self._keeping = Housekeeping(self._db, self._ears)
        self._opening = threading.Lock()
        self._check_at = 0.0
        self._pid = os.getpid()
        self._closed = False
        self._wrote_at = 0.0
        self._lost: dict[str, int] = {}  # races for a row, lost in a row
        self._on_reset: Callable[[], None] | None = None
        forks.follow(self)

    @property
    def items(self) -> "SqliteShelf":
        """Where the items of pools are."""
        from .shelf import SqliteShelf

        return SqliteShelf(self)  # not kept: whoever forgets the store is to forget all of it

    @property
    def ear(self) -> str:
        return self._ears.name or self._make_ear()

    def _make_ear(self) -> str:
        if self._closed:
            return ""
        try:
            self._open()  # first: it checks the place, and the rights to the file are those to the ear
        except LockError:
            return ""  # whoever asks the store next will be told
        except sqlite3.Error as error:
            if not sentences.is_busy(error):
                return ""
        with self._opening:
            return self._ears.open()

    def now(self) -> tuple[int, float] | None:
        db = self._db
        if db.cursor is None:
            return None
        at = self._clock()
        return db.now(), at

    # -- rows

    async def read(self, key: str, settle: bool = False) -> Seen:
        at = self._clock()
        if at >= self._check_at:
            await self._check(at)
        if self._lost and self._lost.get(key, 0) >= LOSSES:
            # Somebody quicker has won every race so far, for it writes from what it knows and we must read first. A new
            # version makes its knowledge stale: now it has to read, too, and we have the start.
            del self._lost[key]
            await self._run(self._db.change, CLAIM, (self._db.version(), key))
        db = self._db
        try:
            rows = db.rows(SELECT, (key,))
        except (sqlite3.Error, Closed):
            rows = await self._run(self._select, SELECT, UNREADABLE, (key,))
        now = db.now()  # after the row, or the row could be from the future
        if not rows:
            return Seen(None, None, now, at)
        score, owner, body, version = rows[0]
        return Seen(Row(key, score, owner, body), version, now, at)

    def get(self, key: str) -> Seen | None:
        """The row, if there is nothing else to do and nobody to wait for."""
        at = self._clock()
        if at >= self._check_at or self._keeping.commits % GLANCE == GLANCE - 1:
            return None
        if self._lost and self._lost.get(key, 0) >= LOSSES:
            return None
        db = self._db
        try:
            rows = db.rows(SELECT, (key,))
        except (sqlite3.Error, Closed):
            return None
        now = db.now()
        if not rows:
            return Seen(None, None, now, at)
        score, owner, body, version = rows[0]
        return Seen(Row(key, score, owner, body), version, now, at)

    async def write(
        self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wake]
    ) -> Written | Seen:
        at = self._clock()
        if at >= self._check_at and await self._check(at):
            return await self.read(row.key)  # another file, perhaps another clock: begin anew
        key, score, owner, body = row
        db = self._db
        if expected is None:
            there: list[Any] = await self._run(db.rows, UNLISTED, (key,))
            if there and not await self._run(self._db.rows, LOOK, (key,)):
                # It is there, and the index does not lead to it: a new row would let in somebody else.
                raise sentences.explain(sentences.corrupt("its index is damaged"), db.real)
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
            return await self.read(key)
        self._wrote_at = at
        await self.wrote()
        return Written(version, db.now(), at)  # the time must not be from before `at`, or a lease would count longer

    def put(
        self, key: str, score: int, owner: str, body: str, expected: int, woken: Sequence[Wake], at: float, now: int = 0
    ) -> int | None:
        """Write, if there is nothing else to do and nobody to wait for. The new version; None: it was not written."""
        keeping = self._keeping
        if at >= self._check_at or keeping.commits % GLANCE == GLANCE - 1:
            return None
        db = self._db
        version = db.version()
        try:
            done = db.change(UPDATE, (score, owner, body, version, key, expected))
        except (sqlite3.Error, Closed):
            return None
        if woken or self._lost or not done:
            self._raced(key, bool(done), woken, at)
        if not done:
            return None
        self._wrote_at = at
        keeping.commits += 1
        return version

    def _raced(self, key: str, won: bool, woken: Sequence[Wake], at: float) -> None:
        """Somebody was quicker, and that is counted; or nobody was, and those whom we let in are told."""
        if not won:
            if len(self._lost) > 1000:
                self._lost.clear()
            self._lost[key] = self._lost.get(key, 0) + 1
            return
        self._lost.pop(key, None)
        if woken:
            self._send(woken, at)

    async def scan(self, prefix: str) -> list[Seen]:
        found: list[Seen] = []
        last = prefix
        await self._check(self._clock())
        while True:
            at = self._clock()
            scan, anyhow = (SCAN, SCAN_UNREADABLE) if found else (FIRST_SCAN, SCAN_UNREADABLE.replace(">", ">="))
            rows = await self._run(self._select, scan, anyhow, (last,))
            now = self._db.now()
            for key, score, owner, body, version in rows:
                if type(key) is not str:
                    key = str(key, "utf-8", "replace") if type(key) is bytes else str(key)
                if not key.startswith(prefix):
                    return found
                found.append(Seen(Row(key, score, owner, body), version, now, at))
                last = key
            if len(rows) < 1000:
                return found

    def _select(self, sql: str, anyhow: str, values: tuple[object, ...]) -> list[Any]:
        """These rows; if a text in them is not UTF-8, as bytes, which nobody takes for a record."""
        try:
            return self._db.rows(sql, values)
        except sqlite3.OperationalError as error:
            if "decode to UTF-8" not in str(error):
                raise
        return self._db.rows(anyhow, values)

    async def replace(
        self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wake]
    ) -> Written | Seen:
        """As `write`, over a row that cannot be read, whatever stands there as its version."""
        at = self._clock()
        version = self._db.version()
        values = (row.score, row.owner, row.body, version, row.key, expected)
        if await self._run(self._db.change, REPLACE, values):
            return Written(version, self._db.now(), at)
        return await self.read(row.key)

    async def delete(self, key: str, expected: int | str) -> bool:
        return bool(await self._run(self._db.change, DELETE, (key, expected)))

    # -- SQLite says no

    async def _run(self, statement: Callable[..., T], *args: Any) -> T:
        """Run one statement, opening the database first if need be, and again while somebody else is writing."""
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
                if not sentences.is_busy(error):
                    if sentences.is_full(error) and not tries:
                        tries = 1
                        if await self._colour.call(self._keeping.checkpoint):  # perhaps the log takes the room
                            continue
                    if sentences.is_lasting(error):
                        self._db.close()  # whatever it was, begin anew
                    raise sentences.explain(error, self._db.real) from error
            tries += 1
            if tries <= SPINS:
                continue
            now = self._clock()
            if end is None:
                end = now + self.patience
            elif now >= end:
                raise sentences.stuck(self._db.real, self.patience)
            await self._colour.sleep(_jitter() * min(20e-6 * 2 ** min(tries - SPINS, 6), 1e-3))

    def _open(self) -> None:
        if self._closed:
            raise ConfigError(f"{self.where} was closed. Connect again.")
        before = self._db.file
        self._db.open()
        self._check_at = self._clock() + CHECK
        if before is not None and self._db.file != before:
            self._reset()  # replaced while it was closed for a fork or after an error

    def client_clock(self) -> float:
        return self._clock()

    async def statement(self, run: Callable[[Connection], T]) -> T:
        """Run one statement of the shelf, as all others are run."""
        at = self._clock()
        if at >= self._check_at:
            await self._check(at)
        return await self._run(run, self._db)

    async def wrote(self) -> None:
        """The shelf has written: the log grows with that, too."""
        keeping = self._keeping
        keeping.commits += 1
        if not keeping.commits % GLANCE and keeping.is_urgent():
            await self._colour.call(keeping.checkpoint)

    async def _check(self, at: float) -> bool:
        """Every now and then: are the files still ours? If not, what we write goes nowhere: begin anew, and say so."""
        self._check_at = at + CHECK
        self._ears.heal()
        if not self._db.replaced():
            return False
        self._db.close()
        self._reset()  # first: somebody else may open another file although we cannot
        await self._run(lambda: None)
        import logging

        logging.getLogger("holdfast").warning(
            "%s was deleted or replaced while in use; it was opened anew, and what was held in the old one is lost",
            self._db.real,
        )
        return True

    def notify_reset(self, call: Callable[[], None]) -> None:
        self._on_reset = call

    def _reset(self) -> None:
        if self._on_reset is not None:
            self._on_reset()

    # -- waiting

    async def wake(self, woken: Sequence[Wake]) -> None:
        self._send(woken, self._wrote_at)

    def _send(self, woken: Sequence[Wake], at: float) -> None:
        for wake in woken:
            if wake.ear:
                self._ears.send(wake.ear, f"{wake.ticket} {wake.place} {wake.fence}")
        if at - self._wrote_at > UNHURRIED and self._colour.blocking:
            # The one we woke is often put on this very CPU and would wait for us to fall asleep (0.3 of 1.0 ms on a
            # busy machine). In a tight loop it is the other way round: then it pays to get back in line first.
            _yield_cpu()

    def wake_here(self, tickets: Collection[str]) -> None:
        self._room.wake_here(tickets)

    async def changed(self, key: str, ticket: str, timeout: float, ears: Collection[str]) -> Pushed | None:
        known: int | None = None
        ahead = 0

        async def look() -> int:
            nonlocal known, ahead
            at = self._clock()
            if at >= self._check_at:
                await self._check(at)
            rows = await self._run(self._db.rows, LOOK, (key,))
            if rows and rows[0][0] == known:
                return ahead
            rows = await self._run(self._select, SELECT, UNREADABLE, (key,))
            if not rows:
                return -1
            try:
                standing = _standing(rows[0][2], ticket)
            except ValueError:
                return -1  # whoever asks will be told
            if standing is None:
                return -1
            known, ahead = rows[0][3], standing
            return ahead

        room = self._room
        return await (room.wait(ticket, timeout, ears, look) if self.ear else room.poll(ticket, timeout, look))

    def hinted(self, tickets: Iterable[str]) -> Collection[str]:
        return self._room.hinted(tickets)

    def silent(self, ears: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        dead = [e for e in ears if self._ears.is_dead(e)]
        return NOBODY, frozenset(dead) if dead else NOBODY

    # -- housekeeping and the end

    async def tidy(self) -> None:
        if self._db.cursor is not None:
            await self._check(self._clock())
            await self._colour.call(self._keeping.tidy)

    async def ping(self) -> None:
        await self._check(self._clock())
        await self._run(self._db.rows, "SELECT boot FROM holdfast_meta")

    async def close(self) -> None:
        self._closed = True
        self._room.wake_all()
        try:
            if self._db.cursor is not None and self._keeping.is_due_at_the_end():
                await self._colour.call(self._keeping.finish)
        finally:
            with self._opening:
                self._ears.close()
            self._db.close()

    def abandon(self) -> bool:
        """For a process that ends now: leave the database as one that is killed does, but take our ear away.

        The last one to close it would empty the log and wait for the disk, and so would the next one to open it; `run`
        in a loop would do nothing else. False if the log is long enough to be worth it: then close.
        """
        if self._keeping.is_due_at_the_end():
            self._keeping.finish()
        if not self._keeping.is_short():
            return False
        with self._opening:
            self._ears.close()
        return True

    def __del__(self) -> None:
        """A client that holds nothing may be forgotten without being closed, in silence."""
        try:
            self._ears.drop()  # the file stays, as proof that this client is gone
            self._db.drop()
        except Exception:
            pass  # at the end of the interpreter anything may be missing

    def before_fork(self) -> bool:
        return self._db.before_fork()

    def after_fork(self) -> None:
        self._db.after_fork()

    def forked(self) -> None:
        """Called by the hook of `forks` and by the client, in any order: the first one does it."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._opening = threading.Lock()
            self._db.in_child()
            self._ears.in_child()
            self._room.reset()
            self._lost.clear()

    def beacon(self) -> int | None:
        return self._ears.socket.fileno() if self.ear and self._ears.socket is not None else None

    async def doctor(self) -> list[tuple[str, str]]:
        from .doctor import examine

        return await examine(self)

    def schema(self) -> str:
        from .shelf import ITEMS

        lines = [f"-- {self.where}: made by the first use, nothing to do by hand", "PRAGMA page_size=2048;"]
        lines += ["PRAGMA journal_mode=WAL;", *(s + ";" for s in SETTINGS), *(t + ";" for t in (*TABLES, *ITEMS))]
        return "\n".join(lines)


def _standing(body: str, ticket: str) -> int | None:
    """How many stand before this ticket, at a door or in the line of a pool; None if it is not there."""
    if type(body) is not str or not body.startswith('["line'):
        return wire.decode(body).standing(ticket)
    from ...pool.wire import decode_line

    line = decode_line(body)
    return 0 if any(w.ticket == ticket for w in line.watchers) else line.standing(ticket)


def _jitter() -> float:
    return int.from_bytes(os.urandom(2)) / 65536


def _seconds(value: float | str | None, default: float) -> float:
    if value is None:
        return default
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = -1.0
    if not 0 <= seconds < 86400:
        raise ConfigError(f"busy_timeout={value} is not a number of seconds from 0 to a day.")
    return seconds

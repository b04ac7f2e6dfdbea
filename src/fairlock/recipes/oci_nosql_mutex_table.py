"""NoSQLTasks: mutexes with a payload as rows of a NoSQL table, for a table that other programs use in the same way.

    key     the name
    score   when it was last taken or updated, in microseconds; 0 = never, -1 = released
    owner   a label; it decides nothing
    body    anything that is JSON

A mutex is free when its score is less than now minus `timeout_seconds`. A client acquires it by writing a new score, on
condition that the row still has the etag that the client has read; the etag of the new row is its proof of ownership,
and each update and the release need it. So an expired mutex is still held until another client acquires it.

There is no ticket in the row. A write whose reply was lost is found again by its score, whose last three digits are
random, and its owner. The time is the table's own, read before anything is acquired by it.
"""

from __future__ import annotations

import json
import os
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, NamedTuple

from ..engine.run_sync import run
from ..errors import ConfigError, StoreError
from ..stores.base import OutcomeUnknown
from ..sync.runtime import ThreadRuntime

if TYPE_CHECKING:
    from oci.nosql import NosqlClient

RELEASED = -1
CANDIDATES = 16
TRIES = 5  # of one write without a reply, or of one acquire that others win
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between two polls of a waiter

NOW = "SELECT current_time() AS now FROM {table} t"
FREE = "DECLARE $before LONG; SELECT t.key, t.score FROM {table} t WHERE t.score >= 0 AND t.score < $before"

Mutex = tuple[str, str]
"""A held mutex: its name and its etag."""


class Task(NamedTuple):
    """A row of the table."""

    key: str
    score: int
    owner: str | None
    body: Any
    etag: str


class NoSQLTasks:
    """Mutexes in a table of OCI's NoSQL service, with the columns key, score, owner and body.

        tasks = NoSQLTasks(client=nosql, table_name_or_id="ocid1.nosqltable…", owner="web-3")
        tasks.create("report")
        mutex = tasks.acquire(timeout=10)          # any that is free
        mutex = tasks.update(mutex, body={"done": 3})
        tasks.release(mutex)

    `timeout_seconds`: how long a mutex stays held without an update. Nothing is renewed by itself. A table by its name
    is searched for in `compartment_id`, or in the root compartment; an OCID needs none. The client's own retries and
    circuit breaker are not used. Errors are StoreError and ConfigError.
    """

    def __init__(
        self,
        client: NosqlClient,
        table_name_or_id: str,
        owner: str | None = None,
        timeout_seconds: float = 60,
        compartment_id: str | None = None,
    ) -> None:
        if timeout_seconds <= 0:
            raise ConfigError(f"timeout_seconds must be more than 0, not {timeout_seconds}.")
        try:
            from ..stores.oci_nosql import open_table
        except ImportError:
            raise ConfigError("NoSQLTasks needs the driver: pip install 'fairlock[oci]'.") from None
        self.owner = owner
        self.timeout_seconds = timeout_seconds
        self._table = open_table(client, table_name_or_id, compartment_id, ThreadRuntime())

    def create(self, lock_id: str, owner: str | None = None, body: Any = None) -> bool:
        """Create a free mutex. Return False if there is one of that name."""
        new = {"key": _name(lock_id), "score": 0, "owner": owner or self.owner, "body": _as_kept(body)}
        return self._put(new, None) is not None

    def acquire(
        self, timeout: float = 0, lock_id: str | None = None, owner: str | None = None, body: Any = None
    ) -> Mutex | None:
        """Acquire this mutex, or any that is free; wait at most `timeout` seconds. Return the mutex, or None.

        A named one that does not exist yet is waited for, too, and a released one can be acquired by its name.
        """
        if lock_id is not None:
            _name(lock_id)
        runtime = self._table.runtime
        end, pause = runtime.clock() + timeout, FIRST_PAUSE
        while True:
            got = self._take_any(owner, body) if lock_id is None else self._take(lock_id, self._now(), owner, body)
            left = end - runtime.clock()
            if got is not None or left <= 0:
                return got
            run(runtime.sleep(min(pause, left)))
            pause = min(pause * 2, LONGEST_PAUSE)

    def update(self, lock: Mutex | None, owner: str | None = None, body: Any = None) -> Mutex | None:
        """Keep it for another `timeout_seconds`. Return the new mutex; None if another client has acquired it."""
        return self._change(lock, None, owner, body)

    def release(self, lock: Mutex | None, owner: str | None = None, body: Any = None) -> Mutex | None:
        """Release it: a search does not find it any more. None if another client has acquired it."""
        return self._change(lock, RELEASED, owner, body)

    def read(self, key: str) -> Task | None:
        """Return the row of the mutex; None if there is none."""
        kept = run(self._table.get(_name(key)))
        if kept.value is None or kept.etag is None:
            return None
        try:
            value = kept.value
            return Task(value["key"], int(value["score"]), value["owner"], value["body"], kept.etag)
        except KeyError as missing:
            columns = "key STRING, score NUMBER, owner STRING, body JSON"
            raise ConfigError(f"{self._table.where} has no column {missing}. It needs: {columns}.") from None

    # -- steps

    def _now(self) -> int | None:
        """Return the table's time in microseconds; None if it is empty, because then no row carries the time."""
        from ..stores.oci_nosql.clock import micros

        found = run(self._table.query(NOW, {}, most=1))
        return micros(str(found[0]["now"])) + int.from_bytes(os.urandom(2)) % 1000 if found else None

    def _take_any(self, owner: str | None, body: Any) -> Mutex | None:
        for turn in range(TRIES):
            now = self._now()
            if now is None:
                return None
            found = run(self._table.query(FREE, {"$before": self._before(now)}))  # which the service cannot sort
            if not found:
                return None
            lowest = nsmallest(CANDIDATES, found, key=lambda row: (row["score"], row["key"]))
            # The first one; after that any of them, or two clients that try the same one disturb each other.
            one = lowest[os.urandom(1)[0] % len(lowest) if turn else 0]
            got = self._take(one["key"], now, owner, body, search=True)
            if got is not None:
                return got
        return None

    def _take(
        self, key: str, now: int | None, owner: str | None, body: Any, search: bool = False
    ) -> Mutex | None:
        task = self.read(key)
        if task is None or now is None or task.score >= self._before(now) or (search and task.score < 0):
            return None
        return self._write(task, now, owner, body)

    def _change(self, lock: Mutex | None, score: int | None, owner: str | None, body: Any) -> Mutex | None:
        if lock is None:
            return None
        key, etag = lock
        task = self.read(key)
        if task is None or task.etag != etag:
            return None
        now = self._now() if score is None else score
        return self._write(task, now, owner, body) if now is not None else None

    def _write(self, task: Task, score: int, owner: str | None, body: Any) -> Mutex | None:
        """Write the row; arguments that are None keep the stored values."""
        new_owner = owner or self.owner or task.owner
        new_body = task.body if body is None else _as_kept(body)
        new = {"key": task.key, "score": score, "owner": new_owner, "body": new_body}
        return self._put(new, task.etag)

    def _put(self, value: dict[str, Any], etag: str | None) -> Mutex | None:
        for _ in range(TRIES):
            try:
                done = run(self._table.put(value, etag))
                return (value["key"], done) if isinstance(done, str) else None
            except OutcomeUnknown:
                there = self.read(value["key"])
            if there is not None and there.etag != etag:
                mine = (there.score, there.owner, there.body) == (value["score"], value["owner"], value["body"])
                return (there.key, there.etag) if mine else None
            # The row is unchanged: send it again. The lost request may still arrive, but the etag is another one then.
        raise StoreError(f"{self._table.where} does not reply: {value['key']!r} may or may not have been written.")

    def _before(self, now: int) -> int:
        return now - int(self.timeout_seconds * 1e6)


def _as_kept(body: Any) -> Any:
    """Return the body as the table returns it (a tuple becomes a list): it identifies a write whose reply was lost."""
    try:
        return json.loads(json.dumps(body, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise ConfigError("A body is JSON: texts, numbers, true, false, null, lists, and objects of these.") from None


def _name(key: str) -> str:
    if not key:
        raise ConfigError("A mutex needs a name: a text that is not empty.")
    return key

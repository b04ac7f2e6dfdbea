"""What guards a lock in Cassandra, on a real node: conditions, consistency, retries, no end to what is kept. Each guard
is then broken on purpose, and each time one of these tests fails."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cassandra import ConsistencyLevel, WriteTimeout, WriteType
from cassandra.policies import FallthroughRetryPolicy

import fairlock
from fairlock.engine.run_sync import run
from fairlock.rules.locks import EXCLUSIVE, Acquire, Granted, Queued
from fairlock.rules.pools import Take
from fairlock.stores.base import Row, RowSnapshot, Written
from tests.cassandra.test_errors import Lossy
from tests.mutate_source import Mutant, put_to_the_test
from tests.servers.cassandra import Ring

MODULES = ("cql", "store", "pool_items", "statement_sender")
CQL, STORE, ITEM_STORE, SENDER = (f"stores/cassandra/{name}.py" for name in MODULES)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the time from every reply, however busy the machine is: otherwise the remembered row is never used."""
    monkeypatch.setattr("fairlock.stores.cassandra.store.VAGUE", 60.0)


def connect(ring: Ring, **options: Any) -> fairlock.Locks:
    return fairlock.connect(ring.session(), keyspace="fairlock", **options)


def enter(ticket: str, lease: int = 5_000_000) -> Acquire:
    return Acquire(ticket, EXCLUSIVE, EXCLUSIVE, lease, True, True, 1, "", "somebody", "")


class Watched:
    """A session of which each statement is written down."""

    def __init__(self, session: Any) -> None:
        self._session, self.sent = session, []  # type: ignore[var-annotated]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def execute_async(self, statement: Any, **how: Any) -> Any:
        self.sent.append(statement)
        return self._session.execute_async(statement, **how)

    def levels(self, text: str) -> set[str]:
        """At which levels statements were sent that begin so."""
        names = ConsistencyLevel.value_to_name
        found = [each for each in self.sent if each.prepared_statement.query_string.startswith(text)]
        self.sent = []
        return {names[each.consistency_level] for each in found} | {
            names[each.serial_consistency_level] for each in found if each.serial_consistency_level is not None
        }


@contextmanager
def watched(ring: Ring, **options: Any) -> Iterator[tuple[fairlock.Locks, Watched]]:
    with connect(ring, **options) as locks:
        locks.ping()
        sender = locks._session.backend.store.sender  # type: ignore[attr-defined]
        sender._driver.session = Watched(sender._driver.session)
        yield locks, sender._driver.session


def test_no_entry_is_dropped_by_a_time_that_is_ahead(cassandra: Ring) -> None:
    """The time comes as if from a node whose clock is a minute ahead: the transaction itself reads the clock."""
    with connect(cassandra) as locks:
        backend = locks._session.backend
        assert isinstance(run(backend.call("x", enter("a"))).reply, Granted)
        assert isinstance(run(backend.call("x", enter("b"))).reply, Queued)
        backend.store.note(int(time.time() * 1000) + 60_000, backend.runtime.clock())  # type: ignore[attr-defined]
        assert isinstance(run(backend.call("x", enter("b"))).reply, Queued)


def test_what_is_remembered_is_worth_nothing_once_others_have_written(cassandra: Ring) -> None:
    with connect(cassandra) as one, connect(cassandra) as other:
        one.lock("x").acquire().release()
        assert other.lock("x").acquire(blocking=False)
        assert one.lock("x").acquire(blocking=False) is None


def test_of_two_who_make_a_row_one_has_made_it(cassandra: Ring) -> None:
    with connect(cassandra) as locks:
        rows = locks._session.backend.store  # type: ignore[attr-defined]
        run(rows.time())
        assert isinstance(run(rows.write(Row("x", 1, "me", "[1]"), None, 0, ())), Written)
        shown = run(rows.write(Row("x", 2, "you", "[2]"), None, 0, ()))
        assert isinstance(shown, RowSnapshot) and shown.row is not None and shown.row.body == "[1]"


def test_an_item_that_somebody_has_taken_is_not_taken_from_what_was_read_before(cassandra: Ring) -> None:
    with connect(cassandra) as locks:
        locks.pool("jobs").add("a")
        item_store = locks._session.backend.store.items  # type: ignore[attr-defined]
        seen = run(item_store.get("jobs", "a"))
        assert locks.pool("jobs").acquire(blocking=False)
        mine = seen.item._replace(ticket="me", fence=seen.item.fence + 1)
        assert run(item_store.put("jobs", "a", mine, seen)) is False
        assert run(item_store._take("jobs", seen, Take("me", 5_000_000))) is None


def test_a_removed_item_keeps_its_fence_whatever_the_clock_does(cassandra: Ring) -> None:
    with connect(cassandra) as locks:
        pool = locks.pool("jobs")
        pool.add("a")
        item_store = locks._session.backend.store.items  # type: ignore[attr-defined]
        seen = run(item_store.get("jobs", "a"))
        tomorrow = int((time.time() + 86_400) * 1e6)  # when a clock was ahead
        assert run(item_store.put("jobs", "a", seen.item._replace(fence=tomorrow), seen))
        assert pool.remove("a")
        assert pool.add("a")
        item = pool.acquire(blocking=False)
        assert item is not None and item.fence > tomorrow


def test_reads_at_serial_only_after_an_unknown_outcome(cassandra: Ring) -> None:
    with watched(cassandra) as (locks, session):
        with locks.lock("x"):
            pass
        assert locks.lock("x").acquire(blocking=False)
        assert locks.lock("x").acquire(timeout=0.1) is None
        assert session.levels("SELECT") == {"QUORUM"}
        lossy = Lossy(session, WriteTimeout("x", write_type=WriteType.CAS))
        locks._session.backend.store.sender._driver.session = lossy  # type: ignore[attr-defined]
        lossy.after = 1
        assert locks.lock("y").acquire(timeout=10)
        assert session.levels("SELECT") == {"QUORUM", "SERIAL"}
        with locks.lock("z"):
            pass
        assert session.levels("UPDATE") == {"QUORUM", "SERIAL"}


def test_of_one_data_centre(cassandra: Ring) -> None:
    with watched(cassandra, consistency="local_serial") as (locks, session):
        with locks.lock("x"):
            pass
        assert locks.lock("x").acquire(blocking=False)
        sent = list(session.sent)
        assert session.levels("SELECT") == {"LOCAL_QUORUM"}
        session.sent = sent
        assert session.levels("UPDATE") == {"LOCAL_QUORUM", "LOCAL_SERIAL"}
    url = f"{cassandra.url}?consistency=local_serial&local_dc=datacenter1"
    with fairlock.connect(url) as locks, locks.lock("x").hold(timeout=10):
        assert locks.lock("x").locked()


def test_the_driver_says_nothing_twice_by_itself(cassandra: Ring) -> None:
    """Whatever a session of somebody's own would do."""
    with watched(cassandra) as (locks, session):
        with locks.lock("x"):
            locks.pool("jobs").add("a")
        assert session.sent
        assert {type(each.retry_policy) for each in session.sent} == {FallthroughRetryPolicy}
        transactions = [each for each in session.sent if each.serial_consistency_level is not None]
        assert transactions
        assert not any(each.is_idempotent for each in transactions), "the driver would send it to a second node"


def test_nothing_has_an_end(cassandra: Ring) -> None:
    with connect(cassandra) as locks:
        with locks.lock("x"):
            pass
        pool = locks.pool("jobs")
        pool.add_many([("a", None), ("b", None)])
        item = pool.acquire(blocking=False)
        assert item is not None
        item.done()
        pool.remove("b")
    for table in ("fairlock_locks", "fairlock_items"):
        rows = list(cassandra.session().execute(f"SELECT ttl(score), ttl(body) FROM fairlock.{table}"))
        assert rows and {end for row in rows for end in row} == {None}, table


def test_a_lease_is_considered_lost_earlier_by_what_clocks_may_differ(cassandra: Ring) -> None:
    def left(skew: float) -> float:
        with connect(cassandra, skew=skew, lease=10) as locks:
            before = locks._session.clock()
            with locks.lock("x").hold(timeout=10):
                (grant,) = locks._session.grants.values()
                return grant.deadline - before

    exact, careful = left(0.0), left(2.0)
    assert careful <= 8.0 + 1.0  # it begins when the request was sent, and a busy machine takes its time
    assert exact > careful


# On a busy machine a reply takes longer and the remembered row is older: a mutant must be noticed all the same.
USES_WHAT_IT_REMEMBERS = (
    (STORE, "VAGUE = 0.02 ", "VAGUE = 60.0 "),
    (STORE, "cache_ttl = 0.5 ", "cache_ttl = 60.0 "),
)
MUTANTS = [
    Mutant("the time is not compared with the clock", test_no_entry_is_dropped_by_a_time_that_is_ahead,
           ((STORE, "return Duration(0, 0, now // 1000 * 1_000_000)", "return Duration(0, 0, 0)"),)),
    Mutant("any version will do", test_what_is_remembered_is_worth_nothing_once_others_have_written,
           ((CQL, "IF version = ? AND body", "IF version >= ? AND body"),
            (STORE, ", key, expected, since_1970(now))", ", key, 0, since_1970(now))"), *USES_WHAT_IT_REMEMBERS)),
    Mutant("a refusal does not show the row", test_of_two_who_make_a_row_one_has_made_it,
           ((STORE, 'if sample is None or done.get("body") is None:', "if True:"),)),
    Mutant("any state of an item will do",
           test_an_item_that_somebody_has_taken_is_not_taken_from_what_was_read_before,
           ((CQL, "IF score = ? AND fence = ? AND ticket = ? AND zero",
             "IF score >= ? AND fence >= ? AND ticket >= ? AND zero"),
            (ITEM_STORE, "same = (before.score, before.fence, before.ticket)", "same = (-9, 0, '')"))),
    Mutant("a read settles nothing", test_reads_at_serial_only_after_an_unknown_outcome,
           ((SENDER, "self._serial if settle else self._quorum", "self._quorum"),)),
    Mutant("every read takes part in the agreement", test_reads_at_serial_only_after_an_unknown_outcome,
           ((SENDER, "self._serial if settle else self._quorum", "self._serial"),)),
    Mutant("a transaction agrees by the driver's default", test_of_one_data_centre,
           ((SENDER, "statement.serial_consistency_level = self._serial\n", "pass\n"),)),
    Mutant("the driver tries again as it likes", test_the_driver_says_nothing_twice_by_itself,
           ((SENDER, "statement.retry_policy = RETHROW\n", "pass\n"),)),
    Mutant("locks end by themselves", test_nothing_has_an_end,
           ((CQL, "fairlock_locks SET score", "fairlock_locks USING TTL 86400 SET score"),)),
    Mutant("items end by themselves", test_nothing_has_an_end,
           ((CQL, "fairlock_items SET score = ?, fence = ?, ticket = ?",
             "fairlock_items USING TTL 86400 SET score = ?, fence = ?, ticket = ?"),)),
    Mutant("clocks are taken to agree", test_a_lease_is_considered_lost_earlier_by_what_clocks_may_differ,
           ((STORE, "self.skew = skew", "self.skew = 0.0"),)),
    Mutant("an item that comes back has no past", test_a_removed_item_keeps_its_fence_whatever_the_clock_does,
           ((ITEM_STORE, "item._replace(fence=seen.version.fence)", "item"),)),
]  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.what for mutant in MUTANTS])
def test_the_mistake_is_noticed(mutant: Mutant, cassandra: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    put_to_the_test(mutant, cassandra, monkeypatch)

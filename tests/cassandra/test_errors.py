"""What goes wrong with a Cassandra, on a real one: a sentence with the cure, and nothing lost."""

import os
import socket
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra import OperationTimedOut, Unavailable, WriteTimeout, WriteType
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ErrorMessage, OverloadedErrorMessage

import fairlock
from fairlock import ConfigError, StoreError
from fairlock.stores.cassandra import cql, errors
from tests.api_parity.test_exit import nothing_is_left_by_a_loop, nothing_is_left_by_threads
from tests.kill_helpers import a_holder_and_a_waiter_are_killed
from tests.servers.cassandra import Ring


def refusal(url: str) -> Any:
    with fairlock.connect(url, timeout=10) as locks:
        with pytest.raises(fairlock.LockError) as no:
            locks.lock("x").acquire()
    return no.value


def test_a_keyspace_that_is_not_there(cassandra: Ring) -> None:
    no = refusal(cassandra.url.replace("/fairlock", "/nowhere"))
    assert isinstance(no, ConfigError)
    assert "no keyspace nowhere" in str(no)
    assert "fairlock schema" in str(no)


def test_no_tables_or_other_ones(cassandra: Ring) -> None:
    session = cassandra.session()
    copies = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    session.execute(f"CREATE KEYSPACE IF NOT EXISTS bare WITH replication = {copies}")
    no = refusal(cassandra.url.replace("/fairlock", "/bare"))
    assert isinstance(no, ConfigError) and "no tables of fairlock" in str(no)
    session.execute("CREATE TABLE IF NOT EXISTS bare.fairlock_locks (key text PRIMARY KEY, name text)")
    no = refusal(cassandra.url.replace("/fairlock", "/bare"))
    assert isinstance(no, ConfigError) and "not as they should be" in str(no)


def test_a_user_without_rights_and_one_without_a_login(cassandra: Ring) -> None:
    cassandra.session().execute("CREATE ROLE IF NOT EXISTS reader WITH PASSWORD = 'open-sesame' AND LOGIN = true")
    cassandra.session().execute("GRANT SELECT ON KEYSPACE fairlock TO reader")
    no = refusal(cassandra.url.replace("cassandra:cassandra", "reader:open-sesame"))
    assert isinstance(no, StoreError) and no.refused
    assert "GRANT MODIFY ON KEYSPACE fairlock" in str(no)
    no = refusal(cassandra.url.replace("cassandra:cassandra", "reader:wrong"))
    assert isinstance(no, StoreError) and no.refused
    assert "user or password" in str(no) and "wrong" not in str(no)


def test_a_right_that_is_taken_away_and_given_back_loses_nothing(cassandra: Ring) -> None:
    session = cassandra.session()
    session.execute("CREATE ROLE IF NOT EXISTS locker WITH PASSWORD = 'open-sesame' AND LOGIN = true")
    for right in ("SELECT", "MODIFY"):
        session.execute(f"GRANT {right} ON KEYSPACE fairlock TO locker")
    with fairlock.connect(cassandra.url.replace("cassandra:cassandra", "locker:open-sesame")) as locks:
        lease = locks.lock("x").acquire(timeout=30)
        locks.pool("jobs").add("a")
        item = locks.pool("jobs").acquire(blocking=False)
        assert lease is not None and item is not None
        session.execute("REVOKE MODIFY ON KEYSPACE fairlock FROM locker")
        time.sleep(0.3)  # the node looks again after a tenth of that
        for action in (lease.renew, lease.release, item.done, lambda: locks.lock("y").acquire(timeout=5)):
            with pytest.raises(StoreError, match="GRANT MODIFY ON KEYSPACE fairlock") as no:
                action()
            assert no.value.refused
        assert not lease.lost and not item.lost
        session.execute("GRANT MODIFY ON KEYSPACE fairlock TO locker")
        time.sleep(0.3)
        item.done()
        lease.release()
        assert locks.pool("jobs").counts().done == 1
        assert locks.lock("x").acquire(blocking=False)


def test_too_few_replicas(cassandra: Ring) -> None:
    """Of a keyspace with three copies on one node, until it has only as many as there are nodes."""
    session = cassandra.session()
    copies = "WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {}}}"
    session.execute(f"CREATE KEYSPACE IF NOT EXISTS thrice {copies.format(3)}")
    session.execute(cql.LOCKS.format(keyspace="thrice"))
    with fairlock.connect(cassandra.url.replace("/fairlock", "/thrice")) as locks:
        with pytest.raises(StoreError, match=r"too few replicas: 2 of a row are needed and 1 is alive") as no:
            locks.lock("x").acquire()
        assert not no.value.refused
        session.execute(f"ALTER KEYSPACE thrice {copies.format(1)}")
        with locks.lock("x").hold(timeout=10):
            assert locks.lock("x").locked()


def test_the_tool_says_it_in_one_line(cassandra: Ring) -> None:
    url = cassandra.url.replace("/fairlock", "/nowhere")
    words = [sys.executable, "-m", "fairlock", "-u", url, "run", "x", "--", "true"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 78
    assert done.stderr.startswith("fairlock: There is no keyspace nowhere") and done.stderr.count("\n") == 1


def test_nobody_there() -> None:
    with socket.socket() as taken:  # a port on which nobody listens, and nobody will
        taken.bind(("127.0.0.1", 0))
        no = refusal(f"cassandra://127.0.0.1:{taken.getsockname()[1]}/fairlock")
    assert isinstance(no, StoreError) and "does not reply" in str(no)


@pytest.mark.parametrize(
    "url",
    ["cassandra://", "cassandra://h1", "cassandra://h1:x/k", "cassandra://h1:1,h2:2/k", "cassandra://u:secret@h1/k;drop",
     "cassandra://h1/k?runtime=red", "cassandra://h1/k?consistency=one", "cassandra://h1/k?consistency=local_serial",
     "cassandra://h1/k?timeout=0", "cassandra://h1/k?replication=0", "cassandra://h1/k?replication=3,east:3",
     "cassandra://h1/k?replication=a';drop:3"],
)  # fmt: skip
def test_a_url_that_makes_no_sense_is_said_at_once(url: str) -> None:
    with pytest.raises(ConfigError) as no:
        fairlock.connect(url)
    assert "secret" not in str(no.value)


def test_what_the_driver_raises_for_an_unknown_outcome() -> None:
    """Both faces of a transaction that timed out, and a client that got no reply."""
    unknown = ErrorMessage(0x1700, "CAS operation result is unknown", {})
    timed_out = WriteTimeout("x", write_type=WriteType.CAS)
    for error in (unknown, timed_out, OperationTimedOut(), NoHostAvailable("x", {"h1": OperationTimedOut()})):
        assert errors.is_unknown(error)
    few = Unavailable("x", required_replicas=2, alive_replicas=1)
    assert not errors.is_unknown(few)
    assert not errors.is_unknown(NoHostAvailable("x", {"h1": ConnectionRefusedError()}))
    assert "2 of a row are needed and 1 is alive" in str(errors.explain(few, "cassandra://h1/k", "k"))
    busy = OverloadedErrorMessage(0x1001, "Too many requests", None)
    assert errors.is_passing(busy) and not errors.is_unknown(busy), "nothing was done: another try may go well"


class Lossy:
    """A session that loses the answers of the next transactions."""

    def __init__(self, session: Any, error: BaseException) -> None:
        self._session, self.error, self.after = session, error, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def execute_async(self, statement: Any, **how: Any) -> Any:
        future = self._session.execute_async(statement, **how)
        if not getattr(statement, "serial_consistency_level", None) or not self.after:
            return future
        self.after -= 1
        future.result()
        return self.lost()

    def lost(self) -> Any:
        return SimpleNamespace(_current_host=None, add_callbacks=lambda came, failed: failed(self.error))


@pytest.mark.parametrize("error", [WriteTimeout("x", write_type=WriteType.CAS), ErrorMessage(0x1700, "unknown", {})])
def test_a_transaction_without_a_reply_is_looked_up_and_not_made_twice(cassandra: Ring, error: Any) -> None:
    with fairlock.connect(cassandra.session(), keyspace="fairlock") as locks:
        locks.lock("x").acquire().release()
        sender = locks._session.backend.store.sender  # type: ignore[attr-defined]
        lossy = sender._driver.session = Lossy(sender._driver.session, error)
        lossy.after = 1
        lease = locks.lock("x").acquire(timeout=10)
        assert lease is not None
        lossy.after = 1
        lease.release()
        assert not locks.snapshot("x").resources[0].holders
        lossy.after = 1
        assert locks.pool("jobs").add("a") is True
        lossy.after = 1
        item = locks.pool("jobs").acquire()
        assert item is not None
        lossy.after = 1
        item.done()
        assert locks.pool("jobs").counts().done == 1


class Late(Lossy):
    """A session that sends a transaction only on request, long after its client has stopped waiting for it."""

    def __init__(self, session: Any) -> None:
        super().__init__(session, OperationTimedOut())
        self.kept: list[Any] = []

    def execute_async(self, statement: Any, **how: Any) -> Any:
        if getattr(statement, "serial_consistency_level", None) is None or not self.after:
            return self._session.execute_async(statement, **how)
        self.after -= 1
        self.kept.append(statement)
        return self.lost()


def test_a_transaction_that_arrives_late_grants_nothing(cassandra: Ring) -> None:
    with fairlock.connect(cassandra.session(), keyspace="fairlock") as locks:
        locks.lock("x").acquire().release()
        sender = locks._session.backend.store.sender  # type: ignore[attr-defined]
        late = sender._driver.session = Late(sender._driver.session)
        late.after = 1
        lease = locks.lock("x").acquire(timeout=10)
        assert lease is not None
        lease.release()
        late.after = 1
        pool = locks.pool("jobs")
        pool.add("a")
        late.after = 1
        item = pool.acquire(blocking=False)
        assert item is not None
        item.done()
        assert len(late.kept) == 3
        assert not any(cassandra.session().execute(statement).one()[0] for statement in late.kept), "they are refused"
        assert not locks.snapshot("x").resources[0].holders
        assert pool.counts().done == 1


def test_a_node_that_hangs_is_no_hanging_client(cassandra: Ring) -> None:
    def go_on() -> None:
        """On a busy machine a node that runs may also take longer than the 0.4 s."""
        limit = time.monotonic() + 60
        while True:
            try:
                with locks.lock("x").hold(timeout=10):
                    return
            except StoreError:
                assert time.monotonic() < limit, "it does not go on"
                time.sleep(0.2)

    with fairlock.connect(cassandra.url, timeout=0.4) as locks:
        go_on()
        cassandra.nodes[0].stop()
        begun = time.monotonic()
        with pytest.raises(StoreError, match="does not reply"):
            locks.lock("x").acquire()
        assert time.monotonic() - begun < 30
        cassandra.nodes[0].cont()
        go_on()


def test_a_holder_and_a_waiter_are_killed(cassandra: Ring) -> None:
    a_holder_and_a_waiter_are_killed(cassandra.url)


def test_a_forked_child_opens_new_connections(cassandra: Ring) -> None:
    with fairlock.connect(cassandra.url) as locks, locks.lock("x"):
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if locks.lock("x").acquire(blocking=False) is None else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert locks.lock("x").locked()


def test_another_session_than_ones_own_is_refused(cassandra: Ring) -> None:
    with pytest.raises(ConfigError, match="Session"):
        fairlock.connect(cassandra.session().cluster)
    with pytest.raises(ConfigError, match="has no keyspace"):
        fairlock.connect(cassandra.session())


def test_what_is_held_at_a_normal_exit_is_released(cassandra: Ring) -> None:
    """Before the driver closes its connections, which it does at the end of the interpreter, too."""
    nothing_is_left_by_threads(cassandra.url)


def test_what_is_held_in_a_loop_that_was_not_ended_is_released(cassandra: Ring) -> None:
    nothing_is_left_by_a_loop(cassandra.url, "in the main thread")

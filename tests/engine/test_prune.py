"""Names that were not used for long are deleted, and nothing else: on every store that keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fairlock
from fairlock.engine.run_sync import run
from fairlock.errors import StoreError
from fairlock.rules.locks import audit_lines, codec
from fairlock.stores.base import Row, Written
from fairlock.stores.keys import audit_key
from fairlock.stores.sqlite import maintenance
from tests.servers.cassandra import Ring

DAY = 86400.0


@pytest.fixture(autouse=True)
def no_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """On SQLite one of sixteen clients deletes such rows by itself when it ends."""
    monkeypatch.setattr(maintenance.Maintenance, "is_due_at_the_end", lambda self: False)


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/locks.db"
    return str(request.getfixturevalue(request.param).url)


def make_older(locks: Any, name: str, seconds: float) -> None:
    """Change the row as if its last use was this long ago."""
    store = locks.session.backend.store
    key = locks.session.backend.prefix + name
    seen = run(store.read(key))
    state, ago = codec.decode(seen.row.body), int(seconds * 1e6)
    older = state._replace(fence=state.fence - ago, seen=state.seen - ago)
    row = Row(key, older.fence, seen.row.owner, codec.encode(older))
    assert isinstance(run(store.write(row, seen.version, seen.now, ())), Written)


def test_what_was_not_used_for_a_day_is_deleted_and_nothing_else(url: str) -> None:
    with fairlock.connect(url) as locks, fairlock.connect(url, namespace="other") as other:
        for client in (locks, other):
            for name in ("old", "young", "held", "sized"):
                client.lock(name).acquire().release()
        locks.resize("sized", 3)
        lease = locks.lock("held").acquire()
        fence = locks.lock("old").acquire()
        fence.release()
        for name in ("old", "held", "sized"):
            make_older(locks, name, 2 * DAY)
        make_older(other, "old", 2 * DAY)
    with fairlock.connect(url) as locks, fairlock.connect(url, namespace="other") as other:
        assert run(locks.session.prune("y*", DAY, True)) == (0, 0)
        assert run(locks.session.prune("*", DAY, False)) == (1, 0)
        assert run(locks.session.prune("*", DAY, True)) == (1, 1)
        assert {r.name for r in locks.snapshot(idle=True).resources} == {"young", "held", "sized"}
        assert {r.name for r in other.snapshot(idle=True).resources} == {"old", "young", "held", "sized"}
        with locks.lock("old") as again:
            assert again.fence > fence.fence
    assert lease.fence


def test_a_row_that_changed_meanwhile_is_not_deleted(url: str) -> None:
    with fairlock.connect(url) as locks, fairlock.connect(url) as other:
        locks.lock("old").acquire().release()
        make_older(locks, "old", 2 * DAY)
        backend = locks.session.backend
        scan = backend.store.scan  # type: ignore[attr-defined]
        held: list[Any] = []

        async def late(prefix: str) -> Any:
            found = await scan(prefix)
            held.append(other.lock("old").acquire())
            return found

        backend.store.scan = late  # type: ignore[attr-defined]
        assert run(locks.session.prune("*", DAY, True)) == (1, 0)
        assert held[0].held and not locks.lock("old").acquire(blocking=False)


def make_audit_older(locks: Any, name: str, seconds: float) -> None:
    """Change the audit lines as if they had been written this long ago."""
    store = locks.session.backend.store
    key = audit_key(locks.session.backend.prefix + name)
    seen = run(store.read(key))
    lines = [line._replace(at=line.at - seconds) for line in audit_lines.decode(seen.row.body)]
    row = Row(key, seen.row.score, "", audit_lines.encode(lines))
    assert isinstance(run(store.write(row, seen.version, seen.now, ())), Written)


def old_audit_lines_go(url: str) -> None:
    with fairlock.connect(url, namespace="a") as locks, fairlock.connect(url, namespace="b") as other:
        for client in (locks, other):
            for name in ("gone", "young"):
                client.resize(name, 3)
            make_audit_older(client, "gone", 31 * DAY)
        prune = locks.session.prune_audit
        assert run(prune("y*", 0.0, True)) == (0, 0)
        assert run(prune("*", 40 * DAY, True)) == (0, 0), "not used for longer than that is what was asked for"
        assert run(prune("*", 0.0, False)) == (1, 0), "the lines of the last 30 days stay, whatever is asked for"
        assert run(prune("*", 0.0, True)) == (1, 1)
        assert locks.audit("gone") == () and len(locks.audit("young")) == 1
        assert len(other.audit("gone")) == 1
        locks.resize("gone", 4)
        assert [line.reason for line in locks.audit("gone")] == ["to 4 slots"]


def test_audit_lines_go_thirty_days_after_the_newest(url: str) -> None:
    old_audit_lines_go(url)


def test_audit_lines_go_from_oci(fake_nosql: Any) -> None:
    old_audit_lines_go(fake_nosql.url())


def test_idle_names_go_from_oci(fake_nosql: Any) -> None:
    with fairlock.connect(fake_nosql.url()) as locks:
        before = locks.lock("old").acquire()
        before.release()
        make_older(locks, "old", 2 * DAY)
    with fairlock.connect(fake_nosql.url()) as locks:
        assert run(locks.session.prune("*", DAY, False)) == (1, 0)
        assert run(locks.session.prune("*", DAY, True)) == (1, 1)
        with locks.lock("old") as again:
            assert again.fence > before.fence


def test_stores_that_delete_idle_names_by_themselves(redis_alone: Any) -> None:
    for url in ("memory://", redis_alone.url):
        with fairlock.connect(url) as locks:
            assert run(locks.session.prune("*", DAY, True)) is None
            assert run(locks.session.prune_audit("*", DAY, True)) is None


def test_cassandra_keeps_every_row_but_those_of_audit_lines(cassandra: Ring) -> None:
    with fairlock.connect(cassandra.url) as locks:
        locks.lock("old").acquire().release()
        make_older(locks, "old", DAY)  # a clock of milliseconds may not have moved on since
        assert run(locks.session.prune("*", 0.0, False)) == (1, 0)
        with pytest.raises(StoreError, match="Nothing is deleted in Cassandra"):
            run(locks.session.prune("*", 0.0, True))
    old_audit_lines_go(cassandra.url)

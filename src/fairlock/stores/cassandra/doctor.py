"""What an operator should know about a keyspace as a place for locks: its copies, how nodes agree, their clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cassandra.query import SimpleStatement

from ...errors import LockError
from . import cql, errors

if TYPE_CHECKING:
    from .store import CassandraStore

COPIES = 3


async def examine(store: CassandraStore) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    sender = store.sender
    session = await sender.open()
    (about,) = await sender.simple("SELECT release_version, cluster_name FROM system.local")
    found.append(("ok", f"Cassandra {about.release_version}, cluster {about.cluster_name!r}."))
    found += await _copies(store)
    found += await _agreement(store)
    found += await sender.runtime.call(_clocks, store, session)
    for statement, what in ((cql.READ, "locks"), (cql.ALL, "pools")):
        try:
            await sender.read(statement, ("x",) if statement is cql.READ else ("x", [0]))
            found.append(("ok", f"The table of {what} is there."))
        except LockError as error:
            found.append(("error", str(error)))
    found.append(("note", "Cassandra has no notifications: waiters poll, up to 100 times a second."))
    found.append(("note", "`ls`, `top` and the page read all names that were ever used, in pages."))
    return found


async def _copies(store: CassandraStore) -> list[tuple[str, str]]:
    name = store.sender.keyspace
    rows = await store.sender.simple(
        f"SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = '{name}'"
    )
    if not rows:
        return [("error", f"There is no keyspace {name}. 'fairlock schema' prints how to make it.")]
    replication = {key: value for key, value in rows[0].replication.items() if key != "class"}
    text = ", ".join(f"{where} {copies}" for where, copies in replication.items())
    if all(copies.isdigit() and int(copies) >= COPIES for copies in replication.values()):
        return [("ok", f"There are enough copies of everything ({text}): one node of three may be down.")]
    return [("warning", f"There are few copies ({text}): if one node is down its locks are, too. Three are usual.")]


async def _agreement(store: CassandraStore) -> list[tuple[str, str]]:
    try:
        rows = await store.sender.simple("SELECT value FROM system_views.settings WHERE name = 'paxos_variant'")
    except LockError:
        rows = []
    variant = rows[0].value if rows else ""
    if not variant:
        return [("note", "Which variant of Paxos it uses cannot be read: before 4.1, or without the right to look.")]
    if variant.startswith("v1"):
        return [("note", "It uses Paxos v1. With 'paxos_variant: v2' a step takes fewer round trips between nodes.")]
    return [("ok", f"It uses Paxos {variant}.")]


def _clocks(store: CassandraStore, session: Any) -> list[tuple[str, str]]:
    """Ask each node for its time, a few times; the quickest replies are the most exact."""
    clock = store.sender.runtime.clock
    apart: dict[str, float] = {}
    for host in session.cluster.metadata.all_hosts():
        best = (9.0, 0.0)
        for _ in range(4):
            before = clock()
            try:
                rows = session.execute(SimpleStatement(cql.CLOCK), host=host, timeout=2)
            except errors.DRIVERS:
                break
            after = clock()
            best = min(best, (after - before, rows.one().now / 1000 - (before + after) / 2))
        if best[0] < 9.0:
            apart[str(host.address)] = best[1]
    if len(apart) < 2:
        return []
    difference = max(apart.values()) - min(apart.values())
    text = f"The clocks of {len(apart)} nodes differ by {difference * 1000:.0f} ms"
    if difference > store.skew:
        return [("warning", f"{text}, and 'skew' allows for {store.skew * 1000:.0f}. Let NTP set them, or raise it.")]
    return [("ok", f"{text}.")]

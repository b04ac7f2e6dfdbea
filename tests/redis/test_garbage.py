"""Garbage under the keys of one name: the documented error for that name, never a raw one, and nobody gets in twice.

Seeded; a failure names its seed, and `FAIRLOCK_SEED=17 ./dev test tests/redis/test_garbage.py` plays that one alone.
"""

import os
import random
from collections.abc import Callable
from typing import Any

import pytest

import fairlock
from fairlock import LockError, Locks, RecordDamaged
from tests.servers.server import Server

SEEDS, MANY = 80, 3000
ONE = os.environ.get("FAIRLOCK_SEED")
VALUES = (b"", b"garbage", b"\xff\xfe", b"-", b"nan", b"1e400", b"3.", b"3!" + 88 * b"\xff", b"\x9f\x01", b"[]")
PARTS = ("", ":queue", ":holders", ":unconfirmed", ":tombstones")
POOL = (":pool:items", ":pool:due", ":pool:queue", ":pool:waiter_expiry", ":pool:watchers")


def documented(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except LockError as error:
        return error


def wrong_type(server: Server, key: str, rng: random.Random) -> None:
    kind = rng.choice(("SET", "LPUSH", "HSET", "ZADD", "SADD"))
    words = {"SET": ["x"], "LPUSH": ["x"], "HSET": ["f", "v"], "ZADD": [1, "m"], "SADD": ["m"]}[kind]
    with server.client.pipeline(transaction=True) as both:  # or the holder's keeper comes between
        both.execute_command("DEL", key)
        both.execute_command(kind, key, *words)
        both.execute()


def spoil(server: Server, name: str, parts: tuple[str, ...], rng: random.Random) -> str:
    """Put garbage somewhere; what was done."""
    key = f"fairlock:{{{name}}}{rng.choice(parts)}"
    kind = server.call("TYPE", key)
    kind = kind.decode() if isinstance(kind, bytes) else kind
    value: Any = rng.choice(VALUES)
    if kind == "hash" and rng.random() < 0.8:
        fields = [f for f in server.client.hkeys(key) if f not in ("f", b"f")]
        if fields:
            field = rng.choice(sorted(fields))
            server.client.hset(key, field, value)
            return f"{key} {field!r}={value!r}"
    if kind == "zset" and rng.random() < 0.6:
        server.client.zadd(key, {value or b"x": rng.choice((0, -1, 1e15, 1e300))})
        return f"{key} + {value!r}"
    wrong_type(server, key, rng)
    return f"{key} of another type"


def use(locks: Locks, held: fairlock.Lease) -> str:
    """Everything that a client does with 'bad'; what went wrong."""
    documented(lambda: locks.snapshot("*"))
    documented(lambda: locks.lock("bad").locked())
    got = documented(lambda: locks.lock("bad").acquire(False))
    renewed = documented(held.renew)
    if isinstance(got, fairlock.Lease) and renewed is None and held.held:
        return "granted twice"
    documented(lambda: locks.lock("bad").acquire(timeout=0.02))
    documented(lambda: locks.semaphore("bad", 3).acquire(False))
    documented(lambda: locks.rwlock("bad").read().acquire(False))
    documented(lambda: locks.evict("bad", reason="test"))
    documented(lambda: locks.resize("bad", 3))
    jobs = locks.pool("bad")
    item = documented(lambda: jobs.acquire(False))
    if isinstance(item, fairlock.Item):
        documented(lambda: item.body)
        documented(item.done)
    for work in (
        lambda: jobs.acquire(timeout=0.02), lambda: jobs.acquire(False, key="job-1"), lambda: jobs.add("new", 1),
        jobs.items, jobs.counts, lambda: jobs.remove("job-2"),
    ):  # fmt: skip
        documented(work)
    with locks.lock("good", timeout=2):
        pass
    return ""


@pytest.mark.parametrize("seeds", [SEEDS, pytest.param(MANY, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])])
def test_garbage_gives_the_documented_error_and_grants_nothing_twice(redis_alone: Server, seeds: int) -> None:
    with fairlock.connect(redis_alone.url) as theirs, fairlock.connect(redis_alone.url) as ours:
        for seed in [int(ONE)] if ONE else range(seeds):
            rng = random.Random(seed)
            redis_alone.call("FLUSHALL", "SYNC")
            kind = rng.choice(("lock", "reader"))
            lock = theirs.lock("bad") if kind == "lock" else theirs.rwlock("bad").read()
            held = lock.acquire()
            assert held is not None
            if rng.random() < 0.5:
                theirs.evict("bad", reason="a tombstone", ticket="somebody")
            jobs = theirs.pool("bad")
            jobs.add_many({f"job-{n}": n for n in range(4)})
            taken = jobs.acquire(False)
            done = spoil(redis_alone, "bad", PARTS + POOL, rng)
            try:
                wrong = use(ours, held)
                documented(lambda: ours.repair("bad"))
                for each in (held, taken):
                    documented(each.release)  # type: ignore[union-attr]
            except Exception as error:
                raise AssertionError(f"seed {seed} ({done}): {type(error).__name__}: {error}") from error
            assert not wrong, f"seed {seed} ({done}): {wrong}"


def test_the_sentence_names_it_and_a_repair_cures_it(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as locks:
        with locks.lock("bad") as lease, locks.lock("good"):
            before = lease.fence
        for part in PARTS:
            redis_alone.call("DEL", *[f"fairlock:{{bad}}{each}" for each in PARTS])
            redis_alone.call("SET", f"fairlock:{{bad}}{part}", "x")
            if not part:
                with pytest.raises(RecordDamaged, match=r"The record of 'bad'.*--repair bad") as caught:
                    locks.lock("bad").acquire(timeout=5)
                assert caught.value.name == "bad"
                kinds = {r.name: r.kind for r in locks.snapshot(idle=True).resources}
                assert kinds == {"bad": "damaged", "good": "lock"}
                assert locks.repair("bad")
            with locks.lock("bad", timeout=2) as lease:
                assert lease.fence > before
                before = lease.fence


@pytest.mark.parametrize(
    "fields, number",
    [
        ({"c": "2147483647", "f": "7", "h": "8"}, 2),  # format 2, while nobody held the lock
        ({"c": "2147483647", "f": "7", "h": "8", "a": b"\x9f\x01\xa1t"}, 2),
        ({"n": b"4." + 88 * b"\0"}, 4),
        ({"n": b"4." + 88 * b"\0", "a": b"0"}, 4),
    ],
)
def test_a_record_of_another_format_is_refused_with_a_sentence(
    redis_alone: Server, fields: dict[str, Any], number: int
) -> None:
    key = "fairlock:{old}"
    formats = rf"a record of format {number}; this version of fairlock reads format 3"
    later = "was written by a later version of fairlock: " if number > 3 else "is damaged: "
    wanted = rf"The record of 'old'.* {later}{formats}\..*--repair old"
    with fairlock.connect(redis_alone.url) as locks:
        redis_alone.client.hset(key, mapping=fields)
        for _ in range(2):
            with pytest.raises(RecordDamaged, match=wanted):
                locks.lock("old").acquire(timeout=2)
        with pytest.raises(RecordDamaged, match=wanted):
            locks.lock("old").locked()
        assert set(redis_alone.client.hkeys(key)) in ({*fields}, {name.encode() for name in fields})
        assert locks.repair("old")
        with locks.lock("old", timeout=2):
            pass


def test_a_repair_of_what_is_sound_changes_nothing(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as locks, locks.lock("x") as lease:
        jobs = locks.pool("x")
        jobs.add("a")
        assert locks.repair("x") == ()
        lease.renew()
        assert jobs.counts().free == 1

"""The Lua is equal to the pure rules: the same moves for both, and every reply, wake-up, record and key compared.

Histories of every kind, drawn by Hypothesis, which makes one that shows a difference as short as it can: all commands,
the shortcuts and the full step in any order, clocks that go back, unreachable listeners, expiry, poll_ttl, tombstones,
blocks of fences, resizing, evictions, mismatches, and queues that are too long for one sweep.
"""

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from fairlock.rules.locks import ASKED, EMPTY, Granted
from fairlock.rules.locks.step import SWEEP
from tests.redis.differential import Both, hooked, is_short, pure
from tests.redis.random_histories import KINDS, history
from tests.servers.server import Server

QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
EXAMPLES = settings(max_examples=30, suppress_health_check=QUIET)


@pytest.fixture
def both(redis_alone: Server) -> Iterator[Both]:
    both = Both(Redis(port=redis_alone.port), hooked())
    yield both
    both.close()


@pytest.mark.parametrize("kind", ["quiet lock", "lock", "trouble", "anything"])
def test_histories_by_batches_are_the_same(redis_alone: Server, kind: str) -> None:
    both = Both(Redis(port=redis_alone.port), hooked(), in_batches=True)
    for seed in range(15):
        both.play(history(Random(f"many {kind} {seed}"), KINDS[kind]))
    both.close()


@pytest.mark.parametrize("kind", KINDS)
@EXAMPLES
@given(jitter=st.randoms(use_true_random=False))
def test_random_histories_are_the_same_on_both_sides(both: Both, kind: str, jitter: Random) -> None:
    both.play(history(jitter, KINDS[kind]))


@pytest.mark.parametrize("kind", KINDS)
def test_seeded_histories_are_the_same_on_both_sides(both: Both, kind: str) -> None:
    for seed in range(25):
        both.play(history(Random(f"{kind} {seed}"), KINDS[kind]))


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_many_histories_are_the_same_on_both_sides(both: Both, kind: str) -> None:
    for seed in range(1000, 3000):
        both.play(history(Random(f"{kind} {seed}"), KINDS[kind]))


def test_valkey_is_equal_too(valkey: Server) -> None:
    both = Both(Redis(port=valkey.port), hooked())
    for kind in KINDS:
        for seed in range(15):
            both.play(history(Random(f"{kind} {seed}"), KINDS[kind]))
    both.close()


def test_such_histories_meet_everything() -> None:
    """Each sort of reply, wake-up and short cut comes up many times; or the tests above compare less than they say."""
    met: Counter[str] = Counter()
    for kind in KINDS:
        for seed in range(25):
            record = EMPTY
            for move in history(Random(f"{kind} {seed}"), KINDS[kind]):
                should = pure(record, move)
                short = "short " if is_short(record, move) else ""
                met[f"{short}{type(move.command).__name__}: {type(should.reply).__name__}"] += 1
                met.update(f"wake {'granted' if wake.fence else 'dropped'}" for wake in should.wakes)
                met.update(f"passed {e.passed}" for e in should.after.queue)
                met["clock back"] += move.now < record.seen
                met["block"] += any(e.block > 1 for e in should.after.holders)
                met["several inside"] += len(should.after.holders) > 1
                met["tombstone of an evicted one"] += any(g.why.by for g in should.after.tombstones)
                if isinstance(should.reply, Granted) and should.reply.asked:
                    met[f"asked: {type(move.command).__name__}"] += 1
                before, after = (
                    {kind: {g.ticket for g in r.tombstones if (g.why.kind == ASKED) is kind} for kind in (True, False)}
                    for r in (record, should.after)
                )
                met["a request ends"] += bool(before[True] - after[True] - after[False])
                met["a request becomes a tombstone"] += bool(before[True] & after[False])
                met["more expired than one sweep takes"] += sum(e.expires <= move.now for e in record.queue) > SWEEP
                record = should.after
    wanted = {
        "Acquire: Granted", "Acquire: Queued", "Acquire: Refused", "Acquire: Revoked", "Acquire: Mismatch",
        "Release: Released",
        "Renew: Granted", "Renew: NotHolder", "Detach: Granted", "Detach: NotHolder", "Evict: Done", "Ask: Done",
        "Resize: Done", "asked: Acquire", "asked: Renew", "asked: Detach", "a request ends",
        "a request becomes a tombstone",
        "short Acquire: Granted", "short Release: Released", "wake granted", "wake dropped", "passed 0", "passed 1",
        "passed 2", "passed 3", "clock back", "block", "several inside", "tombstone of an evicted one",
        "more expired than one sweep takes",
    }  # fmt: skip
    assert {what for what in wanted if met[what] < 10} == set(), met

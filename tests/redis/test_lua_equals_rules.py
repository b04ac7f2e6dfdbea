"""The Lua is equal to the pure rules: the same moves for both, and every reply, wake-up, record and key compared.

Histories of every kind, drawn by Hypothesis, which makes one that shows a difference as short as it can: all commands,
the shortcuts and the full step in any order, clocks that go back, unreachable listeners, expiry, poll_ttl, tombstones,
blocks of fences, resizing, evictions, mismatches, and queues that are too long for one sweep.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from fairlock.rules.locks import ASKED, EMPTY, EXCLUSIVE, Acquire, Command, Granted, Release
from fairlock.rules.locks.step import SWEEP
from fairlock.stores.redis import encoding
from tests.redis.differential import Both, Differs, Move, hooked, is_short, pure
from tests.redis.mutants import MUTANTS
from tests.redis.random_histories import BEGIN, KINDS, SECOND, history
from tests.redis.telling_histories import SHOWN_BY, telling
from tests.servers.server import Server

QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
EXAMPLES = settings(max_examples=20, suppress_health_check=QUIET)


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
@given(rng=st.randoms(use_true_random=False))
def test_random_histories_are_the_same_on_both_sides(both: Both, kind: str, rng: Random) -> None:
    both.play(history(rng, KINDS[kind]))


@pytest.mark.parametrize("kind", KINDS)
def test_seeded_histories_are_the_same_on_both_sides(both: Both, kind: str) -> None:
    for seed in telling(MUTANTS, SHOWN_BY, kind):
        both.play(history(Random(f"{kind} {seed}"), KINDS[kind]))


@pytest.mark.parametrize("waiters", [1, 2, 12])
def test_a_lock_that_is_handed_over_again_and_again_needs_no_full_step(both: Both, waiters: int) -> None:
    """But for the first waiter of a new lock, and as long as nobody falls silent."""

    def come(number: int) -> Acquire:
        return Acquire(f"t{number}", EXCLUSIVE, EXCLUSIVE, 30 * SECOND, block=33, listener="e", owner="o")

    commands: list[Command] = [come(0)]
    for number in range(20):
        commands += [come(each) for each in range(number + 1, number + 1 + waiters)] if number == 0 else []
        commands += [Release(f"t{number}", False, None), come(number + waiters + 1)]
    commands += [Release(f"t{number}", False, None) for number in range(20, 21 + waiters)]
    both.play([Move(command, BEGIN + 1000 * number) for number, command in enumerate(commands)])
    assert both.met == {
        "Acquire alone": 1, "full": 1, "joined": 19 + waiters, "handed over": 20 + waiters, "Release alone": 1
    }  # fmt: skip


def test_a_record_outlasts_what_is_handed_over_at_its_end(redis_alone: Server) -> None:
    """So rarely the last seconds before a record is kept for longer that no random history meets them."""

    def come(ticket: str, lease: int) -> Acquire:
        return Acquire(ticket, EXCLUSIVE, EXCLUSIVE, lease * SECOND, listener="e")

    end = 3 * SECOND + encoding.IDLE // 2
    times: list[tuple[int, Command]] = [
        (0, come("a", 3)), (1, come("b", 3)), (2, Release("b")), (3, Release("a")),
        (end - 5 * SECOND, come("c", 5)), (end - 4 * SECOND, come("d", 5)), (end - SECOND * 3 // 2, Release("c")),
    ]  # fmt: skip
    moves = [Move(command, BEGIN + at) for at, command in times]
    for words, right in (("", True), (" and expires <= horizon and", False)):
        both = Both(Redis(port=redis_alone.port), hooked("fast_release" if words else "", words, " and"))
        with contextlib.nullcontext() if right else pytest.raises(Differs):
            both.play(moves)
        both.close()


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_many_histories_are_the_same_on_both_sides(both: Both, kind: str) -> None:
    for seed in range(1000, 3000):
        both.play(history(Random(f"{kind} {seed}"), KINDS[kind]))


def test_valkey_is_equal_too(valkey: Server) -> None:
    both = Both(Redis(port=valkey.port), hooked())
    for kind in KINDS:
        for seed in range(10):
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

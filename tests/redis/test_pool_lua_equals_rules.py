"""The Lua of pools is equal to the pure rules: the same orders for both, and replies, wake-ups and keys compared.

Long histories, drawn by Hypothesis: all orders, the short cuts and the full step in any order, clocks that step back,
expiry, silence, rests, named items, repeated and foreign fences.
"""

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from fairlock.rules.pools import NOBODY, ItemState, On
from tests.redis.pool_differential import KINDS, Both, history, hooked, pure
from tests.redis.pool_mutants import MUTANTS
from tests.redis.telling_histories import SHOWN_BY_OF_POOLS, telling
from tests.servers.server import Server

QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
EXAMPLES = settings(max_examples=20, suppress_health_check=QUIET)


@pytest.fixture
def both(redis_alone: Server) -> Iterator[Both]:
    both = Both(Redis(port=redis_alone.port), hooked())
    yield both
    both.close()


@pytest.mark.parametrize("kind", KINDS)
@EXAMPLES
@given(rng=st.randoms(use_true_random=False))
def test_histories_of_pools_are_the_same_on_both_sides(both: Both, kind: str, rng: Random) -> None:
    both.play(history(rng, KINDS[kind]))


@pytest.mark.parametrize("kind", KINDS)
def test_seeded_histories_of_pools_are_the_same_on_both_sides(both: Both, kind: str) -> None:
    for seed in telling(MUTANTS, SHOWN_BY_OF_POOLS, kind):
        both.play(history(Random(f"{kind} {seed}"), KINDS[kind]))


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_many_histories_of_pools_are_the_same_on_both_sides(both: Both, kind: str) -> None:
    for seed in range(1000, 3000):
        both.play(history(Random(f"{kind} {seed}"), KINDS[kind]))


def test_pools_on_valkey_are_equal_too(valkey: Server) -> None:
    both = Both(Redis(port=valkey.port), hooked())
    for kind in KINDS:
        for seed in range(10):
            both.play(history(Random(f"{kind} {seed}"), KINDS[kind]))
    both.close()


def test_such_histories_of_pools_meet_everything() -> None:
    """Each sort of reply comes up many times; or the tests above compare less than they say."""
    met: Counter[str] = Counter()
    for kind in KINDS:
        for seed in range(20):
            items, line = dict[str, ItemState](), NOBODY
            for move in history(Random(f"{kind} {seed}"), KINDS[kind]):
                should = pure(items, line, move)
                order = move.order.command if isinstance(move.order, On) else move.order
                short = "short " if should.is_short else ""
                met[f"{short}{type(order).__name__}: {type(should.reply).__name__}"] += 1
                met["hint"] += len(should.hints)
                met["two hints"] += len(should.hints) > 1
                met["clock back"] += move.now < line.seen
                met["watching"] += bool(should.queue.watchers)
                met["passed over"] += bool(set(move.unreachable) & {w.listener for w in line.workers} and should.hints)
                items, line, *_ = should
    wanted = {
        "Put: Added", "Seek: Taken", "Seek: Queued", "Seek: Nothing", "Seek: Busy", "Seek: Absent", "Seek: Finished",
        "Touch: Touched", "Touch: Lost", "Give: Given", "Give: Lost", "Finish: Finished", "Finish: Lost",
        "Remove: Removed", "Remove: Busy", "Look: Looked", "Quit: Revoked", "short Seek: Taken", "short Touch: Touched",
        "short Give: Given", "short Finish: Finished", "hint", "two hints", "clock back", "watching",
        "passed over",
    }  # fmt: skip
    assert {what for what in wanted if met[what] < 10} == set(), met

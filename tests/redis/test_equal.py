"""The Lua is equal to the pure rules: the same moves for both, and every reply, wake-up, record and key compared.

Lives of every kind, drawn by Hypothesis, which makes one that shows a difference as short as it can: all commands, the
short cut and the full step in any order, clocks that step back, the deaf, expiry, patience, graves, blocks of fences,
resizing, evictions, mismatches, and lines so long that one step does not sweep them.
"""

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from holdfast.doorman import EMPTY
from holdfast.doorman.rules import SWEEP
from tests.redis.both import Both, hooked, is_short, pure
from tests.redis.lives import KINDS, life
from tests.servers.server import Server

QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
EXAMPLES = settings(max_examples=30, suppress_health_check=QUIET)


@pytest.fixture
def both(redis_alone: Server) -> Iterator[Both]:
    both = Both(Redis(port=redis_alone.port), hooked())
    yield both
    both.close()


@pytest.mark.parametrize("kind", ["quiet lock", "lock", "trouble", "anything"])
def test_lives_by_the_script_for_many_are_the_same(redis_alone: Server, kind: str) -> None:
    both = Both(Redis(port=redis_alone.port), hooked(), by_many=True)
    for seed in range(15):
        both.live(life(Random(f"many {kind} {seed}"), KINDS[kind]))
    both.close()


@pytest.mark.parametrize("kind", KINDS)
@EXAMPLES
@given(chance=st.randoms(use_true_random=False))
def test_lives_are_the_same_on_both_sides(both: Both, kind: str, chance: Random) -> None:
    both.live(life(chance, KINDS[kind]))


@pytest.mark.parametrize("kind", KINDS)
def test_seeded_lives_are_the_same_on_both_sides(both: Both, kind: str) -> None:
    for seed in range(25):
        both.live(life(Random(f"{kind} {seed}"), KINDS[kind]))


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_many_lives_are_the_same_on_both_sides(both: Both, kind: str) -> None:
    for seed in range(1000, 3000):
        both.live(life(Random(f"{kind} {seed}"), KINDS[kind]))


def test_valkey_is_equal_too(valkey: Server) -> None:
    both = Both(Redis(port=valkey.port), hooked())
    for kind in KINDS:
        for seed in range(15):
            both.live(life(Random(f"{kind} {seed}"), KINDS[kind]))
    both.close()


def test_such_lives_meet_everything() -> None:
    """Each sort of reply, wake-up and short cut comes up many times; or the tests above compare less than they say."""
    met: Counter[str] = Counter()
    for kind in KINDS:
        for seed in range(25):
            record = EMPTY
            for move in life(Random(f"{kind} {seed}"), KINDS[kind]):
                should = pure(record, move)
                short = "short " if is_short(record, move) else ""
                met[f"{short}{type(move.command).__name__}: {type(should.reply).__name__}"] += 1
                met.update(f"wake {'granted' if wake.fence else 'dropped'}" for wake in should.wakes)
                met.update(f"passed {e.passed}" for e in should.after.line)
                met["clock back"] += move.now < record.seen
                met["block"] += any(e.block > 1 for e in should.after.inside)
                met["several inside"] += len(should.after.inside) > 1
                met["grave of an evicted one"] += any(g.why.by for g in should.after.graves)
                met["more expired than one sweep takes"] += sum(e.expires <= move.now for e in record.line) > SWEEP
                record = should.after
    wanted = {
        "Enter: Admitted", "Enter: Waiting", "Enter: Refused", "Enter: Gone", "Enter: Mismatch", "Leave: Left",
        "Renew: Admitted", "Renew: NotInside", "Keep: Admitted", "Keep: NotInside", "Evict: Done", "Resize: Done",
        "short Enter: Admitted", "short Leave: Left", "wake granted", "wake dropped", "passed 0", "passed 1",
        "passed 2", "passed 3", "clock back", "block", "several inside", "grave of an evicted one",
        "more expired than one sweep takes",
    }  # fmt: skip
    assert {what for what in wanted if met[what] < 10} == set(), met

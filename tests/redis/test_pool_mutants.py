"""Every deliberate mistake in the Lua of pools is noticed by histories of the kind that its line names."""

from random import Random

import pytest
from redis import Redis

from tests.redis.differential import Differs
from tests.redis.mutants import M
from tests.redis.pool_differential import KINDS, Both, history, hooked
from tests.redis.pool_mutants import MUTANTS
from tests.redis.telling_histories import SHOWN_BY_OF_POOLS
from tests.servers.server import Server

HISTORIES = 200


@pytest.mark.parametrize("mutant", MUTANTS, ids=[m.mistake for m in MUTANTS])
def test_the_mistake_is_noticed(mutant: M, redis_alone: Server) -> None:
    both = Both(Redis(port=redis_alone.port), hooked(mutant.script, mutant.words, mutant.others))
    try:
        with pytest.raises(Differs):
            for seed in (SHOWN_BY_OF_POOLS.get(mutant.mistake, 0), *range(HISTORIES)):
                both.play(history(Random(f"{mutant.kind} {seed}"), KINDS[mutant.kind]))
    finally:
        both.close()


def test_there_are_many_and_no_two_are_the_same() -> None:
    assert len({m.mistake for m in MUTANTS}) == len({(m.script, m.words, m.others) for m in MUTANTS}) == len(MUTANTS)
    assert set(SHOWN_BY_OF_POOLS) <= {m.mistake for m in MUTANTS}
    assert len(MUTANTS) >= 40

"""Every deliberate mistake in the Lua is found by a bounded number of histories of the kind that it names."""

from random import Random

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from tests.redis.differential import Both, Differs, Mistyped, hooked
from tests.redis.mutants import MUTANTS, M
from tests.redis.random_histories import KINDS, history
from tests.redis.telling_histories import SHOWN_BY
from tests.servers.server import Server

HISTORIES = 3000


@pytest.mark.parametrize("mutant", MUTANTS, ids=[m.mistake for m in MUTANTS])
def test_the_mistake_is_noticed(mutant: M, redis_alone: Server) -> None:
    scripts = hooked(mutant.script, mutant.words, mutant.others)
    both = Both(Redis(port=redis_alone.port), scripts, in_batches=mutant.script == "batch")
    try:
        with pytest.raises(Differs):
            for seed in (SHOWN_BY.get(mutant.mistake, 0), *range(HISTORIES)):
                both.play(history(Random(f"{mutant.kind} {seed}"), KINDS[mutant.kind]))
    finally:
        both.close()


def test_there_are_many_and_no_two_are_the_same() -> None:
    assert len({m.mistake for m in MUTANTS}) == len({(m.script, m.words, m.others) for m in MUTANTS}) == len(MUTANTS)
    assert set(SHOWN_BY) <= {m.mistake for m in MUTANTS}
    assert len(MUTANTS) >= 60


def test_a_mutant_whose_words_have_drifted_away_fails_loudly() -> None:
    with pytest.raises(LookupError, match="0 times"):
        hooked("step", "words that nobody would write", "")
    with pytest.raises(LookupError, match="not once"):
        hooked("step", "e.expires", "e.ends")


@pytest.mark.parametrize(
    "others, error", [("if now < scene then", Mistyped), ("if now < then", ResponseError), ("if false then", Differs)]
)
def test_a_typo_in_a_mutant_is_an_error_and_no_catch(
    others: str, error: type[Exception], redis_alone: Server
) -> None:
    with pytest.raises(error) as caught:
        both = Both(Redis(port=redis_alone.port), hooked("step", "if now < seen then", others))
        for seed in range(HISTORIES):
            both.play(history(Random(f"trouble {seed}"), KINDS["trouble"]))
    assert type(caught.value) is error

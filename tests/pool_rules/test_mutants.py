"""Every deliberate mistake in the rules is noticed, each by the example or law that its queue names."""

import inspect

import pytest

from fairlock.rules.pools.step import apply
from tests.pool_rules import test_queue, test_table, test_unreachable
from tests.pool_rules.explore import explore
from tests.pool_rules.mutants import item, queue
from tests.pool_rules.mutants.mutant import M
from tests.pool_rules.step import Broken
from tests.pool_rules.variant import variant
from tests.pool_rules.walkthrough import Bench
from tests.pool_rules.worlds import WORLDS

MUTANTS = [*item.MUTANTS, *queue.MUTANTS]
EXAMPLES = {
    name: test
    for module in (test_table, test_queue, test_unreachable)
    for name, test in vars(module).items()
    if name.startswith("test_") and list(inspect.signature(test).parameters) == ["bench"]
}


def noticed(mutant: M) -> bool:
    rules = variant(mutant.words, mutant.others)
    try:
        if mutant.noticed_by in EXAMPLES:
            EXAMPLES[mutant.noticed_by](Bench(rules))
        else:
            law, _, world = mutant.noticed_by.partition(" in ")
            try:
                explore(WORLDS[world][1], rules)
            except Broken as broken:
                if broken.law != law:
                    raise LookupError(f"{broken.law} noticed it, not {law}") from broken
                raise
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("mutant", MUTANTS, ids=[m.mistake for m in MUTANTS])
def test_the_mistake_is_noticed(mutant: M) -> None:
    assert noticed(mutant), f"nobody noticed that {mutant.mistake}"


def test_there_are_many_and_no_two_are_the_same() -> None:
    assert len({m.mistake for m in MUTANTS}) == len({(m.words, m.others) for m in MUTANTS}) == len(MUTANTS) >= 40


def test_the_true_rules_break_nothing_that_a_mutant_breaks() -> None:
    """A test that notices a mistake must pass when there is none; a comment is changed instead."""
    words, others = '"""The rules of a pool:', '"""The rules of the pool:'
    assert not noticed(M("", words, others, "test_given_back_goes_behind_everything_that_waits"))
    assert not noticed(M("", words, others, "fences_rise_with_every_take_and_only_then in removals"))


def test_a_mutant_whose_words_have_drifted_away_fails_loudly() -> None:
    with pytest.raises(LookupError, match="0 times"):
        variant("words that nobody would write", "")
    with pytest.raises(LookupError, match="not once"):
        variant("item.ticket", "item.fence")


@pytest.mark.parametrize("notices", [next(iter(EXAMPLES)), "fences_rise_with_every_take_and_only_then in removals"])
def test_a_typo_in_a_mutant_is_an_error_and_no_catch(notices: str) -> None:
    for typo, error in (("itm", NameError), ("if item", SyntaxError)):
        with pytest.raises(error):
            noticed(M("", f'"""{apply.__doc__}"""', typo, notices))

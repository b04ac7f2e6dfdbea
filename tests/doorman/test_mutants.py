"""Every deliberate mistake in the rules is noticed, each by the example, law or crowd that its line names."""

import pytest

from tests.doorman.mutants import commands, line, short_cut, step
from tests.doorman.mutants.mutant import M, example, law, starves
from tests.doorman.variant import SOURCE, variant

MUTANTS = [*step.MUTANTS, *line.MUTANTS, *commands.MUTANTS, *short_cut.MUTANTS]


@pytest.mark.parametrize("mutant", MUTANTS, ids=[m.mistake for m in MUTANTS])
def test_the_mistake_is_noticed(mutant: M) -> None:
    assert mutant.noticed_by((mutant.words, mutant.others)), f"nobody noticed that {mutant.mistake}"


def test_there_are_many_and_no_two_are_the_same() -> None:
    assert len({m.mistake for m in MUTANTS}) == len({(m.words, m.others) for m in MUTANTS}) == len(MUTANTS) >= 100


def test_the_true_rules_break_nothing_that_a_mutant_breaks() -> None:
    """Whoever notices a mistake must be quiet when there is none; a comment is changed instead."""
    comment = '"""The rules of the doorman:', '"""The rules of a doorman:'
    assert not example("test_when_all_are_deaf_the_head_is_admitted")(comment)
    assert not law("fences_rise", "a lock and renewals")(comment)
    assert not starves("a lock")(comment)


def test_a_mutant_whose_words_have_drifted_away_fails_loudly() -> None:
    with pytest.raises(LookupError, match="0 times"):
        variant(("words that nobody would write", ""))
    assert SOURCE.count("self.now") > 1
    with pytest.raises(LookupError, match="not once"):
        variant(("self.now", "self.later"))

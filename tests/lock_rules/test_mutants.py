"""Every deliberate mistake in the rules is noticed, each by the example, law or crowd that its queue names."""

import pytest

from fairlock.rules.locks import apply
from tests.lock_rules.mutants import messages, queue, short_cut, step
from tests.lock_rules.mutants.mutant import M, Notices, example, law, starves
from tests.lock_rules.variant import SOURCE, variant

MUTANTS = [*step.MUTANTS, *queue.MUTANTS, *messages.MUTANTS, *short_cut.MUTANTS]


@pytest.mark.parametrize("mutant", MUTANTS, ids=[m.mistake for m in MUTANTS])
def test_the_mistake_is_noticed(mutant: M) -> None:
    assert mutant.noticed_by((mutant.words, mutant.others)), f"nobody noticed that {mutant.mistake}"


def test_there_are_many_and_no_two_are_the_same() -> None:
    assert len({m.mistake for m in MUTANTS}) == len({(m.words, m.others) for m in MUTANTS}) == len(MUTANTS) >= 100


def test_the_true_rules_break_nothing_that_a_mutant_breaks() -> None:
    """A test that notices a mistake must pass when there is none; a comment is changed instead."""
    comment = '"""The rules of a lock:', '"""The rules of the lock:'
    assert not example("test_when_all_are_unreachable_the_head_is_admitted")(comment)
    assert not law("fences_rise", "a lock and renewals")(comment)
    assert not starves("a lock")(comment)


def test_a_mutant_whose_words_have_drifted_away_fails_loudly() -> None:
    with pytest.raises(LookupError, match="0 times"):
        variant(("words that nobody would write", ""))
    assert SOURCE.count("self.now") > 1
    with pytest.raises(LookupError, match="not once"):
        variant(("self.now", "self.later"))


@pytest.mark.parametrize(
    "notices",
    [example("test_when_all_are_unreachable_the_head_is_admitted"), law("fences_rise", "a lock"), starves("a lock")],
)
def test_a_typo_in_a_mutant_is_an_error_and_no_catch(notices: Notices) -> None:
    for typo, error in (("rekord", NameError), ("if record", SyntaxError)):
        with pytest.raises(error):
            notices((f'"""{apply.__doc__}"""', typo))

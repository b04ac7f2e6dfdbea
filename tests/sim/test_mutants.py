"""Every mutant is caught by its scene; a snippet that is no longer found exactly once fails as well."""

import pytest

from tests.sim import mutants_of_messages, mutants_of_the_house, mutants_of_turns
from tests.sim.house import rebuilt
from tests.sim.mutant import Mutant
from tests.sim.scenes import SCENES
from tests.sim.world import Violation

MUTANTS = mutants_of_messages.MUTANTS + mutants_of_the_house.MUTANTS + mutants_of_turns.MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.what.replace(" ", "_"))
def test_caught(mutant: Mutant) -> None:
    changes = [(mutant.file, mutant.old, mutant.new)] + ([mutant.also] if mutant.also else [])
    house = rebuilt(*changes)
    with pytest.raises(Violation):
        mutant.caught_by(house)


def test_every_scene_catches_something() -> None:
    """Or it is one that cannot fail."""
    assert {scene.__name__ for scene in SCENES} - {m.caught_by.__name__ for m in MUTANTS} == set()

"""Every mutant is caught by its scene; a snippet that is no longer found exactly once fails as well."""

import pytest

from tests.simulation import (
    mutants_of_batches,
    mutants_of_merged_steps,
    mutants_of_messages,
    mutants_of_release_requests,
    mutants_of_the_engine,
)
from tests.simulation.engine_under_test import rebuilt
from tests.simulation.mutant import Mutant
from tests.simulation.scenes import SCENES

MUTANTS = [
    *mutants_of_batches.MUTANTS, *mutants_of_messages.MUTANTS, *mutants_of_the_engine.MUTANTS,
    *mutants_of_merged_steps.MUTANTS, *mutants_of_release_requests.MUTANTS,
]  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.what.replace(" ", "_"))
def test_caught(mutant: Mutant) -> None:
    changes = [(mutant.file, mutant.old, mutant.new)] + ([mutant.also] if mutant.also else [])
    engine = rebuilt(*changes)
    with pytest.raises(mutant.raises) as caught:
        mutant.caught_by(engine)
    assert type(caught.value) is mutant.raises


def test_every_scene_catches_something() -> None:
    """Or it is one that cannot fail."""
    assert {scene.__name__ for scene in SCENES} - {m.caught_by.__name__ for m in MUTANTS} == set()

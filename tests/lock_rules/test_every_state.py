"""Every reachable state of small worlds, every step out of it, every law: see worlds.py, explore.py and laws/."""

import pytest

from tests.lock_rules.explore import World, explore
from tests.lock_rules.resource import SECOND
from tests.lock_rules.variant import with_tombstones_of
from tests.lock_rules.worlds import LARGE_WORLDS, WORLDS


def walk(least: int, world: World) -> None:
    found = explore(world, with_tombstones_of(world.tombstone // SECOND))
    print(found)
    assert found.states >= least, found
    assert found.steps >= 10 * found.states, found
    assert found.replies["Granted"], found


@pytest.mark.parametrize("name", WORLDS)
def test_no_law_is_broken_in_any_state_of(name: str) -> None:
    walk(*WORLDS[name])


@pytest.mark.soak
@pytest.mark.parametrize("name", LARGE_WORLDS)
def test_no_law_is_broken_in_any_state_of_the_large_world_of(name: str) -> None:
    walk(*LARGE_WORLDS[name])

"""Every reachable state of small worlds, every step out of it, every law: see worlds.py, explore.py and laws/."""

import pytest

from tests.pool_rules.explore import World, explore
from tests.pool_rules.worlds import LARGE_WORLDS, WORLDS


def walk(least: int, world: World, limit: int = 60_000) -> None:
    found = explore(world, limit=limit)
    print(found)
    assert found.states >= least, found
    assert found.steps >= 10 * found.states, found
    assert found.replies["Taken"], found


@pytest.mark.parametrize("name", WORLDS)
def test_no_law_is_broken_in_any_state_of(name: str) -> None:
    walk(*WORLDS[name])


@pytest.mark.soak
@pytest.mark.parametrize("name", LARGE_WORLDS)
def test_no_law_is_broken_in_any_state_of_the_large_world_of(name: str) -> None:
    walk(*LARGE_WORLDS[name], limit=400_000)

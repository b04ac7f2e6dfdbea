"""The scenes hold for the real flows."""

import pytest

from tests.sim.house import REAL
from tests.sim.scenes import SCENES, Scene


@pytest.mark.parametrize("scene", SCENES, ids=lambda s: s.__name__)
def test(scene: Scene) -> None:
    scene(REAL)

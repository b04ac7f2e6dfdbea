"""The scenes hold for the real flows."""

import pytest

from tests.simulation.engine_under_test import REAL
from tests.simulation.scenes import SCENES, Scene


@pytest.mark.parametrize("scene", SCENES, ids=lambda s: s.__name__)
def test(scene: Scene) -> None:
    scene(REAL)

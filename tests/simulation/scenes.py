"""The smallest scenario for each thing that went wrong in some version of the flows, or would without its guard.

Each takes a engine and raises Violation if that engine breaks its promise. They are run over the real one, where they
must pass, and over mutants, where the named one must not. Leases are 4 s and the client's margin a tenth of that,
unless it matters; a message takes half a millisecond at most, unless the scene says so.
"""

from collections.abc import Callable
from types import ModuleType

from tests.simulation import (
    scene_batches,
    scene_doubt,
    scene_local_queue,
    scene_merged_steps,
    scene_release_requests,
    scene_rows,
    scene_time,
)
from tests.simulation.engine_under_test import EngineUnderTest

Scene = Callable[[EngineUnderTest], None]


def scenes_of(module: ModuleType) -> list[Scene]:
    own = [thing for thing in vars(module).values() if getattr(thing, "__module__", "") == module.__name__]
    return [thing for thing in own if thing.__code__.co_varnames[:1] == ("engine",)]


MODULES = (scene_batches, scene_time, scene_doubt, scene_local_queue, scene_rows, scene_merged_steps,
           scene_release_requests)  # fmt: skip
SCENES = [scene for module in MODULES for scene in scenes_of(module)]

"""What a mutant is: the rules with a few of their words replaced by others, and who must notice.

The words must occur exactly once in rules.py, so a mutant whose words have drifted away fails loudly. Who notices is
the smallest that can: an example, or a law in a small world (most are broken within four steps of the empty record), or
a crowd in which somebody waits for ever.
"""

import inspect
from collections.abc import Callable
from typing import NamedTuple

from tests.doorman import test_passed_over, test_patient, test_step, test_table
from tests.doorman.door import Door
from tests.doorman.explore import explore
from tests.doorman.patient import Dropped, Starved, longest_wait
from tests.doorman.step import MINUTE, Broken
from tests.doorman.variant import variant
from tests.doorman.worlds import WORLDS

Change = tuple[str, str]
Notices = Callable[[Change], bool]

EXAMPLES = {
    name: test
    for module in (test_table, test_step, test_passed_over)
    for name, test in vars(module).items()
    if name.startswith("test_") and list(inspect.signature(test).parameters) == ["door"]
}


def example(name: str) -> Notices:
    """This example fails."""

    def notices(change: Change) -> bool:
        door = Door(variant(change))
        try:
            EXAMPLES[name](door)
        except AssertionError:
            return True
        return False

    return notices


def law(name: str, world_name: str) -> Notices:
    """This law is broken in this world, before any other is."""

    def notices(change: Change) -> bool:
        _, world = WORLDS[world_name]
        graves = [] if world.grave == MINUTE else [("GRAVE = 60_000_000", f"GRAVE = {world.grave}")]
        try:
            explore(world, variant(change, *graves))
        except Broken as broken:
            if broken.law != name:
                raise AssertionError(f"{broken.law} noticed it, not {name}") from broken
            return True
        return False

    return notices


def starves(crowd_name: str) -> Notices:
    """Somebody in this crowd who does all that can be asked of it waits for ever, or is dropped."""

    def notices(change: Change) -> bool:
        _, _, crowd = test_patient.CROWDS[crowd_name]
        try:
            longest_wait(crowd, variant(change))
        except (Starved, Dropped):
            return True
        return False

    return notices


class M(NamedTuple):
    mistake: str
    words: str
    others: str
    noticed_by: Notices

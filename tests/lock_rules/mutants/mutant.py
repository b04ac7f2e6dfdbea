"""What a mutant is: the rules with a few of their words replaced by others, and the test that must notice.

The words must occur exactly once in step.py, so a mutant whose words have drifted away fails loudly. The test is
the smallest that can notice: an example, or a law in a small world (most are broken within four steps of the empty
record), or a crowd in which a client waits forever.
"""

import inspect
from collections.abc import Callable
from typing import NamedTuple

from tests.lock_rules import test_passed_over, test_starvation, test_step, test_table
from tests.lock_rules.explore import explore
from tests.lock_rules.resource import LockUnderTest
from tests.lock_rules.starvation import Dropped, Starved, longest_wait
from tests.lock_rules.step import MINUTE, Broken
from tests.lock_rules.variant import variant
from tests.lock_rules.worlds import WORLDS

Change = tuple[str, str]
Notices = Callable[[Change], bool]

EXAMPLES = {
    name: test
    for module in (test_table, test_step, test_passed_over)
    for name, test in vars(module).items()
    if name.startswith("test_") and list(inspect.signature(test).parameters) == ["lock"]
}


def example(name: str) -> Notices:
    """This example fails."""

    def notices(change: Change) -> bool:
        lock = LockUnderTest(variant(change))
        try:
            EXAMPLES[name](lock)
        except AssertionError:
            return True
        return False

    return notices


def law(name: str, world_name: str) -> Notices:
    """This law is broken in this world, before any other is."""

    def notices(change: Change) -> bool:
        _, world = WORLDS[world_name]
        tombstones = [] if world.tombstone == MINUTE else [("TOMBSTONE = 60_000_000", f"TOMBSTONE = {world.tombstone}")]
        try:
            explore(world, variant(change, *tombstones))
        except Broken as broken:
            if broken.law != name:
                raise AssertionError(f"{broken.law} noticed it, not {name}") from broken
            return True
        return False

    return notices


def starves(crowd_name: str) -> Notices:
    """A client in this crowd that does everything right waits forever, or is dropped."""

    def notices(change: Change) -> bool:
        _, _, crowd = test_starvation.CROWDS[crowd_name]
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

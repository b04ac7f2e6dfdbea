"""Rules that differ from the true ones in a few words of their source: shorter tombstones, or deliberate mistakes.

The words must occur exactly once in step.py. So a variant whose words have drifted away fails loudly, instead of
testing nothing.
"""

import types
from pathlib import Path

from fairlock.rules.locks import step
from tests.lock_rules.resource import Apply

SOURCE = Path(str(step.__file__)).read_text(encoding="utf-8")


def variant(*changes: tuple[str, str]) -> Apply:
    """`apply` of rules in which every (words, other words) has been replaced."""
    source = SOURCE
    for words, others in changes:
        times = source.count(words)
        if times != 1:
            raise LookupError(f"these words occur {times} times in step.py, not once:\n{words}")
        source = source.replace(words, others)
    module = types.ModuleType("fairlock.rules.locks.variant")
    module.__package__ = "fairlock.rules.locks"
    exec(compile(source, "a variant of step.py", "exec"), module.__dict__)
    apply: Apply = module.apply
    return apply


def with_tombstones_of(seconds: int) -> Apply:
    """Short tombstones, so that a world in which they end stays small."""
    return variant(("TOMBSTONE = 60_000_000", f"TOMBSTONE = {seconds * 1_000_000}"))

"""Rules that differ from the true ones in a few words of their source: shorter graves, or deliberate mistakes.

The words must occur exactly once in rules.py. So a variant whose words have drifted away fails loudly, instead of
testing nothing.
"""

import types
from pathlib import Path

from holdfast.doorman import rules
from tests.doorman.door import Apply

SOURCE = Path(str(rules.__file__)).read_text(encoding="utf-8")


def variant(*changes: tuple[str, str]) -> Apply:
    """`apply` of rules in which every (words, other words) has been replaced."""
    source = SOURCE
    for words, others in changes:
        times = source.count(words)
        if times != 1:
            raise LookupError(f"these words occur {times} times in rules.py, not once:\n{words}")
        source = source.replace(words, others)
    module = types.ModuleType("holdfast.doorman.variant")
    module.__package__ = "holdfast.doorman"
    exec(compile(source, "a variant of rules.py", "exec"), module.__dict__)
    apply: Apply = module.apply
    return apply


def with_graves_of(seconds: int) -> Apply:
    """Short graves, so that a world in which they end stays small."""
    return variant(("GRAVE = 60_000_000", f"GRAVE = {seconds * 1_000_000}"))

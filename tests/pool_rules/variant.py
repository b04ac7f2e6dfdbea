"""Rules that differ from the true ones in a few words of their source: deliberate mistakes.

The words must occur exactly once in one of the two files. So a variant whose words have drifted away fails loudly,
instead of testing nothing.
"""

import types
from pathlib import Path

from fairlock.rules.pools import queue, step
from tests.pool_rules.walkthrough import Rules

SOURCES = {m.__name__: Path(str(m.__file__)).read_text(encoding="utf-8") for m in (queue, step)}


def variant(words: str, others: str) -> Rules:
    """The rules in which these words have been replaced."""
    times = sum(source.count(words) for source in SOURCES.values())
    if times != 1:
        raise LookupError(f"these words occur {times} times in the rules, not once:\n{words}")
    made = {}
    for name, source in SOURCES.items():
        module = types.ModuleType(f"{name}_variant")
        module.__package__ = "fairlock.rules.pools"
        exec(compile(source.replace(words, others), f"a variant of {name}", "exec"), module.__dict__)
        made[name.rpartition(".")[2]] = module
    made["step"].__dict__.update(queues=made["queue"])
    return Rules(made["step"].apply, made["step"].step)

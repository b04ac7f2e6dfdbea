"""Rules that differ from the true ones in a few words of their source: deliberate mistakes.

The words must occur exactly once in one of the three files. So a variant whose words have drifted away fails loudly,
instead of testing nothing.
"""

import types
from pathlib import Path

from holdfast.pool import counter, line, rules
from tests.pool.bench import Rules

SOURCES = {m.__name__: Path(str(m.__file__)).read_text(encoding="utf-8") for m in (rules, line, counter)}


def variant(words: str, others: str) -> Rules:
    """The rules in which these words have been replaced."""
    times = sum(source.count(words) for source in SOURCES.values())
    if times != 1:
        raise LookupError(f"these words occur {times} times in the rules, not once:\n{words}")
    made = {}
    for name, source in SOURCES.items():
        module = types.ModuleType(f"{name}_variant")
        module.__package__ = "holdfast.pool"
        exec(compile(source.replace(words, others), f"a variant of {name}", "exec"), module.__dict__)
        made[name.rpartition(".")[2]] = module
    made["counter"].__dict__.update(apply=made["rules"].apply, in_time=made["rules"].in_time, lines=made["line"])
    return Rules(made["rules"].apply, made["counter"].step)

"""How names are kept in a store, and how a pattern finds them."""

import re
from collections.abc import Callable

SEPARATOR = "\x1f"  # between namespace and name; no name can contain it


def line_key(pool: str) -> str:
    """Under which key the line of a pool is kept (its name complete, with the namespace). No lock can be called so."""
    namespace, separator, name = pool.rpartition(SEPARATOR)
    return f"{namespace}{separator}{SEPARATOR}{name}"


def is_line(key: str) -> bool:
    """Whether this is the key of such a line, and not that of a lock."""
    before, separator, _ = key.rpartition(SEPARATOR)
    return bool(separator) and (not before or before.endswith(SEPARATOR))


def glob(pattern: str) -> Callable[[str], bool]:
    """A test for names: * is anything, ? is one character, the rest is itself."""
    text = "".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    compiled = re.compile(text, re.DOTALL)
    return lambda name: compiled.fullmatch(name) is not None

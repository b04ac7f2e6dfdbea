"""How names are kept in a store, how a pattern finds them, and what else a store may be called in a URL."""

import re
from collections.abc import Callable

ALIASES = {"postgres": "postgresql", "valkey": "redis", "valkeys": "rediss"}
SEPARATOR = "\x1f"  # between namespace and name; no name can contain it
AUDIT = SEPARATOR * 3


def canonical(url: str) -> str:
    """Return the URL with the name that its store has here: postgres:// is postgresql://, valkey:// is redis://."""
    scheme, rest = url[: (end := url.find("://"))], url[end:]
    name, plus, kind = scheme.partition("+")
    return f"{ALIASES[name]}{plus}{kind}{rest}" if end > 0 and name in ALIASES else url


def split_key(key: str) -> tuple[str, str] | None:
    """Return the namespace and the name of a lock from its key; None if it is the key of something else."""
    namespace, separator, name = key.rpartition(SEPARATOR)
    return None if separator and (not namespace or SEPARATOR in namespace) else (namespace, name)


def queue_key(pool: str) -> str:
    """Return the key of the queue of a pool (its name complete, with the namespace). No lock can have this key."""
    namespace, separator, name = pool.rpartition(SEPARATOR)
    return f"{namespace}{separator}{SEPARATOR}{name}"


def is_queue(key: str) -> bool:
    """Return True if this is the key of such a queue, and not that of a lock, an item or audit lines."""
    before, separator, _ = key.rpartition(SEPARATOR)
    return bool(separator) and (not before or before.find(SEPARATOR) == len(before) - 1 > 0)


def audit_key(name: str) -> str:
    """Return the key of the audit lines of a name (complete, with the namespace). Nothing else has such a key: no
    other one begins with three separators."""
    return AUDIT + name


def is_audit(key: str) -> bool:
    return key.startswith(AUDIT)


def glob(pattern: str) -> Callable[[str], bool]:
    """Return a test for names: * is anything, ? is one character, the rest is itself."""
    first, *others = re.split(r"\*+", pattern)
    text = _fixed(first)
    if others:
        # What stands between two stars matches where it can first, for good: an atomic group. With plain `.*` each star
        # would try every place of every other, and seven of them would take hours.
        text += "".join(f"(?>.*?{_fixed(each)})" for each in others[:-1]) + ".*" + _fixed(others[-1])
    compiled = re.compile(text, re.DOTALL)
    return lambda name: compiled.fullmatch(name) is not None


def _fixed(text: str) -> str:
    return "".join("." if c == "?" else re.escape(c) for c in text)

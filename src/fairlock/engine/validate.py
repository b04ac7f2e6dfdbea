"""Check names, durations, weights. Bad input gets a sentence with the cure in it, before anything is sent."""

import math
from datetime import timedelta
from typing import Any

from ..errors import ConfigError
from ..rules.locks import EXCLUSIVE

Seconds = float | timedelta

SMALLEST_LEASE = 0.5
LONGEST = 10 * 365 * 86400.0
LONGEST_NAME = 200  # bytes
TIMEOUT_MAX = 9223372036.0  # threading.TIMEOUT_MAX, without importing threading here


class _Own:
    """Stands for the object's own timeout in a signature."""

    def __repr__(self) -> str:
        return "<the object's own>"


OWN: Any = _Own()


class _Keep:
    """Stands for the present body in a signature."""

    def __repr__(self) -> str:
        return "<as it is>"


KEEP: Any = _Keep()

_good_names: set[str] = set()


def name(value: Any, what: str = "A name") -> str:
    if value in _good_names if type(value) is str else False:
        return value  # type: ignore[no-any-return]
    if not isinstance(value, str):
        raise ConfigError(f"{what} is a string, not {type(value).__name__}.")
    if not value:
        raise ConfigError(f"{what} must not be empty. Say what it protects, for example 'nightly-report'.")
    size = len(_utf8(value, what)) if len(value) <= LONGEST_NAME else len(value)
    if size > LONGEST_NAME:
        more = "more than " if len(value) > LONGEST_NAME else ""
        raise ConfigError(
            f"{what} has at most {LONGEST_NAME} bytes; {value[:20]!r}… has {more}{size}. Use safe_name() of it."
        )
    _no_control(value, what)
    if len(_good_names) > 4096:
        _good_names.clear()
    _good_names.add(value)
    return value


def label(value: Any, what: str) -> str:
    """Check an owner or a note: shown to people, never compared."""
    if not isinstance(value, str):
        raise ConfigError(f"{what} is a string, not {type(value).__name__}.")
    if len(value) > 200:
        raise ConfigError(f"{what} has at most 200 characters, this one {len(value)}.")
    _utf8(value, what)
    _no_control(value, what)
    return value


def ticket(value: Any) -> str:
    """Check a ticket, whole or as `snapshot` shortens it."""
    if not isinstance(value, str):
        raise ConfigError(f"A ticket is a string, not {type(value).__name__}.")
    if not 0 < len(value) <= 200 or not value.isascii() or not value.isprintable() or " " in value:
        raise ConfigError(
            f"A ticket has 1 to 200 letters, digits and signs, and no spaces; {shown(value)} is none. "
            "Use the one that snapshot() or `fairlock show` prints."
        )
    return value


def pattern(value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"A pattern is a string, not {type(value).__name__}.")
    if len(value) > 1000:
        raise ConfigError(f"A pattern has at most 1000 characters, this one {len(value)}. Use * for the long part.")
    return value


def of_lock_all(value: Any) -> str:
    """Return the value, which must be the name of a lock."""
    if not isinstance(value, str):
        raise ConfigError(f"lock_all() takes names, and locks as lock() makes them, not {type(value).__name__}.")
    return value


def callback(value: Any, what: str) -> Any:
    if value is not None and not callable(value):
        raise ConfigError(f"{what} is a function, or None; not {shown(value)}.")
    return value


def handle(value: Any) -> str:
    """Check a handle: a secret of the caller's own choice."""
    if not isinstance(value, str) or not 1 <= len(value) <= 1000:
        raise ConfigError("A handle is a text of 1 to 1000 characters that is hard to guess, such as uuid4().hex.")
    _utf8(value, "A handle", secret=True)
    return value


def _utf8(value: str, what: str, secret: bool = False) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        shown = "this one" if secret else repr(value[:20])
    raise ConfigError(f"{what} must be text that UTF-8 can write; {shown} has half a character.")


def is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f"


def _no_control(value: str, what: str) -> None:
    if not value.isprintable() and any(is_control(c) for c in value):
        raise ConfigError(f"{what} has no control characters; {value[:40]!r} has one. Take it out.")


def seconds(value: Any, what: str) -> float:
    """Check a duration greater than zero."""
    number = _number(value, what)
    if not 0 < number <= LONGEST:
        raise ConfigError(f"{what} is a number of seconds greater than 0 and less than ten years, not {shown(value)}.")
    return number


def lease(value: Any, what: str = "A lease") -> float:
    number = seconds(value, what)
    if number < SMALLEST_LEASE:
        raise ConfigError(
            f"{what} is at least {SMALLEST_LEASE} s, not {shown(value)}: any pause would lose a shorter one."
        )
    return number


def duration(text: str, what: str) -> float:
    """Return '5', '0.5', '500ms', '2m', '1h' or '1d' as seconds."""
    for unit, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0), ("", 1.0)):
        if text.endswith(unit):
            try:
                return float(text.removesuffix(unit)) * factor
            except ValueError:
                break
    raise ConfigError(f"{what} is a span like 5, 0.5, 500ms, 2m or 1h, not {shown(text)}.")


def rest(value: Any) -> float:
    """Check how long an item rests that is given back: 0 or more."""
    return 0.0 if not isinstance(value, bool) and value == 0 else seconds(value, "A rest")


def optional(value: Any, what: str) -> float | None:
    return None if value is None else seconds(value, what)


def timeout(value: Any) -> float | None:
    """Check a timeout: None or -1 forever, 0 = only try. Other values raise the errors of threading."""
    if value is None:
        return None
    number = _number(value, "A timeout")
    if number == -1:
        return None
    if not number >= 0:
        raise ConfigError(f"A timeout is a number of seconds, 0 or more, or None to wait forever; not {shown(value)}.")
    if number > TIMEOUT_MAX:
        raise OverflowError(f"A timeout is a number of seconds, not {shown(value)}; use None to wait forever.")
    return number


def blocking(flag: Any, limit: Any) -> float | None:
    """Return threading's acquire(blocking, timeout) as one number: None forever, 0 = only try."""
    if flag:
        return timeout(limit)
    if limit is not None and limit != -1:
        raise ConfigError("acquire(blocking=False) does not wait; leave the timeout out.")
    return 0.0


def slots(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"The number of slots is a whole number, not {shown(value)}.")
    if not 1 <= value < EXCLUSIVE:
        raise ConfigError(f"A semaphore has 1 to {EXCLUSIVE - 1} slots, not {shown(value)}.")
    return value


def weight(value: Any, capacity: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"A weight is a whole number of slots, not {shown(value)}.")
    if value < 1 or (capacity and value > capacity):
        most = f"1 to {capacity}" if capacity else "1 or more"
        raise ConfigError(f"A weight is {most} slots, not {shown(value)}.")
    return value


def _number(value: Any, what: str) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{what} is a number of seconds or a timedelta, not {shown(value)}.")
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return math.inf if value > 0 else -math.inf


def shown(value: Any) -> str:
    """Return the repr of a value for a sentence, cut if it is long."""
    if isinstance(value, int) and abs(value) >= 10**20:
        return "a number of more than 20 digits"
    text = repr(value[:40]) if isinstance(value, str | bytes) and len(value) > 40 else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"

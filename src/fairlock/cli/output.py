"""Sentences for people on stderr, tables and JSON on stdout."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .parse_arguments import Arguments


def err(sentence: str) -> None:
    """Write one sentence to stderr. A closed stderr is not an error."""
    try:
        os.write(2, f"fairlock: {plain(sentence)}\n".encode(errors="backslashreplace"))
    except OSError:
        pass


def out(text: str) -> None:
    """Write to stdout. A closed stdout is not an error; a full disk is an OSError."""
    if sys.stdout is not None:
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:  # LC_ALL=C.ISO-8859-1, PYTHONIOENCODING=ascii, a name that is not text
            code = sys.stdout.encoding
            sys.stdout.write(text.replace("…", "...").encode(code, "backslashreplace").decode(code))
        sys.stdout.flush()


def result(args: "Arguments", value: Any, text: str = "") -> None:
    """Print the result of a command: the value with --json, else the text, if there is one and -q is not given."""
    if args["json"]:
        json(value)
    elif text and not args["quiet"]:
        out(f"{text}\n")


def unchanged(args: "Arguments", value: Any, sentence: str) -> None:
    """Print why a command did nothing: the value with --json, else the sentence on stderr."""
    if args["json"]:
        json(value)
    else:
        err(sentence)


def json(value: Any) -> None:
    from json import dumps  # imported only for --json

    out(dumps(value) + "\n")


def in_foreground(fd: int) -> bool:
    """Return True if this process is in the foreground of this terminal."""
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:  # another terminal than ours has no job control
        return True


def plain(text: str) -> str:
    """Escape control characters: a note is the text of another user and must not control this terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def short_duration(seconds: float) -> str:
    """Return a duration for a table: 0.4s, 12s, 3m05s, 2h07m, 3d04h."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f}s"
    whole = round(seconds)
    for size, unit, small, below in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // small:02d}{below}"
    return f"{whole}s"


def duration(seconds: float) -> str:
    """Return a duration for a sentence, as the library writes it: 0.4 s, 41 s; or 3m05s."""
    return f"{short_duration(seconds)[:-1]} s" if seconds < 60 else short_duration(seconds)


def plural(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table. A column is as wide as its widest cell; the last one is not padded."""
    cells = [head, *[tuple(plain(cell) for cell in row) for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head) - 1)]
    return "".join(
        "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip() + "\n"
        for row in cells
    )

"""Sentences for people on stderr, tables and JSON on stdout."""

import os
import sys
from collections.abc import Sequence
from typing import Any


def err(sentence: str) -> None:
    """One sentence on stderr. A closed stderr is no reason to fail: nobody wanted to read it."""
    try:
        os.write(2, f"holdfast: {plain(sentence)}\n".encode(errors="backslashreplace"))
    except OSError:
        pass


def out(text: str) -> None:
    """On stdout. Whoever closed it does not want to know; if it is full, the caller hears of it."""
    if sys.stdout is not None:
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:  # LC_ALL=C.ISO-8859-1, PYTHONIOENCODING=ascii, a name that is no text
            code = sys.stdout.encoding
            sys.stdout.write(text.replace("…", "...").encode(code, "backslashreplace").decode(code))
        sys.stdout.flush()


def json(value: Any) -> None:
    from json import dumps  # only those who ask for JSON pay for it

    out(dumps(value) + "\n")


def plain(text: str) -> str:
    """Without control characters: a note is somebody else's text and must not steer this terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def span(seconds: float) -> str:
    """A duration at a glance: 0.4s, 12s, 3m05s, 2h07m, 3d04h."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f}s"
    whole = round(seconds)
    for size, unit, small, below in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // small:02d}{below}"
    return f"{whole}s"


def for_(seconds: float) -> str:
    """A duration in a sentence, as the library writes it: 0.4 s, 41 s; or 3m05s."""
    return f"{span(seconds)[:-1]} s" if seconds < 60 else span(seconds)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Columns as wide as their widest cell; the last one is free."""
    cells = [head, *[tuple(plain(cell) for cell in row) for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head) - 1)]
    return "".join(
        "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip() + "\n"
        for row in cells
    )

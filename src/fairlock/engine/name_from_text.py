"""Make a valid name from any text: a path, a URL, a user's input, which may be too long or not printable.

What is valid stays as it is, so names in use do not change. Anything else becomes a beginning that people can read and
a digest of the whole text, so two texts that begin alike are two names. The name of a text is itself valid, and its own
name: only a text that already is another text's name shares it.

Rejected alternatives: percent-encoding (it makes long texts longer), and a digest of every text (no person could read
`ls`).
"""

from __future__ import annotations

from ..errors import ConfigError
from . import validate

MARK = "~"
DIGITS = 40  # 160 bits: two texts with the same digest cannot be found, not even on purpose
READABLE = validate.LONGEST_NAME - DIGITS - len(MARK)


def safe_name(text: str) -> str:
    """Make a valid name from any text: the text itself if it is one, else its beginning, `~` and a digest of the whole.

    The same text always gives the same name, in every process and version. Different texts give different names.
    ConfigError if it is not a str.
    """
    if not isinstance(text, str):
        raise ConfigError(f"safe_name() makes a name of a str, not of {type(text).__name__}. Use str(…) or .decode().")
    try:
        return validate.name(text)
    except ConfigError:
        from hashlib import sha256

        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
        readable = "".join("_" if validate.is_control(c) or "\ud800" <= c <= "\udfff" else c for c in text[:READABLE])
        return readable.encode()[:READABLE].decode(errors="ignore") + MARK + digest

"""JSON in a store carries a checksum: the last element of its array.

A bit that changed on a disk, or a row that was edited by hand, must never be taken for a grant or for a free place. A
CRC is enough, and cheap: it guards against accidents, not against a client that may write the row anyway.

Tabs are left out, because they only separate waiters, and a store with a column of type JSON drops them.
"""

from zlib import crc32

from .json_text import parse, to_json


def seal(text: str, beside: str = "") -> str:
    """Return this array with its checksum. `beside`: other fields of the row that the checksum covers."""
    return f"{text[:-1]},{_sum(text, beside)}]"


def unseal(text: str, beside: str = "") -> str:
    """Return the array without its checksum. ValueError if the checksum does not fit, or if this is no such text."""
    if type(text) is not str:
        raise ValueError(f"{type(text).__name__} in place of text")
    body, _, end = text.rpartition(",")
    body += "]"
    if end == f"{_sum(body, beside)}]":
        return body
    parts = parse(text)  # a store may have formatted it in its own way
    if type(parts) is list and len(parts) > 1:
        body = to_json(parts[:-1])
        if parts[-1] == _sum(body, beside):
            return body
    raise ValueError("its checksum does not fit")


def _sum(text: str, beside: str) -> int:
    return crc32((beside + text.replace("\t", "")).encode())

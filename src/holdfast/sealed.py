"""What a store keeps as JSON carries a checksum: the last element of its array.

A bit that changed on a disk, or a row that was edited by hand, must never be taken for a grant or for a free place. A
CRC is enough, and cheap: it is there against accidents, not against somebody who may write the row anyway.

Tabs are left out, because they only part those in line, and a store with a column of type JSON drops them.
"""

import json
from zlib import crc32

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


def seal(text: str, beside: str = "") -> str:
    """This array with its checksum. `beside`: what is kept beside it and must belong to it."""
    return f"{text[:-1]},{_sum(text, beside)}]"


def unseal(text: str, beside: str = "") -> str:
    """The array without its checksum. ValueError if it does not fit, or if this is no such text."""
    if type(text) is not str:
        raise ValueError(f"{type(text).__name__} in place of text")
    body, _, end = text.rpartition(",")
    body += "]"
    if end == f"{_sum(body, beside)}]":
        return body
    parts = json.loads(text)  # a store may have laid it out in its own way
    if type(parts) is list and len(parts) > 1:
        body = _encode(parts[:-1])
        if parts[-1] == _sum(body, beside):
            return body
    raise ValueError("its checksum does not fit")


def _sum(text: str, beside: str) -> int:
    return crc32((beside + text.replace("\t", "")).encode())

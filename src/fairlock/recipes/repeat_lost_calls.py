"""Repeats a call to Redis whose reply was lost. The scripts of the recipes recognize a repetition by its token."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
TRIES = 3  # how often a request is sent while its outcome is unknown


def repeat_if_lost(call: Callable[[], T]) -> tuple[T, bool]:
    """Return the reply, and True if the call was repeated. After the third lost reply raise the error of redis-py."""
    from redis.exceptions import ConnectionError, TimeoutError

    turn = 1
    while True:
        try:
            return call(), turn > 1
        except (ConnectionError, TimeoutError):
            if turn == TRIES:
                raise
            turn += 1

"""The options of a lock as types, for checkers only: never imported by a program that runs."""

from collections.abc import Callable
from typing import Generic, TypedDict, TypeVar

from .validate import Seconds

L = TypeVar("L")


class SemaphoreOptions(TypedDict, Generic[L], total=False):
    lease: Seconds | None
    max_hold: Seconds | None
    at_least: Seconds | None
    fair: bool
    note: str
    on_lost: Callable[[L], object] | None
    on_asked: Callable[[L], object] | None
    handle: str | None


class LockOptions(SemaphoreOptions[L], Generic[L], total=False):
    local_handoff: bool
    reentrant: bool

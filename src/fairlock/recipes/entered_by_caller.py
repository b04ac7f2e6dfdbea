"""What each thread or task has entered by `with`, where many of them enter one object, or one of them several times."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ..errors import NotHeld


class EnteredByCaller:
    """A stack for each thread or task: what it has entered last is left first."""

    def __init__(self, current: Callable[[], Hashable], what: str) -> None:
        """current: returns the thread or task that calls. what: how an error names the object."""
        self._current = current
        self._what = what
        self._stacks: dict[Hashable, list[Any]] = {}

    def push(self, thing: Any) -> None:
        self._stacks.setdefault(self._current(), []).append(thing)

    def pop(self) -> Any:
        """Return what this thread or task has entered last. NotHeld if it has entered nothing."""
        caller = self._current()
        stack = self._stacks.get(caller)
        if not stack:
            raise NotHeld(f"This thread or task leaves {self._what} without having entered it.")
        thing = stack.pop()
        if not stack:
            del self._stacks[caller]
        return thing

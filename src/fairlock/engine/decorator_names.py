"""Names for the decorator: the name of a function, and names that are filled from the arguments of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ConfigError
from . import validate


class CallNames:
    """ConfigError if this is no function, a generator, or one for the other face."""

    def __init__(self, function: Callable[..., Any], blocking: bool) -> None:
        import inspect

        self.name = getattr(function, "__qualname__", repr(function))
        if not callable(function):
            raise ConfigError(f"A lock decorates functions, not {type(function).__name__}.")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigError(
                f"{self.name}() is a generator: it would hold the lock only while it is made. "
                "Use `with lock.hold():` inside it."
            )
        self.full_name = f"{function.__module__}.{self.name}"
        if inspect.iscoroutinefunction(function) == blocking:
            raise ConfigError(
                f"{self.name}() is async; this is the blocking client. Use fairlock.aio.connect()."
                if blocking
                else f"{self.name}() is not async; this is the asyncio client. Use fairlock.connect()."
            )
        self._signature = inspect.signature(function)

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments


def fill(template: str, arguments: Mapping[str, Any]) -> str:
    """Fill a name such as 'order:{order}' from the arguments of the call."""
    if "{" not in template and "}" not in template:
        return template
    try:
        return validate.name(template.format_map(arguments))
    except (KeyError, IndexError, AttributeError, ValueError) as bad:
        if isinstance(bad, ConfigError):
            raise
        known = ", ".join(arguments) or "none"
        raise ConfigError(f"The name {template!r} cannot be filled ({bad}); the arguments are: {known}.") from None

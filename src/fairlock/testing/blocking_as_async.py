"""Blocking objects wrapped as those of asyncio: what does I/O can be awaited, and does it right there."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..engine.run_sync import run

ASKS = {
    "acquire", "release", "locked", "renew", "extend", "downgrade", "detach", "attach", "ask", "audit", "evict",
    "resize", "snapshot", "ping", "repair", "close", "add", "add_many", "remove", "items", "counts", "update", "done",
    "delete", "leader", "run", "wait", "build",
}  # fmt: skip


def wrap(thing: Any) -> Any:
    """Return a blocking object of the library dressed, and anything else as it is."""
    if isinstance(thing, Mapping):
        return {name: wrap(each) for name, each in thing.items()}
    ours = type(thing).__module__.startswith(("fairlock.sync.", "fairlock.recipes.")) and not isinstance(thing, tuple)
    return Dressed(thing) if ours else thing


def unwrap(thing: Any) -> Any:
    if isinstance(thing, Dressed):
        return thing._thing
    if inspect.iscoroutinefunction(thing):  # a function to decorate

        @functools.wraps(thing)
        def blocking(*args: Any, **kwargs: Any) -> Any:
            return run(thing(*args, **kwargs))

        return blocking
    return thing


class Dressed:
    """A blocking object whose I/O can be awaited, as if it belonged to asyncio."""

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._thing, name)
        return Method(value, name in ASKS) if callable(value) else wrap(value)

    def __call__(self, function: Any) -> Any:
        return Method(self._thing(unwrap(function)), True)

    async def __aenter__(self) -> Any:
        return wrap(self._thing.__enter__())

    async def __aexit__(self, *error: object) -> Any:
        return self._thing.__exit__(*error)

    def __repr__(self) -> str:
        return repr(self._thing)


class Method:
    """A bound method, or a decorated function, of something dressed."""

    def __init__(self, call: Callable[..., Any], awaited: bool) -> None:
        self._call = call
        self._awaited = awaited

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._awaited:
            return self._awaitable(args, kwargs)
        result = self._call(*map(unwrap, args), **kwargs)
        if inspect.isfunction(result):  # a decorator, or what it made
            if args and inspect.iscoroutinefunction(args[0]):
                return Method(result, True)
            return lambda function: Method(result(unwrap(function)), True)
        return wrap(result)

    async def _awaitable(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return wrap(self._call(*map(unwrap, args), **{name: unwrap(each) for name, each in kwargs.items()}))

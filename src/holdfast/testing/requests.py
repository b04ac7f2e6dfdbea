"""How often a client turns to its store: statements where the store counts them, else reads, writes and commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backends.memory import MemoryBackend


def requests_of(*clients: Any) -> Callable[[], int]:
    """What gives how many requests these clients, which are not dressed, have sent since this call."""
    counts = [_counted(client._desk.backend) for client in clients]
    before = sum(count() for count in counts)
    return lambda: sum(count() for count in counts) - before


def _counted(backend: Any) -> Callable[[], int]:
    store = getattr(backend, "store", None)
    hands = getattr(store, "hands", None)
    if hands is not None:
        return lambda: int(hands.statements)
    sent: list[str] = []

    def count(owner: Any, method: str) -> None:
        made = getattr(owner, method, None)
        if made is not None:

            def counted(*args: Any, **options: Any) -> Any:
                found = made(*args, **options)
                if found is not None or method != "at_once":  # else it was not made
                    sent.append(method)
                return found

            setattr(owner, method, counted)

    made_at_once = ("at_once",) if isinstance(backend, MemoryBackend) else ("ask", "at_once")  # all of them, by that
    for method in ("read", "write") if store is not None else made_at_once:
        count(store if store is not None else backend, method)
    for method in ("_get", "_put") if store is not None else ():
        count(backend, method)
    return lambda: len(sent)

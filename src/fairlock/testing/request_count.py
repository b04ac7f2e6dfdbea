"""Count a client's requests to its store: statements where the store counts them, else reads, writes and commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..stores.cas import CasBackend
from ..stores.memory import MemoryBackend


def count_requests(*clients: Any) -> Callable[[], int]:
    """Return a function that counts the requests of these clients, without their adapters, since this call."""
    counts = {_counted(client._session.backend) for client in clients}
    before = sum(count() for count in counts)
    return lambda: sum(count() for count in counts) - before


def _counted(backend: Any) -> Callable[[], int]:
    store: Any = backend.store if isinstance(backend, CasBackend) else None
    if store is not None and "executor" in vars(store):  # a SQL store counts its statements
        return store.executor.count_statements  # type: ignore[no-any-return]
    sent: list[str] = []

    def count(owner: Any, method: str) -> None:
        made = getattr(owner, method, None)
        if made is not None:

            def counted(*args: Any, **options: Any) -> Any:
                found = made(*args, **options)
                if found is not None or "nowait" not in method:  # else it was not made
                    sent.append(method)
                return found

            setattr(owner, method, counted)

    made_nowait = (
        ("call_nowait",) if isinstance(backend, MemoryBackend) else ("call", "call_nowait")
    )  # all of them, by that
    for method in ("read", "write") if store is not None else made_nowait:
        count(store if store is not None else backend, method)
    for method in ("read_nowait", "write_nowait") if store is not None else ():
        count(store, method)
    return lambda: len(sent)

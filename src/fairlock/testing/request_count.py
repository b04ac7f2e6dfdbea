"""Count a client's requests to its store: statements where the store counts them, else reads, writes and commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..stores.base import Backend, Store
from ..stores.cas import CasBackend
from ..stores.memory import MemoryBackend


def count_requests(*clients: Any) -> Callable[[], int]:
    """Return a function that counts the requests of these clients, without their adapters, since this call."""
    counts = {_counted(client._session.backend) for client in clients}
    before = sum(count() for count in counts)
    return lambda: sum(count() for count in counts) - before


def _counted(backend: Backend) -> Callable[[], int]:
    store = backend.store if isinstance(backend, CasBackend) else None
    if store is not None and store.count_statements is not None:
        return store.count_statements
    sent: list[str] = []

    def count(owner: Backend | Store, method: str) -> None:
        made = getattr(owner, method)

        def counted(*args: Any, **options: Any) -> Any:
            found = made(*args, **options)
            if found is not None or "nowait" not in method:  # else it was not made
                sent.append(method)
            return found

        setattr(owner, method, counted)

    if store is not None:
        for method in ("read", "write", "read_nowait", "write_nowait"):
            count(store, method)
    else:  # in memory every call is made by call_nowait
        for method in ("call_nowait",) if isinstance(backend, MemoryBackend) else ("call", "call_nowait"):
            count(backend, method)
    return lambda: len(sent)

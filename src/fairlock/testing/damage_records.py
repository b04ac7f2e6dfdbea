"""Makes records unreadable, on any store, for tests."""

from __future__ import annotations

from typing import Any

import pytest

from ..stores.cas import CasBackend
from ..stores.pool_items_as_rows import Rows
from .harness import Harness

NONSENSE = '["damaged"]'


async def damage(harness: Harness, name: str, item: str = "") -> None:
    """Damage what the store keeps of this lock, or of this item of the pool of that name.

    The engine of all databases can write any text in the place of a record. A site does the rest: `damage` of Site.
    """
    if harness.site.damage(name, item):
        return
    backend: Any = harness.unwrapped(harness.observer)._session.backend
    key = backend.prefix + name if isinstance(backend, CasBackend) else ""
    if item and key:
        items = backend.store.items
        key = items._prefix(key) + item if isinstance(items, Rows) else ""
    if not key:
        pytest.skip("this store keeps no text that could be damaged, or its site has no damage()")
    seen = await backend.store.read(key)
    assert seen.row is not None
    await backend.store.write(seen.row._replace(body=NONSENSE), seen.version, seen.now, ())

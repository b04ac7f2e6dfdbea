"""Records that nobody can read any more: how a test makes them, on any store."""

from __future__ import annotations

from typing import Any

import pytest

from ..backends.cas import CasBackend
from .world import World

NONSENSE = '["damaged"]'


async def damage(world: World, name: str, item: str = "") -> None:
    """Damage what the store keeps of this lock, or of this item of the pool of that name.

    The engine of all databases can write any text in the place of a record. A site does the rest: `damage` of Site.
    """
    hook = getattr(world.site, "damage", None)
    if hook is not None and hook(name, item):
        return
    backend: Any = world.undressed(world.eye)._desk.backend
    key = backend.prefix + name if isinstance(backend, CasBackend) else ""
    if item and key:
        begin = getattr(backend.pools.shelf, "_prefix", None)  # where items are rows like all others
        key = begin(key) + item if begin is not None else ""
    if not key:
        pytest.skip("this store keeps no text that could be damaged, or its site has no damage()")
    seen = await backend.store.read(key)
    assert seen.row is not None
    await backend.store.write(seen.row._replace(body=NONSENSE), seen.version, seen.now, ())

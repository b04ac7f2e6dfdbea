"""The behaviours that every store must show. Two lines run them over yours:

    from fairlock.testing.suite import *
    harness = matrix({"mine": lambda folder: f"mine://{folder}/locks"})

Each behaviour is written once and runs with threads and with tasks, most of them for every kind of lock. The function
gets an empty folder for each test and returns a URL that no other test uses.
"""

from importlib import import_module
from typing import Any

import pytest

from .parametrize import matrix as matrix

PARTS = (
    "acquire", "release", "close", "cancellation", "queue", "lock_kinds", "leases", "extend_and_handles",
    "lost_replies", "snapshot", "evict", "ask_to_release", "detach_attach", "reentrancy", "lock_all", "decorators",
    "validation", "pool_items", "pool_queue", "pool_leases", "contention", "damaged_records",
)  # fmt: skip

pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in PARTS))


_behaviours: dict[str, Any] = {}
for _part in PARTS:
    _members = vars(import_module(f"{__name__}.{_part}"))
    _behaviours.update({name: each for name, each in _members.items() if name.startswith("Test")})

globals().update(_behaviours)
__all__ = ["matrix", *_behaviours]

"""The recipes for asyncio. `FairMutex` and `RedisPyLock` take clients of redis.asyncio, the others of fairlock.aio."""

from ..election import Leader
from ..idempotent_base import InProgress
from .build_missing_value import build
from .election import Election, elect, leader
from .fair_mutex import FairMutex
from .idempotent import Idempotent, idempotent
from .locks_by_type_and_number import RemoteLocks
from .once_per_tick import Once, once
from .path_tree_locks import Tree, TreeLease, TreeLock, tree
from .redis_py_lock import RedisPyLock
from .throttle import Throttle, throttle

__all__ = [
    "Election", "FairMutex", "Idempotent", "InProgress", "Leader", "Once", "RedisPyLock", "RemoteLocks", "Throttle",
    "Tree", "TreeLease", "TreeLock", "build", "elect", "idempotent", "leader", "once", "throttle", "tree",
]  # fmt: skip

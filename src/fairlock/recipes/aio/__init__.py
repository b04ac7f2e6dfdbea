"""The recipes for asyncio. `FairMutex` and `RedisPyLock` take clients of redis.asyncio, the others of fairlock.aio."""

from ..election import Leader as Leader
from ..idempotent import InProgress as InProgress
from .build_missing_value import build as build
from .election import Election as Election
from .election import elect as elect
from .election import leader as leader
from .fair_mutex import FairMutex as FairMutex
from .idempotent import Idempotent as Idempotent
from .idempotent import idempotent as idempotent
from .locks_by_type_and_number import RemoteLocks as RemoteLocks
from .once_per_tick import Once as Once
from .once_per_tick import once as once
from .path_tree_locks import Tree as Tree
from .path_tree_locks import TreeLease as TreeLease
from .path_tree_locks import TreeLock as TreeLock
from .path_tree_locks import tree as tree
from .redis_py_lock import RedisPyLock as RedisPyLock
from .throttle import Throttle as Throttle
from .throttle import throttle as throttle

__all__ = [
    "Election", "FairMutex", "Idempotent", "InProgress", "Leader", "Once", "RedisPyLock", "RemoteLocks", "Throttle",
    "Tree", "TreeLease", "TreeLock", "build", "elect", "idempotent", "leader", "once", "throttle", "tree",
]  # fmt: skip

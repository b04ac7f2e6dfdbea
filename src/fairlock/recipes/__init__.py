"""What programs build on locks, and locks with interfaces from other libraries. Each is a page of code: read it to see
how to build on fairlock.

On every store, with a client of fairlock; each is also a method of the client, `locks.elect(name)`:

    elect          one of several processes leads; `leader` shows which
    once           one execution per hour (or day, or minute), over all machines
    idempotent     one result per key
    throttle       at most that many starts in any window of time
    build          one process rebuilds a value that is missing, the others wait and read it
    tree           locks on paths: a writer excludes everyone below and above

With interfaces from other libraries:

    ExpLock        one key with an expiry: excludes all programs that use `SET key token NX PX`
    FairMutex      lock and unlock, first come, first served
    RedisPyLock    in the place of redis-py's own: client.lock("x", lock_class=RedisPyLock)
    ZMutexSet      mutexes as the members of a sorted set, of which a worker acquires any that is free

These take a client of redis-py (`pip install 'fairlock[redis]'`). `fairlock.recipes.aio` has the second, the third and
RemoteLocks for asyncio.

    RemoteLocks    mutexes and readers-writer locks by type and number, on any store; takes a client of fairlock
    NoSQLTasks     mutexes with a payload in a table of OCI's NoSQL service (`pip install 'fairlock[oci]'`)
"""

from .build_missing_value import build as build
from .election import Election as Election
from .election import Leader as Leader
from .election import elect as elect
from .election import leader as leader
from .fair_mutex import FairMutex as FairMutex
from .idempotent import Idempotent as Idempotent
from .idempotent import InProgress as InProgress
from .idempotent import idempotent as idempotent
from .locks_by_type_and_number import RemoteLocks as RemoteLocks
from .locks_by_type_and_number import StaleLock as StaleLock
from .oci_nosql_mutex_table import NoSQLTasks as NoSQLTasks
from .once_per_tick import Once as Once
from .once_per_tick import once as once
from .path_tree_locks import Tree as Tree
from .path_tree_locks import TreeLease as TreeLease
from .path_tree_locks import TreeLock as TreeLock
from .path_tree_locks import tree as tree
from .redis_py_lock import RedisPyLock as RedisPyLock
from .redis_set_nx_lock import AlreadyAcquiredLockError as AlreadyAcquiredLockError
from .redis_set_nx_lock import ExpLock as ExpLock
from .redis_set_nx_lock import TooManyLockAttemptsError as TooManyLockAttemptsError
from .redis_sorted_set_mutexes import ZMutexSet as ZMutexSet
from .throttle import Throttle as Throttle
from .throttle import throttle as throttle

__all__ = [
    "AlreadyAcquiredLockError", "Election", "ExpLock", "FairMutex", "Idempotent", "InProgress", "Leader", "NoSQLTasks",
    "Once", "RedisPyLock", "RemoteLocks", "StaleLock", "Throttle", "TooManyLockAttemptsError", "Tree", "TreeLease",
    "TreeLock", "ZMutexSet", "build", "elect", "idempotent", "leader", "once", "throttle", "tree",
]  # fmt: skip

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

from .build_missing_value import build
from .election import Election, Leader, elect, leader
from .fair_mutex import FairMutex
from .idempotent import Idempotent, idempotent
from .idempotent_base import InProgress
from .locks_by_type_and_number import RemoteLocks, StaleLock
from .oci_nosql_mutex_table import NoSQLTasks
from .once_per_tick import Once, once
from .path_tree_locks import Tree, TreeLease, TreeLock, tree
from .redis_py_lock import RedisPyLock
from .redis_set_nx_lock import AlreadyAcquiredLockError, ExpLock, TooManyLockAttemptsError
from .redis_sorted_set_mutexes import ZMutexSet
from .throttle import Throttle, throttle

__all__ = [
    "AlreadyAcquiredLockError", "Election", "ExpLock", "FairMutex", "Idempotent", "InProgress", "Leader", "NoSQLTasks",
    "Once", "RedisPyLock", "RemoteLocks", "StaleLock", "Throttle", "TooManyLockAttemptsError", "Tree", "TreeLease",
    "TreeLock", "ZMutexSet", "build", "elect", "idempotent", "leader", "once", "throttle", "tree",
]  # fmt: skip

"""Locks with interfaces from other libraries, each a page of code: read them to see how to build on fairlock.

    ExpLock        one key with an expiry: excludes all programs that use `SET key token NX PX`
    FairMutex      lock and unlock, first come, first served
    RedisPyLock    in the place of redis-py's own: client.lock("x", lock_class=RedisPyLock)
    ZMutexSet      mutexes as the members of a sorted set, of which a worker acquires any that is free

These take a client of redis-py (`pip install 'fairlock[redis]'`). `fairlock.recipes.aio` has the second, the third and
RemoteLocks for asyncio.

    RemoteLocks    mutexes and readers-writer locks by type and number, on any store; takes a client of fairlock
    NoSQLTasks     mutexes with a payload in a table of OCI's NoSQL service (`pip install 'fairlock[oci]'`)
"""

from .fair_mutex import FairMutex as FairMutex
from .locks_by_type_and_number import RemoteLocks as RemoteLocks
from .locks_by_type_and_number import StaleLock as StaleLock
from .oci_nosql_mutex_table import NoSQLTasks as NoSQLTasks
from .redis_py_lock import RedisPyLock as RedisPyLock
from .redis_set_nx_lock import AlreadyAcquiredLockError as AlreadyAcquiredLockError
from .redis_set_nx_lock import ExpLock as ExpLock
from .redis_set_nx_lock import TooManyLockAttemptsError as TooManyLockAttemptsError
from .redis_sorted_set_mutexes import ZMutexSet as ZMutexSet

__all__ = [
    "AlreadyAcquiredLockError", "ExpLock", "FairMutex", "NoSQLTasks", "RedisPyLock", "RemoteLocks", "StaleLock",
    "TooManyLockAttemptsError", "ZMutexSet",
]  # fmt: skip

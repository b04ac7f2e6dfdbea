"""Locks on paths for threads. A writer excludes everyone below and above its path (path_tree_locks_base.py)."""

from __future__ import annotations

from ..engine.run_sync import run
from ..engine.validate import OWN, Seconds
from ..sync import Locks
from .await_if_needed import WithBlock
from .path_tree_locks_base import TreeBase, TreeLeaseBase, TreeLockBase


class TreeLease(TreeLeaseBase, WithBlock["TreeLease"]):
    """A path that is held to read or to write it. A context manager: leaving it releases it."""

    def release(self) -> None:
        """Release it; a second call does nothing. LeaseLost if it had been lost, StoreError if the store is down."""
        run(self._release())


class TreeLock(TreeLockBase, WithBlock[TreeLease]):
    """The reader or the writer of a path. `with` enters with a TreeLease, or raises LockTimeout."""

    _lease_type = TreeLease

    def acquire(self, blocking: bool = True, timeout: Seconds | None = OWN) -> TreeLease | None:
        """Return a TreeLease, or None if it could not be acquired in time: None or -1 = wait forever, 0 = only try."""
        got: TreeLease | None = run(self._attempt(self._limit(blocking, timeout)))
        return got


class Tree(TreeBase[Locks, TreeLock]):
    """A path in a tree of names, such as the files of a repository.

        with locks.tree("repo/src/api").write():
            ...                                   # no other client reads or writes repo/src/api, below it or above it

    """

    _lock_type = TreeLock


tree = Tree

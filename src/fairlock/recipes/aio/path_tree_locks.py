"""Locks on paths for tasks. A writer excludes everyone below and above its path (path_tree_locks_base.py)."""

from __future__ import annotations

from ...aio import Locks
from ...engine.validate import OWN, Seconds
from ..await_if_needed import AsyncWithBlock
from ..path_tree_locks_base import TreeBase, TreeLeaseBase, TreeLockBase


class TreeLease(TreeLeaseBase, AsyncWithBlock["TreeLease"]):
    """A path that is held to read or to write it. A context manager: leaving it releases it, and a loss inside cancels
    the task that entered."""

    async def release(self) -> None:
        """Release it; a second call does nothing. LeaseLost if it had been lost, StoreError if the store is down."""
        await self._release()


class TreeLock(TreeLockBase, AsyncWithBlock[TreeLease]):
    """The reader or the writer of a path. `async with` enters with a TreeLease, or raises LockTimeout."""

    _lease_type = TreeLease

    async def acquire(self, blocking: bool = True, timeout: Seconds | None = OWN) -> TreeLease | None:
        """Return a TreeLease, or None if it could not be acquired in time: None or -1 = wait forever, 0 = only try."""
        got: TreeLease | None = await self._attempt(self._limit(blocking, timeout))
        return got


class Tree(TreeBase[Locks, TreeLock]):
    """A path in a tree of names, such as the files of a repository.

        async with locks.tree("repo/src/api").write():
            ...

    The same as `fairlock.recipes.Tree`, with a client of fairlock.aio.
    """

    _lock_type = TreeLock


tree = Tree

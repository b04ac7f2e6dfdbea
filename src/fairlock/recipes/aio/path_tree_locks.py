"""Locks on paths for tasks. A writer excludes everyone below and above its path (path_tree_locks_base.py)."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from ...aio import Locks
from ...engine.validate import OWN, Seconds
from ..path_tree_locks_base import TreeBase, TreeLeaseBase, TreeLockBase


class TreeLease(TreeLeaseBase):
    """A path that is held to read or to write it. A context manager: leaving it releases it, and a loss inside cancels
    the task that entered."""

    async def release(self) -> None:
        """Release it; a second call does nothing. LeaseLost if it had been lost, StoreError if the store is down."""
        await self._release()

    async def __aenter__(self) -> Self:
        self.ensure_held()
        await self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._leave(error)


class TreeLock(TreeLockBase):
    """The reader or the writer of a path. `async with` enters with a TreeLease, or raises LockTimeout."""

    _lease_type = TreeLease

    async def acquire(self, blocking: bool = True, timeout: Seconds | None = OWN) -> TreeLease | None:
        """Return a TreeLease, or None if it could not be acquired in time: None or -1 = wait forever, 0 = only try."""
        got: TreeLease | None = await self._attempt(self._limit(blocking, timeout))
        return got

    async def __aenter__(self) -> TreeLease:
        got: TreeLease = await self._enter()
        return got

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._leave(error)


class Tree(TreeBase[Locks, TreeLock]):
    """A path in a tree of names, such as the files of a repository.

        async with locks.tree("repo/src/api").write():
            ...

    The same as `fairlock.recipes.Tree`, with a client of fairlock.aio.
    """

    _lock_type = TreeLock


tree = Tree

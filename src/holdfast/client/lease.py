"""What a thread holds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Self

from ..errors import LeaseLost
from ..flow import change, check, enter, short
from ..flow.check import Seconds
from ..flow.release import release
from ..flow.run import run
from ..flow.seat import Hold


class Lease(Hold):
    """A hold on a lock, for as long as it is renewed. Any thread may use it; another process may, by its ticket.

    Leaving a `with` block releases it. It renews itself by default.
    """

    __slots__ = ()

    def renew(self) -> None:
        """Renew now instead of when the keeper would. LeaseLost if it is gone, BackendError if nobody answers."""
        run(change.renew(self._desk, self))

    def release(self) -> None:
        """Give it back; a second time does nothing.

        LeaseLost if it had been lost. BackendError if the store cannot be told: it may be called again, and the
        keeper goes on trying until the lease ends.
        """
        try:
            if not short.leave(self._desk, self):
                run(release(self._desk, self))
        except KeyboardInterrupt:
            release_surely(self)
            raise

    def extend(self, seconds: Seconds) -> None:
        """Let it last for at least so many seconds from now, even if this process never renews it again: its lease
        becomes that long, and a max_hold ends no sooner. LeaseLost if it is gone, BackendError if nobody answers."""
        run(change.extend(self._desk, self, check.lease(seconds)))

    def downgrade(self) -> None:
        """From writer to reader, without letting anybody write in between."""
        run(change.downgrade(self._desk, self))

    def detach(self, lease: Seconds) -> str:
        """Let it live on without this process for so long. The ticket for `attach`, here or elsewhere."""
        return run(change.detach(self._desk, self, check.lease(lease)))

    def __enter__(self) -> Self:
        self.ensure_held()
        enter.enter(self._desk, self, sys._getframe(1))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        leave_surely(self, error)


def leave_surely(lease: Lease, error: BaseException | None) -> None:
    """Leave `with`, even if Ctrl-C comes in the middle of it: it is left, and then the interrupt goes on."""
    try:
        enter.no_longer_entered(lease._desk, lease)
        if not short.leave(lease._desk, lease):
            run(enter.leave(lease._desk, lease, error))
    except KeyboardInterrupt:
        leave_again(lease, error)
        raise


# The rest is not written where it is needed: a function with a lambda in it is dearer from its first line on.


def leave_again(lease: Lease, error: BaseException | None) -> None:
    """After a Ctrl-C in the middle of it, or even before it began."""
    surely(lambda: run(enter.leave(lease._desk, lease, error)))


def release_surely(lease: Lease) -> None:
    surely(lambda: run(release(lease._desk, lease, quiet=True)))


def undo_surely(lease: Lease) -> None:
    """An acquire has ended by an exception."""
    surely(lambda: run(enter.undo(lease._desk, lease)))


def surely(undo: Callable[[], None]) -> None:
    """Undo, even if Ctrl-C comes again in the middle of it."""
    for _ in range(3):
        try:
            undo()
            return
        except (KeyboardInterrupt, LeaseLost):
            continue

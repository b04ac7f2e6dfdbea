"""What a thread holds."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from ..engine import lease_ops, validate, with_block
from ..engine.ask_to_release import ReleaseRequest
from ..engine.grant import LeaseBase
from ..engine.release import release
from ..engine.run_sync import run
from ..engine.validate import Seconds
from . import acquire_release
from .acquire_release import surely


class Held(LeaseBase):
    """What Lease and Item share."""

    __slots__ = ()

    def renew(self) -> None:
        """Renew now, before the keeper does. LeaseLost if it was lost, StoreError if the store does not reply."""
        run(lease_ops.renew(self._session, self))

    def extend(self, seconds: Seconds) -> None:
        """Let it last for at least this many seconds from now, even if this client never renews it again: its lease
        becomes that long, never shorter, and a max_hold ends no sooner. On SQLite a lock still ends with its process;
        `detach` does not. LeaseLost if it was lost, StoreError without a reply."""
        run(lease_ops.extend(self._session, self, validate.lease(seconds)))

    def seal(self, transaction: object) -> None:
        """Seal a transaction, as its last call before COMMIT: a holder that has lost it cannot commit, and no other
        client acquires it before the transaction has ended.

        It is a connection (or Session) of SQLAlchemy, or a connection of psycopg, PyMySQL or sqlite3, in the database
        of the lock or pool. LeaseLost if the lease is not held, StoreError if the statement fails: then roll back.
        ConfigError if it is another database, or if the store has no transactions. See docs/seal.md.
        """
        run(lease_ops.seal(self._session, self, transaction))


class Lease(Held):
    """A held lock, for as long as it is renewed. Any thread may use it; another process may, by its ticket.

    Leaving a `with` block releases it. It renews itself by default.
    """

    __slots__ = ()

    @property
    def asked_to_release(self) -> ReleaseRequest | None:
        """Which client asks this holder to release it, and why; None if none does. It stays held. See `on_asked`."""
        return self._session.release_requests.get(self._grant.ticket)

    def release(self) -> None:
        """Release it; a second call does nothing.

        LeaseLost if it had been lost. StoreError if the store cannot be reached: it may be called again, and the
        keeper keeps trying until the lease ends.
        """
        try:
            acquire_release.give_back(self._session, self)
        except KeyboardInterrupt:
            surely(release, self._session, self, quiet=True)
            raise

    def downgrade(self) -> None:
        """Change from writer to reader, without a writer in between."""
        run(lease_ops.downgrade(self._session, self))

    def detach(self, lease: Seconds) -> str:
        """Let it last for this long without this process. Return the ticket for `attach`, here or elsewhere."""
        return run(lease_ops.detach(self._session, self, validate.lease(lease)))

    def __enter__(self) -> Self:
        self.ensure_held()
        with_block.enter(self._session, self, sys._getframe(1))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:  # here and not in a function: Ctrl-C could come before its first line
            with_block.no_longer_entered(self._session, self)
            acquire_release.leave(self._session, self, error)
        except KeyboardInterrupt:
            surely(with_block.leave, self._session, self, error)
            raise

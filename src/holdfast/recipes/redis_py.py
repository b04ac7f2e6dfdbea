"""What RedisPyLock is for threads and for tasks alike: redis-py's constructor, its exceptions, and its token.

redis-py tells holders apart by a token that it keeps in `lock.local.token`. Programs read it there, or put it there to
release what another process took. So here a token stands for a lease of ours: it is made of the lease's ticket and
fence. A token that the caller chose becomes the lease's note, and a look at who is inside brings back its ticket.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from ..backends.contract import Backend, Unknown
from ..doorman import Entrant
from ..errors import BackendError, ConfigError, LeaseLost, NotHeld
from ..flow import check
from ..flow.desk import Desk
from ..flow.handles import extend_entrant
from ..flow.seat import Hold

ROOM = 10 / 9  # a client gives its lease up a tenth before the end; that shall not be before redis-py's timeout


class Local(Protocol):
    """Where the token of whoever asks is kept: his thread's or task's, or one for all."""

    token: bytes | None

    def forget(self, token: bytes) -> None:
        """This one has been released, whoever has it."""


class Terms:
    """What a RedisPyLock was asked for, and how it says no."""

    _blocks: bool
    """The colour: whether it is for threads."""
    _local: tuple[type[Local], type[Local]]
    """With thread_local and without."""

    def __init__(
        self,
        redis: Any,
        name: str | bytes | memoryview,
        timeout: float | None = None,
        sleep: float = 0.1,
        blocking: bool = True,
        blocking_timeout: float | None = None,
        thread_local: bool = True,
        raise_on_release_error: bool = True,
    ) -> None:
        from ..backends.redis.client import refuse_colour

        self.redis = redis
        self.name = name
        self.timeout = timeout
        self.sleep = sleep
        self.blocking = blocking
        self.blocking_timeout = blocking_timeout
        self.thread_local = bool(thread_local)
        self.raise_on_release_error = raise_on_release_error
        with self._their_errors():
            refuse_colour(redis, self._blocks)
            self._name = check.name(_text(name))
            life = check.optional(timeout, "timeout")
        self.local: Local = self._local[0 if self.thread_local else 1]()
        self._leases: dict[bytes, Any] = {}  # what is held through this object, by token
        self._span = None if life is None else max(life * ROOM, check.SMALLEST_LEASE)

    def _options(self, token: str | bytes | None) -> dict[str, Any]:
        """For `Locks.lock`. Without a timeout: a lease that renews itself without end."""
        chosen = {"note": _text(token), "local_handoff": False} if token else {}
        return {"lease": self._span, "max_hold": self.timeout, **chosen}

    def _limit(self, blocking: bool | None, blocking_timeout: float | None) -> float | None:
        """How long to wait: None = for ever, 0 = only try. Less than nothing is nothing, and not for ever."""
        if not (self.blocking if blocking is None else blocking):
            return 0.0
        limit = self.blocking_timeout if blocking_timeout is None else blocking_timeout
        return None if limit is None else max(limit, 0.0)

    def _token(self, doing: str) -> bytes:
        """The token of whoever asks, or what redis-py says to one who has none or cannot do this with it."""
        from redis.exceptions import LockError

        token = self.local.token
        if token is None:
            raise LockError(f"Cannot {doing} an unlocked lock", lock_name=self._name)
        if doing != "release" and self.timeout is None:
            raise LockError(f"Cannot {doing} a lock with no timeout", lock_name=self._name)
        return token

    def _keep(self, lease: Hold, chosen: str | bytes | None) -> None:
        token = token_of(lease, chosen)
        self._leases[token] = lease
        self.local.token = token

    def _forget(self, token: bytes) -> None:
        self.local.forget(token)  # first: a token without a lease would be looked for at the server
        self._leases.pop(token, None)

    @contextmanager
    def _their_errors(self) -> Iterator[None]:
        """Our errors as redis-py's, each with ours as its cause."""
        from redis import exceptions

        name = str(self.name)
        try:
            yield
        except (LeaseLost, NotHeld) as error:
            raise exceptions.LockNotOwnedError(str(error), lock_name=name) from error
        except ConfigError as error:
            raise exceptions.LockError(str(error), lock_name=name) from error
        except (BackendError, Unknown) as error:
            raise exceptions.ConnectionError(str(error)) from error

    def _at_exit(self, trouble: Exception, error: BaseException | None) -> None:
        """The release at the end of a `with` block failed. That does not hide what the body raised."""
        from redis.exceptions import LockError

        if isinstance(trouble, LockError) and not self.raise_on_release_error:
            import logging

            logging.getLogger("holdfast").warning("At the end of its block %r was not held: %s", self.name, trouble)
        elif error is not None:
            error.add_note(str(trouble))
        else:
            raise trouble

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} {self.name!r}>"


def token_of(lease: Hold, chosen: str | bytes | None) -> bytes:
    """The token under which this lease is known. Of each lease its own: a ticket may be passed on, a fence is not."""
    return _text(chosen or f"{lease.ticket}:{lease.fence}").encode()


async def ticket_of(backend: Backend, name: str, token: bytes) -> str:
    """The ticket of the one inside who has this token, whichever process let it in. NotHeld if there is none."""
    return (await _inside(backend, name, token))[0].ticket


async def extend_elsewhere(desk: Desk, name: str, token: bytes, seconds: float, more: bool) -> None:
    """Let what another client holds last so many seconds from now, or so many more. It is not attached: its holder
    goes on renewing it, and if that one is gone, it ends. NotHeld if there is none."""
    seconds = check.seconds(seconds, "The time by which a lock is extended")
    one, left = await _inside(desk.backend, name, token)
    if not await extend_entrant(desk, name, one, seconds + left if more else seconds):
        raise _nobody(name)


async def _inside(backend: Backend, name: str, token: bytes) -> tuple[Entrant, float]:
    """The one inside that has this token, and for how many seconds more."""
    text = _text(token)
    record, now = await backend.look(name)
    for one in record.inside:
        if text == one.note or text.partition(":")[0] == one.ticket:
            if one.expires > now:
                return one, (one.expires - now) / 1e6
    raise _nobody(name)


def _nobody(name: str) -> NotHeld:
    return NotHeld(f"Nobody is inside {name!r} with this token: released, expired, or never there.")


def _text(value: str | bytes | memoryview) -> str:
    if isinstance(value, str):
        return value
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        raise ConfigError("Names and tokens are text in UTF-8 here, and these bytes are not.") from None

"""RedisPyLock for threads and for tasks, written once: redis-py's constructor, its exceptions, its token, every step.

redis-py distinguishes holders by a token that it keeps in `lock.local.token`. Programs read it there, or put it there
to release what another process acquired. So here a token stands for a lease of ours: it is made of the lease's ticket
and fence. A token that the caller chose becomes the lease's note, by which its ticket is found among the holders.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..engine import validate
from ..engine.grant import LeaseBase
from ..engine.public_session import ClientSession
from ..errors import ConfigError, LeaseLost, NotHeld, StoreError
from ..rules.locks import Entry
from ..stores.base import OutcomeUnknown
from .await_if_needed import await_if_needed

if TYPE_CHECKING:
    from .redis_py_migration_key import PlainKey

ROOM = 10 / 9  # a client gives up its lease a tenth before the end; that must not be before redis-py's timeout


class Local(Protocol):
    """The place of the caller's token: of its thread or task, or one for all."""

    token: bytes | None

    def forget(self, token: bytes) -> None:
        """Forget this token, which has been released."""


class RedisPyLockBase:
    """The options, the tokens, the errors and every step of a RedisPyLock, for both faces. A step is a coroutine.

    `_locks` is a client of either face, and what its methods return is awaited if it has to be.
    """

    _blocks: bool
    """True for threads, False for tasks."""
    _local: tuple[type[Local], type[Local]]
    """Where tokens are kept: with thread_local and without."""

    @property
    def _locks(self) -> Any:
        """The client of fairlock that belongs to `self.redis`."""
        raise NotImplementedError

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
        *,
        also: str | bytes | bool | None = None,
    ) -> None:
        from ..stores.redis.address_from_client import refuse_runtime

        self.redis = redis
        self.name = name
        self.timeout = timeout
        self.sleep = sleep
        self.blocking = blocking
        self.blocking_timeout = blocking_timeout
        self.thread_local = bool(thread_local)
        self.raise_on_release_error = raise_on_release_error
        with self._their_errors():
            refuse_runtime(redis, self._blocks)
            self._name = validate.name(_text(name))
            life = validate.optional(timeout, "timeout")
            if also is not None and not isinstance(also, (str, bytes, bool)):
                raise ConfigError("also is True, or the name of the key that redis-py's own Lock uses.")
        self._plain: PlainKey | None = None
        self.local: Local = self._local[0 if self.thread_local else 1]()
        self._leases: dict[bytes, Any] = {}  # what is held through this object, by token
        self._lease = None if life is None else max(life * ROOM, validate.SMALLEST_LEASE)
        if also:
            from .redis_py_migration_key import PlainKey

            self._plain = PlainKey(redis, name if also is True else also, timeout, self._lease)

    def _options(self, token: str | bytes | None) -> dict[str, Any]:
        """Return the options for `Locks.lock`. Without a timeout: a lease that renews itself without end."""
        chosen = {"note": _text(token), "local_handoff": False} if token else {}
        ends = None if self._plain is not None else self.timeout  # else the time would count before it has the key
        return {"lease": self._lease, "max_hold": ends, **chosen}

    def _limit(self, blocking: bool | None, blocking_timeout: float | None) -> float | None:
        """Return how long to wait: None = forever, 0 = only try. A negative time is 0, not forever."""
        if not (self.blocking if blocking is None else blocking):
            return 0.0
        limit = self.blocking_timeout if blocking_timeout is None else blocking_timeout
        return None if limit is None else max(limit, 0.0)

    def _token(self, doing: str) -> bytes:
        """Return the caller's token. Raises redis-py's error if there is none, or if it does not allow this action."""
        from redis.exceptions import LockError

        token = self.local.token
        if token is None:
            raise LockError(f"Cannot {doing} an unlocked lock", lock_name=self._name)
        if doing != "release" and self.timeout is None:
            raise LockError(f"Cannot {doing} a lock with no timeout", lock_name=self._name)
        return token

    def _keep(self, lease: LeaseBase, chosen: str | bytes | None) -> None:
        token = token_for(lease, chosen)
        self._leases[token] = lease
        self.local.token = token

    def _forget(self, token: bytes) -> None:
        self.local.forget(token)  # first: a token without a lease would be searched for in the store
        self._leases.pop(token, None)

    # -- the steps

    def _new_lock(self, token: str | bytes | None = None) -> Any:
        with self._their_errors():
            return self._locks.lock(self._name, **self._options(token))

    async def _acquire(self, lock: Any, limit: float | None, token: str | bytes | None) -> bool:
        with self._their_errors():
            until = None if limit is None else self._locks.session.clock() + limit
            lease = await await_if_needed(lock.acquire(timeout=limit))
            if lease is not None and self._plain is not None:
                held = token_for(lease, token)
                if not await self._plain.acquire(self._locks.session, lease, held, until, self.sleep):
                    lease = None
            if lease is not None:
                self._keep(lease, token)
            return lease is not None

    async def _release(self) -> None:
        token = self._token("release")
        with self._their_errors():
            try:
                lease = await self._held(token)
            except (LeaseLost, NotHeld):
                self._forget(token)
                raise
            try:
                await self._locks.session.runtime.shield(self._release_both(lease, token))
            except (StoreError, KeyboardInterrupt):
                raise  # it may be released again
            except BaseException:  # lost; or cancelled, and then the release is finished nevertheless
                self._forget(token)
                raise
            self._forget(token)

    async def _release_both(self, lease: Any, token: bytes) -> None:
        """Release the key of redis-py's own Lock, if it is held too, and the lease."""
        had_key = self._plain is None or await self._plain.drop(token)
        await await_if_needed(lease.release())
        if not had_key and self._plain is not None:
            raise self._plain.not_owned(self._name)

    async def _is_locked(self) -> bool:
        lock = self._new_lock()
        with self._their_errors():
            if self._plain is not None and await self._plain.is_set():
                return True
            return bool(await await_if_needed(lock.locked()))

    async def _is_owned(self) -> bool:
        token = self.local.token
        lease = self._leases.get(token or b"")
        if token is None or (lease is not None and not lease.held):
            return False
        with self._their_errors():
            try:
                await find_holder(self._locks.session, self._name, token)
                return self._plain is None or await self._plain.is_set(token)
            except NotHeld:
                return False

    async def _set_end(self, action: str, seconds: float, more: bool) -> Literal[True]:
        """Let it last this many seconds from now, or (more) this many seconds longer."""
        token = self._token(action)
        with self._their_errors():
            session, lease = self._locks.session, self._leases.get(token)
            if lease is None:
                await extend_elsewhere(session, self._name, token, seconds, more)
            else:
                await session.set_end(lease, seconds, more)
            if self._plain is not None and not await self._plain.extend(token, seconds, more):
                if lease is not None:
                    session.lose(lease, self._plain.loss)
                raise self._plain.not_owned(self._name)
        return True

    async def _held(self, token: bytes) -> Any:
        """Return the lease of a token: ours, or one that another process acquired and whose token was brought here."""
        lease = self._leases.get(token)
        if lease is None:
            entry, _ = await find_holder(self._locks.session, self._name, token)
            lease = self._leases[token] = await await_if_needed(self._locks.attach(self._name, entry.ticket))
        return lease

    # -- errors

    def _not_acquired(self) -> Exception:
        from redis.exceptions import LockError

        return LockError("Unable to acquire lock within the time specified", lock_name=self._name)

    @contextmanager
    def _their_errors(self) -> Iterator[None]:
        """Raise our errors as redis-py's, each with ours as its cause."""
        from redis import exceptions

        name = str(self.name)
        try:
            yield
        except (LeaseLost, NotHeld) as error:
            raise exceptions.LockNotOwnedError(str(error), lock_name=name) from error
        except ConfigError as error:
            raise exceptions.LockError(str(error), lock_name=name) from error
        except (StoreError, OutcomeUnknown) as error:
            raise exceptions.ConnectionError(str(error)) from error

    def _at_exit(self, trouble: Exception, error: BaseException | None) -> None:
        """Report that the release at the end of a `with` block failed, without hiding what the block raised."""
        from redis.exceptions import LockError

        if isinstance(trouble, LockError) and not self.raise_on_release_error:
            import logging

            logging.getLogger("fairlock").warning("At the end of its block %r was not held: %s", self.name, trouble)
        elif error is not None:
            error.add_note(str(trouble))
        else:
            raise trouble

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} {self.name!r}>"


def token_for(lease: LeaseBase, chosen: str | bytes | None) -> bytes:
    """Return the token of this lease. It is unique: a ticket may be passed on, a fence is not."""
    return _text(chosen or f"{lease.ticket}:{lease.fence}").encode()


async def extend_elsewhere(session: ClientSession, name: str, token: bytes, seconds: float, more: bool) -> None:
    """Let what another client holds last this many seconds from now, or (more) this many longer. It is not attached:
    its holder keeps renewing it, and if that process has ended, it ends. NotHeld if there is none."""
    seconds = validate.seconds(seconds, "The time by which a lock is extended")
    entry, rest = await find_holder(session, name, token)
    if not await session.extend_entry(name, entry, seconds + rest if more else seconds):
        raise _no_holder(name)


async def find_holder(session: ClientSession, name: str, token: bytes) -> tuple[Entry, float]:
    """Return the holder with this token and the seconds that its lease still lasts. NotHeld if there is none."""
    text = _text(token)
    state, now = await session.read(name)
    for entry in state.holders:
        if text == entry.note or text.partition(":")[0] == entry.ticket:
            if entry.expires > now:
                return entry, (entry.expires - now) / 1e6
    raise _no_holder(name)


def _no_holder(name: str) -> NotHeld:
    return NotHeld(f"No client holds {name!r} with this token: released, expired, or never acquired.")


def _text(value: str | bytes | memoryview) -> str:
    if isinstance(value, str):
        return value
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        raise ConfigError("Names and tokens are text in UTF-8 here, and these bytes are not.") from None

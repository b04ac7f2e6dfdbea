"""What the pools of the two faces share: everything that does no I/O."""

from __future__ import annotations

from typing import Any, Generic

from . import validate
from .lock_base import HoldingT
from .pool_request import BACK_OFF, ItemRequest
from .refuse_pickling import NotPickled
from .validate import Seconds


class PoolBase(NotPickled, Generic[HoldingT]):
    """A set of named items with a JSON body, without the part that waits."""

    _holding_type: Any

    def __init__(self, locks: Any, name: str, lease: float) -> None:
        self._locks = locks
        self._session = locks._session
        self._lease = lease
        self._request = ItemRequest(name, lease)

    @property
    def name(self) -> str:
        return self._request.name

    def hold(
        self,
        *,
        finish: bool = False,
        timeout: Seconds | None = None,
        key: str | None = None,
        renew: bool = True,
        back_off: Seconds = BACK_OFF,
    ) -> HoldingT:
        """Return a context manager for one use. It enters with an Item, or raises LockTimeout.

        A clean block finishes the item (finish=True) or releases it; one that raises releases it after `back_off`.
        """
        request = self._wanted(key, renew)
        limit, back_off = validate.timeout(timeout), validate.rest(back_off)
        return self._holding_type(self, request, limit, bool(finish), back_off)  # type: ignore[no-any-return]

    def _wanted(self, key: str | None, renew: bool) -> ItemRequest:
        if key is None and renew:
            return self._request
        wanted = validate.name(key, "A key") if key is not None else ""
        return ItemRequest(self._request.name, self._lease, wanted, bool(renew))

    def __repr__(self) -> str:
        package = "fairlock" if self._session.runtime.blocking else "fairlock.aio"
        return f"<{package}.Pool {self.name!r}>"

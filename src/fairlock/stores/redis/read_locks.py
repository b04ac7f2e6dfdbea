"""The part of the store that reads: one lock, many, the time. Changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ...rules.locks import LockState
from ..base import OutcomeUnknown, SeenLock, unanswered
from . import encoding, errors
from .busy_name_index import SLOT
from .encoding import pack
from .lua_scripts import READ_STATE
from .reply_reader import ReplyError
from .send_and_redirect import Dispatcher, RoutedCommand, script_command


class Reads(Dispatcher):
    """The part of the backend that reads."""

    async def look(self, name: str) -> tuple[LockState, int]:
        try:
            return await self.read_state(self.namespace, name)
        except errors.UNREADABLE as bad:
            raise errors.unreadable(bad, name, self.where) from None

    async def read_state(self, namespace: str, name: str) -> tuple[LockState, int]:
        """Do the same in any namespace, but raise one of errors.UNREADABLE for values that are none."""
        request = script_command(READ_STATE, encoding.keys(namespace, name))
        return encoding.decode_state((await self._read(request))[0])

    async def looks(self, pattern: str, idle: bool = False, namespaces: bool = False) -> tuple[list[SeenLock], int]:
        from .read_many_locks import read_locks

        return await read_locks(self, pattern, idle, namespaces)  # type: ignore[arg-type]

    async def _read(self, request: RoutedCommand) -> list[Any]:
        """Send a request that changes nothing. It is sent twice at most; without a reply it raises StoreError."""
        return await self._twice(lambda: self.send(request))

    async def _read_from(self, node: Any, command: bytes) -> list[Any]:
        """Send this command to this server, whatever slots it has."""
        found = await self._twice(lambda: node.request(command, 1))
        if type(found[0]) is ReplyError:
            raise errors.error_for(self.where, found[0])
        return found

    async def _twice(self, read: Callable[[], Awaitable[list[Any]]]) -> list[Any]:
        try:
            return await read()
        except OutcomeUnknown:  # a connection that has been idle may have been dead for long
            pass
        try:
            return await read()
        except OutcomeUnknown as doubt:
            raise unanswered(self.where, doubt) from None

    async def _time(self) -> int:
        return encoding.decode_time((await self._read(RoutedCommand(SLOT, pack("TIME"))))[0])

"""Audit lines in Redis: a list for each name, in the slot of its lock. It outlives the lock's own keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redis.crc import key_slot

from ..base import Backend
from . import encoding
from .encoding import pack
from .errors import Garbage
from .lua_scripts import ADD_AUDIT
from .send_and_redirect import Dispatcher, RoutedCommand

if TYPE_CHECKING:
    from ...rules.locks.audit_lines import AuditLine


class AuditLists(Backend):
    """The part of the backend that keeps audit lines."""

    namespace: str
    _dispatcher: Dispatcher

    async def _read(self, request: RoutedCommand) -> list[Any]:
        raise NotImplementedError

    async def audit(self, name: str) -> list[AuditLine]:
        from ...rules.locks.audit_lines import NEWEST, decode_line

        key = encoding.audit_key(self.namespace, name)
        try:
            lines = (await self._read(RoutedCommand(key_slot(key.encode()), pack("LRANGE", key, 0, NEWEST - 1))))[0]
        except Garbage:
            return []  # the next line is then the first
        found = []
        for line in lines:
            at, _, text = line.decode("utf-8", "replace").partition(" ")
            try:
                found.append(decode_line(int(at), text))
            except (TypeError, ValueError):
                continue  # another program's
        return found

    async def add_audit(self, name: str, line: AuditLine) -> None:
        from ...rules.locks.audit_lines import encode_line

        key = encoding.audit_key(self.namespace, name)
        payload = pack("EVALSHA", ADD_AUDIT.sha, 1, key, encode_line(line))
        await self._dispatcher.send(RoutedCommand(key_slot(key.encode()), payload, ADD_AUDIT))

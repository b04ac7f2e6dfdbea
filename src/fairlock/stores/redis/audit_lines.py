"""Audit lines in Redis: a list for each name, in the slot of its lock. It outlives the lock's own keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redis.crc import key_slot

from . import encoding
from .encoding import pack
from .errors import Garbage
from .lua_scripts import ADD_AUDIT
from .read_locks import Reads
from .send_and_redirect import RoutedCommand, script_command

if TYPE_CHECKING:
    from ...rules.locks.audit_lines import AuditLine


class AuditLists(Reads):
    """The part of the backend that keeps audit lines."""

    def _audit_key(self, name: str) -> str:
        """Return the key of the audit lines. It is in the slot of the lock, and outlives it."""
        return encoding.state_key(self.namespace, name) + ":audit"

    async def audit(self, name: str) -> list[AuditLine]:
        from ...rules.locks.audit_lines import NEWEST, decode_line

        key = self._audit_key(name)
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

        await self.send(script_command(ADD_AUDIT, [self._audit_key(name)], encode_line(line)))

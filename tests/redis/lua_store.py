"""One lock by the Lua alone, with a manual clock: for keys and memory, which the pure rules do not have."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from redis import Redis

from fairlock.rules.locks import Acquire, Command, Granted, LockState, Release, Released, Reply
from fairlock.stores.redis import encoding
from fairlock.stores.redis.lua_scripts import READ_STATE, Script
from tests.redis.differential import Scripts, hooked
from tests.redis.random_histories import BEGIN


class LuaLock:
    def __init__(self, server: Redis, name: str = "played by hand", scripts: Scripts | None = None) -> None:
        self.server = server
        self.keys = encoding.keys("", name)
        self.now = BEGIN
        self._scripts = scripts or hooked()
        for each in (*self._scripts, READ_STATE):
            server.script_load(each.text)

    def say(self, command: Command, unreachable: Collection[str] = ()) -> Reply:
        """By the full step."""
        args = encoding.message_args(command)
        raw = self._call(self._scripts.step, self.keys, *args, *self._inputs(unreachable))
        return encoding.decode_step(raw, command)[0]

    def send(self, command: Command) -> None:
        """Without waiting for the answer, if the server is a pipeline."""
        self._call(self._scripts.step, self.keys, *encoding.message_args(command), *self._inputs())

    def short(self, command: Acquire | Release) -> Reply | None:
        """By the short cut."""
        lock = self.keys[:1]
        if isinstance(command, Acquire):
            fence = self._call(self._scripts.fast_acquire, lock, *encoding.fast_args(command), *self._inputs())
            return None if fence is None else Granted(int(fence), command.lease)
        released = self._call(self._scripts.fast_release, lock, *encoding.fast_args(command), *self._inputs())
        return released and Released(True)

    def look(self) -> LockState:
        return encoding.decode_state(self._call(READ_STATE, self.keys))[0]

    def _inputs(self, unreachable: Collection[str] = ()) -> tuple[int, str]:
        return self.now, f" {' '.join(unreachable)} "

    def _call(self, script: Script, keys: list[str], *args: Any) -> Any:
        return self.server.evalsha(script.sha, len(keys), *keys, *args)

"""One door of the Lua alone, its time turned by hand: for what the pure rules have no word for, keys and memory."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from redis import Redis

from holdfast.backends.redis import layout
from holdfast.backends.redis.scripts import LOOK, Script
from holdfast.doorman import Admitted, Command, Enter, Leave, Left, Record, Reply
from tests.redis.both import EARS, Scripts, hooked, short_words
from tests.redis.lives import BEGIN


class LuaDoor:
    def __init__(self, server: Redis, name: str = "played by hand", scripts: Scripts | None = None) -> None:
        self.server = server
        self.keys = layout.keys("", name)
        self.now = BEGIN
        self._scripts = scripts or hooked()
        for each in (*self._scripts, LOOK):
            server.script_load(each.text)

    def say(self, command: Command, deaf: Collection[str] = ()) -> Reply:
        """By the full step."""
        raw = self._call(self._scripts.step, self.keys, EARS, *layout.words(command), *self._inputs(deaf))
        return layout.reply(raw[:-1])

    def send(self, command: Command) -> None:
        """Without waiting for the answer, if the server is a pipeline."""
        self._call(self._scripts.step, self.keys, EARS, *layout.words(command), *self._inputs())

    def short(self, command: Enter | Leave) -> Reply | None:
        """By the short cut."""
        door = self.keys[:1]
        if isinstance(command, Enter):
            fence = self._call(self._scripts.enter, door, *short_words(command), *self._inputs())
            return None if fence is None else Admitted(int(fence), command.lease)
        return self._call(self._scripts.leave, door, *short_words(command), *self._inputs()) and Left(True)

    def look(self) -> Record:
        return layout.record(self._call(LOOK, self.keys))[0]

    def _inputs(self, deaf: Collection[str] = ()) -> tuple[int, str]:
        return self.now, f" {' '.join(deaf)} "

    def _call(self, script: Script, keys: list[str], *args: Any) -> Any:
        return self.server.evalsha(script.sha, len(keys), *keys, *args)

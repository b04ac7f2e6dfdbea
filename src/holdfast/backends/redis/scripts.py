"""The Lua scripts, each in a file of its own but for the step, with the names by which a server knows them."""

from __future__ import annotations

import os
from typing import NamedTuple

HERE = os.path.dirname(__file__)


class Script(NamedTuple):
    text: str
    sha: str


def load(*names: str) -> Script:
    """The script in these files, one after the other."""
    texts = []
    for name in names:
        with open(os.path.join(HERE, name), encoding="utf-8") as file:
            texts.append(file.read())
    return script("\n".join(texts))


def script(text: str) -> Script:
    from hashlib import sha1

    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def many(one: Script, frame: str = "") -> Script:
    """The same for many doors: see many.lua, which is the frame."""
    body = one.text.replace("call('TIME')", "TIME")
    return script((frame or load("many.lua").text).replace("    -- here\n", body))


ENTER, LEAVE, LOOK = load("enter.lua"), load("leave.lua"), load("look.lua")
STEP = load("record.lua", "hurry.lua", "entrants.lua", "line.lua", "command.lua", "close.lua")

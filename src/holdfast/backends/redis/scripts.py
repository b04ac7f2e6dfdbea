"""The Lua scripts, each in a file of its own, with the name by which a server knows it."""

from __future__ import annotations

import os
from typing import NamedTuple

HERE = os.path.dirname(__file__)


class Script(NamedTuple):
    text: str
    sha: str


def load(name: str) -> Script:
    from hashlib import sha1

    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        text = file.read()
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


ENTER, LEAVE, STEP, LOOK = load("enter.lua"), load("leave.lua"), load("step.lua"), load("look.lua")

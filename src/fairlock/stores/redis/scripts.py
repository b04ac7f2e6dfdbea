"""The Lua scripts with their hashes. The step is joined from six files; every other script is one file."""

from __future__ import annotations

import os
from typing import NamedTuple

HERE = os.path.dirname(__file__)


class Script(NamedTuple):
    text: str
    sha: str


def load(*names: str) -> Script:
    """Join these files into one script."""
    texts = []
    for name in names:
        with open(os.path.join(HERE, name), encoding="utf-8") as file:
            texts.append(file.read())
    return script("\n".join(texts))


def script(text: str) -> Script:
    from hashlib import sha1

    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def make_batch(one: Script, frame: str = "") -> Script:
    """Make a script that runs this one for many locks: see batch.lua, which is the frame."""
    body = one.text.replace("call('TIME')", "TIME")
    return script((frame or load("batch.lua").text).replace("    -- here\n", body))


FAST_ACQUIRE, FAST_RELEASE, READ_STATE = load("fast_acquire.lua"), load("fast_release.lua"), load("read_state.lua")
STEP = load(
    "step_1_read.lua", "step_2_shortcut.lua", "step_3_entries.lua", "step_4_admit.lua", "step_5_command.lua",
    "step_6_write.lua",
)  # fmt: skip

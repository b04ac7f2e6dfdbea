"""The Lua scripts with their hashes. The step of a lock and of a pool are joined from files.

Named numbers (`local SWEEP, … = 16, …`) are replaced by the numbers when a script is loaded. As variables, each of them
would take time in every step: Lua 5.1 has no constants, and a function that uses a variable of the script must find it
again whenever it is created.
"""

from __future__ import annotations

import os
from typing import NamedTuple

HERE = os.path.dirname(__file__)


class Script(NamedTuple):
    text: str
    sha: str


def load(*names: str) -> Script:
    """Join these files into one script."""
    return script(fold(read(*names)))


def put_fast_paths(step: str, acquire: str, release: str) -> str:
    """Put the shared parts of these two scripts into the text of the step: there they are its first part."""
    for name, text in (("FAST_ACQUIRE()", acquire), ("FAST_RELEASE()", release)):
        step = step.replace(name, text.split("-- (", 1)[1].split("-- )", 1)[0].partition("\n")[2])
    return step


def read(*names: str) -> str:
    """Return the text of these files, joined."""
    texts = []
    for name in names:
        with open(os.path.join(HERE, name), encoding="utf-8") as file:
            texts.append(file.read())
    return "\n".join(texts)


def fold(text: str) -> str:
    """Replace the named numbers in this text, and leave out its comments."""
    import re

    numbers: dict[str, str] = {}

    def take(found: re.Match[str]) -> str:
        numbers.update(zip(found[1].split(", "), found[2].split(", "), strict=True))
        return ""

    text = re.sub(r" *--.*", "", text)
    text = re.sub(r"^ *local ([A-Z_]+(?:, [A-Z_]+)*) = (\d+(?:, \d+)*)$", take, text, flags=re.M)
    text = re.sub(r"\b[A-Z_]+\b", lambda found: numbers.get(found[0], found[0]), text)
    return re.sub(r"\n\s*\n", "\n", text)


def script(text: str) -> Script:
    from hashlib import sha1

    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def make_batch(one: Script, frame: str = "") -> Script:
    """Make a script that runs this one for many locks: see batch_fast_steps.lua, which is the frame."""
    body = one.text.replace("redis.call('TIME')", "TIME").replace("call('TIME')", "TIME")
    return script(fold(frame or read("batch_fast_steps.lua")).replace("BODY()\n", body))


FAST_ACQUIRE, FAST_RELEASE, READ_STATE = load("fast_acquire.lua"), load("fast_release.lua"), load("read_state.lua")
ADD_AUDIT = load("add_audit_line.lua")
STEP_FILES = "step_1_read.lua", "step_2_entries.lua", "step_3_sweep.lua", "step_4_command.lua", "step_5_write.lua"
STEP = script(fold(put_fast_paths(read(*STEP_FILES), read("fast_acquire.lua"), read("fast_release.lua"))))

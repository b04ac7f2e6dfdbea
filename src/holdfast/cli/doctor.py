"""`holdfast doctor` and `holdfast schema`: what there is to know about the store.

With --json doctor prints store, span, checks: [{level, text}]; level is ok, note, warning or error. With --repair it
prints name, done: [sentence].
Its exit code is 0, or 69 if the store cannot be reached, or 78 if something has to be changed.
"""

import os
import sys
from typing import TYPE_CHECKING

import holdfast
from holdfast.connect import others_may_read, url_file
from holdfast.errors import BackendError

from . import exits, reach, say
from .words import Said

if TYPE_CHECKING:
    from holdfast import Locks

PINGS = 5
SLOW = 0.05


def doctor(said: Said) -> int:
    if said.command.name == "schema":
        return schema(said)
    if said["repair"] is not None:
        from .repair import repair

        return repair(said)
    code = 0
    with reach.client(said) as locks:
        checks = [*about_us(said, locks)]
        try:
            checks.append(latency(locks))
            checks += reach.examine(locks)
            checks += damage(locks)
        except BackendError as error:
            checks.append(("error", str(error)))
            code = exits.REFUSED if error.refused else exits.UNREACHABLE
        store, span = locks.store, reach.span(locks)
    if not code and any(level == "error" for level, _ in checks):
        code = exits.CONFIG
    if said["json"]:
        say.json({"store": store, "span": span, "checks": [{"level": level, "text": text} for level, text in checks]})
    else:
        loud = [c for c in checks if c[0] in ("warning", "error")] if said["quiet"] else checks
        say.out("".join(lines(level, say.plain(text)) for level, text in loud))
    return code


def lines(level: str, text: str) -> str:
    """On a terminal the sentences are folded, so that the first column stays one."""
    if not sys.stdout.isatty():
        return f"{level:<8} {text}\n"
    from shutil import get_terminal_size
    from textwrap import fill

    width = max(40, get_terminal_size().columns)
    return fill(text, width, initial_indent=f"{level:<8} ", subsequent_indent=" " * 9) + "\n"


def about_us(said: Said, locks: "Locks") -> list[tuple[str, str]]:
    version = ".".join(map(str, sys.version_info[:3]))
    found = [("ok", f"holdfast {holdfast.__version__} on Python {version}.")]
    url = said["url"] or os.environ.get("HOLDFAST_URL") or None
    file = url_file(url)
    source = "-u" if said["url"] else "HOLDFAST_URL" if url else "HOLDFAST_URL_FILE" if file else ""
    held = f", in the file {file[0]!r}" if file else ""
    found.append(("ok", f"The store is {locks.store}, " + (f"chosen by {source}{held}." if source else "the default.")))
    if file and others_may_read(file[0]):
        found.append(("warning", f"All users of this machine may read the URL in the file {file[0]!r}. Use chmod 600."))
    elif not file and "@" in (said["url"] or ""):
        found.append(("note", "What stands behind -u is shown by `ps` to all users, a password too. Use -u @FILE."))
    return found


def damage(locks: "Locks") -> list[tuple[str, str]]:
    from shlex import quote

    names = [one.name for one in locks.snapshot().resources if one.kind == "damaged"]
    cure = "nobody can acquire it. `holdfast doctor --repair"
    return [("error", f"The record of {name!r} is damaged: {cure} {quote(name)}` resets it.") for name in names]


def latency(locks: "Locks") -> tuple[str, str]:
    locks.ping()  # the first one opens the store
    best = min(locks.ping() for _ in range(PINGS))
    return ("ok" if best < SLOW else "warning", f"It answers in {best * 1000:.2g} ms.")


def schema(said: Said) -> int:
    if said.words:
        said.options["url"] = said.words[0]
    with reach.client(said) as locks:
        text = reach.schema(locks)
    if said["json"]:
        say.json({"store": locks.store, "schema": text})
    else:
        say.out(text if text.endswith("\n") else text + "\n")
    return 0

"""The command-line tool. Outermost: it uses the public API and nothing imports it.

A module for each group of commands, imported only when asked for; `run` is on cron's clock.
"""

import os
import sys
from collections.abc import Sequence

from . import exits, say
from .commands import COMMANDS, overview, page
from .words import Said, sort


def main(argv: Sequence[str] | None = None) -> int:
    """The whole tool: sentences on stderr, never a traceback; the exit code."""
    quiet = False
    try:
        fill_standard()
        said = sort(sys.argv[1:] if argv is None else argv, COMMANDS)
        quiet = bool(said["quiet"])
        return perform(said)
    except exits.Exit as end:
        if end.sentence and not (quiet and end.quietly):
            say.err(end.sentence)
        return end.code
    except KeyboardInterrupt:
        return exits.BY_SIGNAL + 2
    except BrokenPipeError:  # `holdfast ls | head -1`
        forget_the_answer()
        return exits.BY_SIGNAL + 13
    except Exception as error:
        if os.environ.get("HOLDFAST_DEBUG"):
            raise
        from .outcome import verdict

        code, sentence = verdict(error)
        if code == exits.CANNOT_WRITE:
            forget_the_answer()
        if not (quiet and code == exits.NOT_ACQUIRED):
            say.err(sentence)
        return code


def forget_the_answer() -> None:
    """What is left of it in the buffer must not fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def fill_standard() -> None:
    """If 0, 1 or 2 is closed, the next file that is opened gets that number, and what is printed ends up in it.

    Filled, and closed again for the command: what Python opens is not inherited.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def perform(said: Said) -> int:
    if said["help"]:
        say.out(page(said.command) if said.command.name else overview())
        return 0
    if said["version"]:
        from holdfast import __version__

        say.out(f"holdfast {__version__}\n")
        return 0
    name = said.command.name
    if name == "run":
        from .run import run as command
    elif name in ("ls", "show"):
        from .look import look as command
    elif name in ("acquire", "renew", "release"):
        from .tickets import tickets as command
    elif name.startswith("pool "):
        from .pool import pool as command
    elif name in ("evict", "resize"):
        from .orders import orders as command
    else:
        from .doctor import doctor as command
    return command(said)

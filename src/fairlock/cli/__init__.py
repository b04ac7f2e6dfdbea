"""The command-line tool. It is the outermost layer: it uses the public API, and no other package imports it.

Each group of commands has a module, which is imported only if it is called: cron pays for the start-up of `run`.
"""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from . import exit_codes, output
from .command_table import COMMANDS, command_help, overview
from .parse_arguments import Arguments, parse

# The module of each command. In it, a function with the last word of the command runs it.
MODULES = {
    "run": "run", "lead": "lead", "ls": "ls_show", "show": "ls_show", "top": "top", "events": "show_events",
    "acquire": "detached_leases", "renew": "detached_leases", "release": "detached_leases",
    "pool add": "pool", "pool run": "pool_run", "pool ls": "pool", "pool done": "pool", "pool rm": "pool",
    "ask": "ask_to_release", "evict": "evict_resize", "resize": "evict_resize", "prune": "prune",
    "schema": "doctor", "doctor": "doctor", "ui": "serve_web_page", "demo": "demo", "mcp": "serve_mcp",
    "completion": "shell_completion", "man": "man_page",
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool and return its exit code. Errors are sentences on stderr, never a traceback."""
    quiet = False
    try:
        open_standard_files()
        args = parse(sys.argv[1:] if argv is None else argv, COMMANDS)
        quiet = bool(args["quiet"])
        return dispatch(args)
    except exit_codes.Exit as end:
        if end.sentence and not (quiet and end.expected):
            output.err(end.sentence)
        return end.code
    except KeyboardInterrupt:
        return exit_codes.BY_SIGNAL + 2
    except BrokenPipeError:  # `fairlock ls | head -1`
        discard_stdout()
        return exit_codes.BY_SIGNAL + 13
    except Exception as error:
        if os.environ.get("FAIRLOCK_DEBUG"):
            raise
        code, sentence = exit_codes.classify(error)
        if code == exit_codes.CANNOT_WRITE:
            discard_stdout()
        if not (quiet and code == exit_codes.NOT_ACQUIRED):
            output.err(sentence)
        return code


def discard_stdout() -> None:
    """Python flushes the buffer again at its end. That must not fail a second time."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def open_standard_files() -> None:
    """Open 0, 1 and 2 if they are closed. Else the next file that is opened gets that number and receives the output.

    For the wrapped command they are closed again, because files that Python opens are not inherited.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def dispatch(args: Arguments) -> int:
    if args["help"]:
        output.out(command_help(args.command) if args.command.name else overview())
        return 0
    if args["version"]:
        from fairlock import __version__

        output.out(f"fairlock {__version__}\n")
        return 0
    return find_function(args.command.name)(args)


def find_function(command: str) -> Callable[[Arguments], int]:
    module = import_module(f".{MODULES[command]}", __package__)
    function: Callable[[Arguments], int] = getattr(module, command.rpartition(" ")[2])
    return function

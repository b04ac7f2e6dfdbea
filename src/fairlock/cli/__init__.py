"""The command-line tool. It is the outermost layer: it uses the public API, and no other package imports it.

Each group of commands has a module, which is imported only if it is called: cron pays for the start-up of `run`.
"""

import os
import sys
from collections.abc import Sequence

from . import exit_codes, output
from .command_table import COMMANDS, command_help, overview
from .parse_arguments import Arguments, parse


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
    name = args.command.name
    if name == "run":
        from .run import run as command
    elif name == "lead":
        from .lead import lead as command
    elif name in ("ls", "show"):
        from .ls_show import ls_or_show as command
    elif name == "top":
        from .top import top as command
    elif name == "events":
        from .show_events import events as command
    elif name in ("acquire", "renew", "release"):
        from .detached_leases import run_on_detached as command
    elif name.startswith("pool "):
        from .pool import run_on_pool as command
    elif name == "prune":
        from .prune import prune as command
    elif name == "ask":
        from .ask_to_release import ask as command
    elif name in ("evict", "resize"):
        from .evict_resize import evict_or_resize as command
    elif name == "ui":
        from .serve_web_page import ui as command
    elif name == "demo":
        from .demo import demo as command
    elif name == "mcp":
        from .serve_mcp import serve_agent as command
    elif name == "completion":
        from .shell_completion import print_completion as command
    elif name == "man":
        from .man_page import print_man_page as command
    else:
        from .doctor import doctor_or_schema as command
    return command(args)

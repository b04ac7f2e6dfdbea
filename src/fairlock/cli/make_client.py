"""Makes the client from the options."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import fairlock
from fairlock.engine import events
from fairlock.errors import ConfigError

from . import exit_codes
from .parse_arguments import Arguments

if TYPE_CHECKING:
    from fairlock.sync import Locks


EVERY_NAMESPACE = "*"
LOOKS = ("ls", "top", "events", "ui", "pool ls")  # what can show all namespaces at once


def every_namespace(args: Arguments) -> bool:
    """Return True for --namespace '*': all namespaces at once. Usage error if the command does more than look."""
    given = os.environ.get("FAIRLOCK_NAMESPACE") if args["namespace"] is None else args["namespace"]
    name = args.command.name
    if given == EVERY_NAMESPACE and (name not in LOOKS or (name == "pool ls" and args.operands)):
        looks = f"{', '.join(LOOKS)} without a name"
        raise exit_codes.Usage(f"--namespace '*' is for {looks}, which only look. Name one namespace.")
    return given == EVERY_NAMESPACE


def client(args: Arguments, on_event: "Callable[[fairlock.Event], object] | None" = None) -> "Locks":
    """Make the client for -u, FAIRLOCK_URL or the default. No I/O yet."""
    import warnings

    namespace = "" if every_namespace(args) else args["namespace"]

    warnings.simplefilter("ignore")  # `ls` and `doctor` name the store; a mail from cron need not
    events.silent = True  # the tool prints its own sentences instead of log lines
    locks = fairlock.connect(
        args["url"],
        owner=args["owner"] or operator(args.command.name),
        lease=args["lease"],
        namespace=namespace,
        scope=args["scope"],
        on_event=on_event,
    )
    if locks.session.backend.scope == "process":
        raise ConfigError(f"{locks.store} ends with this process and locks nothing for others. Omit -u, or use sqlite:///…")
    return locks


def operator(command: str) -> str | None:
    """Return user@host for the commands by which people intervene: audit lines then name a person, not a process."""
    if command not in ("ask", "evict", "resize", "doctor", "top", "ui") or os.environ.get("FAIRLOCK_OWNER"):
        return None
    return f"{os.environ.get('SUDO_USER') or user_name()}@{os.uname().nodename}"[:200]


def user_name() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container without this user
        return f"uid {os.getuid()}"


def text_or_file(text: str, what: str) -> str:
    """Return a secret that was given as TEXT or as @FILE: the content of that file, which `ps` does not show."""
    if not text.startswith("@"):
        return text
    try:
        with open(text[1:], encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeError) as bad:
        why = bad.strerror if isinstance(bad, OSError) else "it is not UTF-8"
        raise ConfigError(f"No {what} can be read from {text[1:]!r}: {why}. Name a file that you may read.") from None

"""`fairlock man`: the manual page in roff, made of the table of commands and of the exit codes."""

from . import output
from .command_table import COMMANDS, TITLE, forms, sentence
from .exit_codes import MEANINGS
from .parse_arguments import GLOBAL, HELP, Arguments, Option

DESCRIPTION = """\
fairlock runs commands one at a time, on one machine or on many. Waiters get a lock in the order in which they came. \
The lock is a lease: if the holder's machine dies, the next waiter gets it when the lease ends. \
The store is a SQLite file of the user, or any store that a URL names."""

ENVIRONMENT = {
    "FAIRLOCK_URL": "the URL of the store, if -u is not given",
    "FAIRLOCK_URL_FILE": "a file whose only line is that URL",
    "FAIRLOCK_OWNER": "the default of --owner",
    "FAIRLOCK_LEASE": "the default of --lease in seconds; also set for the command of run",
    "FAIRLOCK_TICKET": "the default of --ticket; also set for the command of run",
    "FAIRLOCK_DEBUG": "show the traceback of an internal error",
    "FAIRLOCK_NAME": "set for the command of run: the name that is held",
    "FAIRLOCK_FENCE": "set for the command of run: the fencing token",
    "FAIRLOCK_HELD": "set for the command of run: the tickets of all runs around it",
    "FAIRLOCK_ITEM": "set for the command of pool run: the key of the item",
    "FAIRLOCK_BODY": "set for the command of pool run: the body of the item as JSON",
}

EXAMPLES = {
    "fairlock run nightly -- backup.sh": "Run backup.sh if and when no other holds `nightly`.",
    "fairlock run -n nightly -- backup.sh": "The same, but exit with 75 instead of waiting.",
    "fairlock ls": "List the locks, their holders and how many wait.",
}


def man(args: Arguments) -> int:
    from fairlock import __version__

    output.out(man_page(__version__))
    return 0


def man_page(version: str) -> str:
    lines = [f'.TH FAIRLOCK 1 "" "fairlock {version}" "User Commands"']
    lines += [".SH NAME", rf"fairlock \- {roff(TITLE[0].lower() + TITLE[1:])}"]
    lines += [".SH SYNOPSIS", r".B fairlock", r"[options] COMMAND ..."]
    lines += [".SH DESCRIPTION", roff(DESCRIPTION)]
    lines += [".SH COMMANDS"]
    for command in COMMANDS.values():
        for number, form in enumerate(forms(command)):
            lines += [".br" if number else ".SS " + quoted("fairlock " + form)]
            lines += [".B " + quoted("fairlock " + form)] if number else []
        lines += [".PP", roff(sentence(command))]
        lines += [line for option in command.options for line in tagged(option)]
        if command.more:
            lines += [".PP", ".nf", *(roff(line) for line in command.more.splitlines()), ".fi"]
    lines += [".SH OPTIONS", "Every command has these options, also before the command."]
    lines += [line for option in GLOBAL + HELP for line in tagged(option)]
    lines += [".SH EXIT STATUS", "The exit code of the wrapped command, 128+N if signal N ended it, or:"]
    lines += [line for code, text in MEANINGS.items() for line in (".TP", f".B {code}", roff(text))]
    lines += [".SH ENVIRONMENT"]
    lines += [line for name, text in ENVIRONMENT.items() for line in (".TP", f".B {name}", roff(text))]
    lines += [".SH EXAMPLES"]
    lines += [line for call, text in EXAMPLES.items() for line in (".TP", f".B {quoted(call)}", roff(text))]
    lines += [".SH SEE ALSO", ".BR flock (1)"]
    return "\n".join([*lines, ""])


def tagged(option: Option) -> list[str]:
    value = rf" \fI{roff(option.value)}\fR" if option.value else ""
    return [".TP", rf"\fB{roff(', '.join(option.names))}\fR{value}", roff(option.help)]


def roff(text: str) -> str:
    """Escape a text: a dash is a real one that can be copied, and no line begins a request."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("…", "...").replace("'", r"\(aq")
    return (r"\&" if escaped.startswith(".") else "") + escaped.replace("`", r"\(ga")


def quoted(text: str) -> str:
    return '"' + roff(text).replace('"', r"\(dq") + '"'

"""Parses the command line into options and operands, by a table for each command.

Not argparse. Its REMAINDER takes options of the wrapped command, its errors are not sentences, and it costs 7 ms of a
start-up that cron pays every minute. The grammar is that of getopt: letters can be bundled (-nx), values can be
attached (-w5, --wait=5), `--` ends the options. Options can be given before and after operands, except for `run`: there
the first operand is NAME and everything after it belongs to the wrapped command.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .exit_codes import Usage

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration(text: str) -> float:
    """Return the seconds of 5, 0.5, 500ms, 30s, 2m, 1h or 1d. Anything else, also a minus sign, is a ValueError."""
    digits = text.rstrip("msdh")
    unit = text[len(digits) :] or "s"
    if unit not in UNITS or not digits.replace(".", "", 1).isdecimal() or not digits.isascii() or len(digits) > 15:
        raise ValueError("a duration such as 5, 0.5, 500ms, 2m or 1h")
    return float(digits) * UNITS[unit]


def json(text: str) -> Any:
    from json import loads  # imported only if JSON is given

    try:
        return loads(text)
    except ValueError:
        raise ValueError("JSON (a string needs its own quotes: '\"text\"')") from None


def up_to(most: int, what: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and int(text) <= most):
        raise ValueError(f"{what} from 0 to {most}")
    return int(text)


def count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) >= 1):
        raise ValueError("a whole number from 1 up")
    return int(text)


STORED = "stored"


def slots(text: str) -> int | str:
    """Return the number, or STORED."""
    try:
        return text if text == STORED else count(text)
    except ValueError as wants:
        raise ValueError(f"{wants}, or `{STORED}`") from None


class Choice:
    """Accepts one of a few texts. Completion reads them here."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed

    def __call__(self, text: str) -> str:
        if text not in self.allowed:
            raise ValueError(f"{', '.join(self.allowed[:-1])} or {self.allowed[-1]}")
        return text


class Option:  # not a NamedTuple: creating such a class costs a quarter of a millisecond
    def __init__(
        self,
        key: str,
        names: tuple[str, ...],
        help: str,
        value: str = "",  # the name of its value in the help; '' = a flag
        parse: Callable[[str], Any] = str,
        sets: object = True,  # the value of a flag
    ) -> None:
        self.key = key
        self.names = names
        self.help = help
        self.value = value
        self.parse = parse
        self.sets = sets


class Command:
    def __init__(
        self,
        name: str,
        usage: str,  # its operands, as the help shows them; ' | ' separates two forms
        summary: str,
        options: tuple[Option, ...],
        least: int,
        most: int,
        greedy: bool = False,  # the first operand ends the options: everything after it belongs to another command
        operand: Choice | None = None,  # the only operands that it accepts
        more: str = "",  # help after the options
    ) -> None:
        self.name = name
        self.usage = usage
        self.summary = summary
        self.options = options
        self.least = least
        self.most = most
        self.greedy = greedy
        self.operand = operand
        self.more = more


class Arguments:
    """A parsed command line. Options that were not given are None."""

    def __init__(self, command: Command, options: dict[str, Any], operands: list[str]) -> None:
        self.command = command
        self.options = options
        self.operands = operands

    def __getitem__(self, key: str) -> Any:
        return self.options.get(key)


GLOBAL = (
    Option("url", ("-u", "--url"), "the store, or @FILE; else FAIRLOCK_URL or FAIRLOCK_URL_FILE, else SQLite", "URL"),
    Option("json", ("--json",), "print JSON with stable keys"),
    Option("quiet", ("-q", "--quiet"), "print errors only"),
    Option("verbose", ("-v", "--verbose"), "print every event"),
    Option("scope", ("--scope",), "machines: refuse a store that only this machine can reach", "SCOPE",
           Choice("any", "machines")),
    Option("namespace", ("--namespace",), "a prefix that separates your names from those of others", "TEXT"),
)  # fmt: skip
HELP = (
    Option("help", ("-h", "--help"), "print help, also after a command"),
    Option("version", ("-V", "--version"), "print the version"),
)

# Two options that exclude each other, and the sentence for it.
CONFLICTS = (
    ("quiet", "verbose", "-q prints less and -v prints more: use one of them."),
    ("nonblock", "wait", "-n does not wait and -w waits for some time: use one of them."),
    ("slots", "shared", "--slots makes a semaphore and -s, -x, -e a lock: use one of them."),
)

GROUPS = {"pool": "work with a set of named items, of which each worker leases any free one"}


def parse(argv: Sequence[str], commands: dict[str, Command]) -> Arguments:
    """Find the command and parse its arguments. Usage, with a sentence, if that is not possible.

    --help and --version are returned as options of the command that was recognized before them.
    """
    options: dict[str, Any] = {}
    rest = parse_options(list(argv), GLOBAL + HELP, options, stop=True)
    nothing = Command("", "COMMAND", "", (), 1, 1)
    if options.get("help") or options.get("version"):
        return Arguments(nothing, options, [])
    if not rest:
        raise Usage("No command is given. Try `fairlock run NAME -- CMD`; `fairlock --help` lists all commands.")
    word = rest.pop(0)
    if word == "help":
        options["help"] = True
        about = {**commands, **{word: group(word, commands) for word in GROUPS}}
        found = (about[name] for name in (" ".join(rest[:2]), " ".join(rest[:1])) if name in about)
        return Arguments(next(found, nothing), options, [])
    if word in GROUPS:  # a command of it: `pool add`
        if rest and rest[0] in HELP[0].names:
            return Arguments(group(word, commands), {**options, "help": True}, [])
        parts = [name.partition(" ")[2] for name in commands if name.startswith(f"{word} ")]
        if not rest or rest[0] not in parts:
            near = suggest(rest[0], parts) if rest else ""
            form = f"The form is `fairlock {word} {'|'.join(parts)} …`."
            if not near:
                raise Usage(f"{form} `fairlock {word} --help` explains it.")
            raise Usage(f"There is no command `{word} {rest[0]}`; did you mean `{word} {near}`? {form}")
        word = f"{word} {rest.pop(0)}"
    if word not in commands:
        near = suggest(word, dict.fromkeys(name.partition(" ")[0] for name in commands))
        ask = f"; did you mean `{near}`?" if near else "."
        raise Usage(f"There is no command {quoted(word)}{ask} `fairlock --help` lists all commands.")
    command = commands[word]
    operands = parse_options(rest, command.options + GLOBAL + HELP, options, stop=command.greedy)
    if options.get("help") or options.get("version"):
        return Arguments(command, options, [])
    check(command, options, operands)
    return Arguments(command, options, operands)


def check(command: Command, options: dict[str, Any], operands: list[str]) -> None:
    """Usage if there are too few or too many operands, or options that exclude each other."""
    if not command.least <= len(operands) <= command.most:
        extra = ", ".join(map(quoted, operands[command.most :]))
        form = f"The form is `fairlock {command.name} {command.usage}".rstrip() + "`"
        raise Usage(f"{form}{f'; {extra} is too much' if extra else ''}. `fairlock {command.name} --help` explains it.")
    if command.operand is not None:
        for operand in operands:
            try:
                command.operand(operand)
            except ValueError as wants:
                raise Usage(f"`fairlock {command.name}` needs {wants}, not {quoted(operand)}.") from None
    for one, other, sentence in CONFLICTS:
        if options.get(one) is not None and options.get(other) is not None:
            raise Usage(sentence)


def group(word: str, commands: dict[str, Command]) -> Command:
    """Return `pool` as if it were a command, so that it has a help page."""
    members = [command for name, command in commands.items() if name.startswith(f"{word} ")]
    uses = [f"{command.name} {command.usage.split(' | ')[0]}" for command in members]
    width = max(map(len, uses))
    lines = [f"  {use:<{width}}  {command.summary}" for use, command in zip(uses, members, strict=True)]
    more = "\n".join([*lines, "", f"`fairlock {members[0].name} --help` explains one of them.", ""])
    return Command(word, "COMMAND …", GROUPS[word], (), 0, 0, more=more)


def parse_options(argv: list[str], table: tuple[Option, ...], into: dict[str, Any], stop: bool) -> list[str]:
    """Move the options of this table from argv into `into` and return the operands. stop: the first operand ends it."""
    known = {name: option for option in table for name in option.names}
    operands: list[str] = []
    while argv:
        arg = argv.pop(0)
        if arg == "--":
            return operands + argv
        if arg.startswith("--"):
            name, equals, attached = arg.partition("=")
            option = find_option(name, known)
            if equals and not option.value:
                raise Usage(f"{name} takes no value.")
            into[option.key] = parse_value(name, option, [attached] if equals else argv)
        elif arg.startswith("-") and arg != "-":
            letters = arg[1:]
            while letters:
                name, letters = "-" + letters[0], letters[1:]
                option = find_option(name, known)
                if option.value and letters:
                    into[option.key], letters = parse_value(name, option, [letters]), ""
                else:
                    into[option.key] = parse_value(name, option, argv)
        elif stop:
            return [arg, *argv]
        else:
            operands.append(arg)
        if into.get("help") or into.get("version"):
            return operands
    return operands


# What a user of flock may try, and the answer.
FLOCK_ONLY = {
    "-o": "The command never inherits the lock, so flock's -o is not needed: omit it.",
    "--close": "The command never inherits the lock, so flock's --close is not needed: omit it.",
    "-F": "fairlock must stay to renew the lease, so flock's -F is not possible: omit it.",
    "--no-fork": "fairlock must stay to renew the lease, so flock's --no-fork is not possible: omit it.",
    "-c": "-c comes directly after the name: fairlock run NAME -c 'shell text'.",
    "--command": "--command comes directly after the name: fairlock run NAME --command 'shell text'.",
}


def find_option(name: str, known: dict[str, Option]) -> Option:
    if name in known:
        return known[name]
    if "-n" in known and name in FLOCK_ONLY:
        raise Usage(FLOCK_ONLY[name])
    near = suggest(name, [other for other in known if other.startswith("--")]) if name.startswith("--") else ""
    raise Usage(f"There is no option {quoted(name)} here{f'; did you mean {near}?' if near else '.'}")


def suggest(word: str, names: Iterable[str]) -> str:
    """Return the name that was probably meant: one that begins like the word, else the most similar one; '' if none."""
    names = list(names)
    beginning = [name for name in names if name.startswith(word) and len(word.strip("-")) > 1]
    if beginning:
        return beginning[0]
    from difflib import get_close_matches  # imported only for a mistake

    return next(iter(get_close_matches(word, names, 1, 0.6)), "")


def parse_value(name: str, option: Option, source: list[str]) -> Any:
    if not option.value:
        return option.sets
    if not source:
        raise Usage(f"{name} needs a value: {name} {option.value}.")
    text = source.pop(0)
    try:
        return option.parse(text)
    except ValueError as wants:
        raise Usage(f"{name} needs {wants}, not {quoted(text)}.") from None


def quoted(word: str) -> str:
    """Return an argument as an error shows it. A URL, or what should be one, can contain a password: not repeated."""
    is_url = "://" in word or ":" in word.rpartition("@")[0]
    return "a URL" if is_url else repr(word if len(word) <= 60 else word[:60] + "…")

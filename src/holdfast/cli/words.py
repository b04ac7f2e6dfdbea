"""What was typed: options and words, by a table for each command.

Not argparse. Its REMAINDER eats options of the wrapped command, its errors are not sentences, and it costs 7 ms of a
start-up that cron pays every minute. The grammar here is getopt's: letters can be bundled (-nx), values may be glued
on (-w5, --wait=5), `--` ends the options. Options may stand before and after words, except for `run`: there the first
word is NAME and everything behind it belongs to the wrapped command.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .exits import Usage

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration(text: str) -> float:
    """Seconds from 5, 0.5, 500ms, 30s, 2m, 1h or 1d. ValueError for anything else, a minus sign included."""
    digits = text.rstrip("msdh")
    unit = text[len(digits) :] or "s"
    if unit not in UNITS or not digits.replace(".", "", 1).isdecimal() or not digits.isascii() or len(digits) > 15:
        raise ValueError("a duration such as 5, 0.5, 500ms, 2m or 1h")
    return float(digits) * UNITS[unit]


def json(text: str) -> Any:
    from json import loads  # only those who bring JSON pay for it

    try:
        return loads(text)
    except ValueError:
        raise ValueError("JSON (a text goes in quotes of its own: '\"text\"')") from None


def code(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text[:4]) <= 255 and len(text) <= 3):
        raise ValueError("an exit code from 0 to 255")
    return int(text)


def count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) >= 1):
        raise ValueError("a whole number from 1 up")
    return int(text)


STORED = "stored"


def slots(text: str) -> int | str:
    """How many, or STORED."""
    try:
        return text if text == STORED else count(text)
    except ValueError as wants:
        raise ValueError(f"{wants}, or `{STORED}`") from None


def choice(*allowed: str) -> Callable[[str], str]:
    def one_of(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"{', '.join(allowed[:-1])} or {allowed[-1]}")
        return text

    return one_of


class Option:  # not a NamedTuple: making one of those costs a quarter of a millisecond
    def __init__(
        self,
        key: str,
        names: tuple[str, ...],
        meaning: str,
        value: str = "",  # how its value is called in the help; '' = a flag
        reads: Callable[[str], Any] = str,
        sets: object = True,  # what a flag stands for
    ) -> None:
        self.key = key
        self.names = names
        self.meaning = meaning
        self.value = value
        self.reads = reads
        self.sets = sets


class Command:
    def __init__(
        self,
        name: str,
        words: str,  # the words it wants, as the help shows them
        summary: str,
        options: tuple[Option, ...],
        least: int,
        most: int,
        greedy: bool = False,  # the first word ends the options: everything behind it is somebody else's
        more: str = "",  # help below the options
    ) -> None:
        self.name = name
        self.words = words
        self.summary = summary
        self.options = options
        self.least = least
        self.most = most
        self.greedy = greedy
        self.more = more


class Said:
    """The words, sorted. Options that were not given are None."""

    def __init__(self, command: Command, options: dict[str, Any], words: list[str]) -> None:
        self.command = command
        self.options = options
        self.words = words

    def __getitem__(self, key: str) -> Any:
        return self.options.get(key)


GLOBAL = (
    Option("url", ("-u", "--url"), "the store, or @FILE; else HOLDFAST_URL or HOLDFAST_URL_FILE, else SQLite", "URL"),
    Option("json", ("--json",), "print JSON with stable keys"),
    Option("quiet", ("-q", "--quiet"), "say nothing but mistakes"),
    Option("verbose", ("-v", "--verbose"), "say what happens"),
    Option("span", ("--span",), "machines: refuse a store that reaches only this machine", "machines",
           choice("any", "machines")),
    Option("namespace", ("--namespace",), "a prefix that keeps your names apart from others'", "TEXT"),
)
HELP = (Option("help", ("-h", "--help"), ""), Option("version", ("-V", "--version"), ""))


# Two options that contradict each other, and what to do about it.
CONTRARY = (
    ("quiet", "verbose", "-q says less and -v says more: take one of them."),
    ("nonblock", "wait", "-n does not wait and -w waits for some time: take one of them."),
    ("slots", "shared", "--slots makes a semaphore and -s, -x, -e a lock: take one of them."),
)

FAMILIES = {"pool": "a set of named items, of which each worker takes any that is free"}


def sort(argv: Sequence[str], commands: dict[str, Command]) -> Said:
    """Find the command and sort what belongs to it. Usage, with a sentence, if it makes no sense.

    --help and --version come back as options of whatever was understood up to them.
    """
    options: dict[str, Any] = {}
    rest = take(list(argv), GLOBAL + HELP, options, stop=True)
    nothing = Command("", "COMMAND", "", (), 1, 1)
    if options.get("help") or options.get("version"):
        return Said(nothing, options, [])
    if not rest:
        raise Usage("Which command? For example `holdfast run NAME -- CMD`; `holdfast --help` lists them all.")
    word = rest.pop(0)
    if word == "help":
        options["help"] = True
        found = [" ".join(rest[:2]), rest[0]] if rest else []
        several = family(rest[0], commands) if rest else None
        return Said(next((commands[name] for name in found if name in commands), several or nothing), options, [])
    parts = [name.partition(" ")[2] for name in commands if name.startswith(f"{word} ")]
    if parts:  # one of several: `pool add`
        if rest and rest[0] in HELP[0].names:
            return Said(family(word, commands) or nothing, {**options, "help": True}, [])
        if not rest or rest[0] not in parts:
            raise Usage(f"It is `holdfast {word} {'|'.join(parts)} …`; `holdfast {word} {parts[0]} --help` says more.")
        word = f"{word} {rest.pop(0)}"
    if word not in commands:
        near = [name for name in commands if name.startswith(word[:2]) or word.startswith(name)]
        hint = f" Did you mean `{near[0]}`?" if near else ""
        raise Usage(f"There is no command {echo(word)}.{hint} `holdfast --help` lists them.")
    command = commands[word]
    words = take(rest, command.options + GLOBAL + HELP, options, stop=command.greedy)
    if options.get("help") or options.get("version"):
        return Said(command, options, [])
    if not command.least <= len(words) <= command.most:
        extra = f", not {' '.join(map(echo, words[command.most :]))} as well" if len(words) > command.most else ""
        form = f"{word} {command.words}".rstrip()
        raise Usage(f"It is `holdfast {form}`{extra}. `holdfast {word} --help` says more.")
    for one, other, sentence in CONTRARY:
        if options.get(one) is not None and options.get(other) is not None:
            raise Usage(sentence)
    return Said(command, options, words)


def family(word: str, commands: dict[str, Command]) -> Command | None:
    """`pool` as if it were a command, so that there is help for it; None if there is no such family."""
    those = [command for name, command in commands.items() if name.startswith(f"{word} ")]
    if not those:
        return None
    uses = [f"{command.name} {command.words.split(' | ')[0]}" for command in those]
    width = max(map(len, uses))
    lines = [f"  {use:<{width}}  {command.summary}" for use, command in zip(uses, those, strict=True)]
    more = "\n".join([*lines, "", f"`holdfast {those[0].name} --help` says more, and so for the others.", ""])
    return Command(word, "COMMAND …", FAMILIES[word], (), 0, 0, more=more)


def take(argv: list[str], table: tuple[Option, ...], into: dict[str, Any], stop: bool) -> list[str]:
    """Read the options of this table off argv; the words that are left. stop: the first word ends the options."""
    known = {name: option for option in table for name in option.names}
    words: list[str] = []
    while argv:
        arg = argv.pop(0)
        if arg == "--":
            return words + argv
        if arg.startswith("--"):
            name, glue, glued = arg.partition("=")
            option = find(name, known)
            if glue and not option.value:
                raise Usage(f"{name} takes no value.")
            into[option.key] = value(name, option, [glued] if glue else argv)
        elif arg.startswith("-") and arg != "-":
            letters = arg[1:]
            while letters:
                name, letters = "-" + letters[0], letters[1:]
                option = find(name, known)
                if option.value and letters:
                    into[option.key], letters = value(name, option, [letters]), ""
                else:
                    into[option.key] = value(name, option, argv)
        elif stop:
            return [arg, *argv]
        else:
            words.append(arg)
        if into.get("help") or into.get("version"):
            return words
    return words


FOREIGN = {
    "-o": "The command never inherits the lock here, so flock's -o has nothing to do: leave it out.",
    "--close": "The command never inherits the lock here, so flock's --close has nothing to do: leave it out.",
    "-F": "holdfast stays beside the command to keep its lease, so flock's -F cannot be had.",
    "--no-fork": "holdfast stays beside the command to keep its lease, so flock's --no-fork cannot be had.",
    "-c": "-c goes right behind the name: holdfast run NAME -c 'shell text'.",
    "--command": "--command goes right behind the name: holdfast run NAME --command 'shell text'.",
}


def find(name: str, known: dict[str, Option]) -> Option:
    if name in known:
        return known[name]
    if "-n" in known and name in FOREIGN:
        raise Usage(FOREIGN[name])
    near = [other for other in known if other.startswith(name) and len(name) > 3]
    raise Usage(f"There is no option {name} here{f'; did you mean {near[0]}?' if near else '.'}")


def value(name: str, option: Option, source: list[str]) -> Any:
    if not option.value:
        return option.sets
    if not source:
        raise Usage(f"{name} wants a value: {name} {option.value}.")
    text = source.pop(0)
    try:
        return option.reads(text)
    except ValueError as wants:
        raise Usage(f"{name} wants {wants}, not {echo(text)}.") from None


def echo(word: str) -> str:
    """What was typed, for an error. A URL may hold a password, and is not repeated."""
    return "a URL" if "://" in word else repr(word if len(word) <= 60 else word[:60] + "…")

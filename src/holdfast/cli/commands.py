"""The commands as data: their options, their words, their help. What they do is in the module that each names."""

from .words import GLOBAL, Command, Option, choice, code, duration, json, slots

WAIT = (
    Option("nonblock", ("-n", "--nonblock", "--nb"), "do not wait"),
    Option("wait", ("-w", "--wait", "--timeout"), "wait at most so long; 0 = do not wait", "DUR", duration),
    Option("conflict", ("-E", "--conflict-exit-code"), "exit with N instead of 75 if it is not acquired", "N", code),
)
GUARD = (
    Option("grace", ("--grace",), "from TERM to KILL when the lease cannot be kept (10s)", "DUR", duration),
    Option("on_lost", ("--on-lost",), "kill (TERM, then KILL; the default), term or warn", "DO",
           choice("kill", "term", "warn")),
)
LOCK = (
    *WAIT,
    Option("shared", ("-s", "--shared"), "share it with other readers"),
    Option("shared", ("-x", "-e", "--exclusive"), "hold it alone (the default)", sets=False),
    Option("slots", ("--slots",), "N may hold it at once; stored: as many as the store has", "N", slots),
    Option("lease", ("--lease",), "how long others wait if this machine dies (30s)", "DUR", duration),
    Option("owner", ("--owner",), "how others see you (host:pid)", "TEXT"),
    Option("note", ("--note",), "what you hold it for", "TEXT"),
    Option("handle", ("--handle",), "a secret by which others may renew and release it", "TEXT|@FILE"),
)
TICKET = Option("ticket", ("--ticket",), "which lease; else HOLDFAST_TICKET", "T")
BY_HANDLE = Option("handle", ("--handle",), "instead of a ticket: the handle by which it was acquired", "TEXT|@FILE")

RUN = Command(
    "run", "[options] NAME [--] CMD ARGS… | NAME -c TEXT", "hold NAME while CMD runs",
    (
        *LOCK,
        *GUARD,
        Option("at_least", ("--at-least",), "keep it so long, even if CMD ends sooner", "DUR", duration),
        Option("max_hold", ("--max-hold",), "give it up after so long, even if CMD still runs", "DUR", duration),
    ),
    1, 1 << 30, greedy=True,
    more="""\
Options go before NAME; everything behind it belongs to CMD. Durations: 5, 0.5, 500ms, 2m, 1h.
CMD gets HOLDFAST_NAME, HOLDFAST_TICKET, HOLDFAST_FENCE, HOLDFAST_LEASE and HOLDFAST_HELD.
Exit code: CMD's own, or 128+N if signal N ended it; 75 not acquired, 79 lease lost and CMD stopped,
69 store unreachable, 77 refused, 78 bad configuration, 64 usage, 126 cannot execute, 127 not found.
""",
)

BODY = Option("body", ("--body",), "its body", "JSON", json)
POOL = (
    Command("pool add", "POOL [KEY…]", "add items; without KEY one a line from stdin", (BODY,), 1, 1 << 30, more="""\
A line of stdin is a name, or JSON: {"key": "a", "body": {"n": 1}}.
What is in the pool already stays as it is.
"""),
    Command(
        "pool run", "[options] POOL [--] CMD ARGS… | POOL -c TEXT", "run CMD for any free item",
        (
            Option("forever", ("--forever",), "again and again; with -n or -w until nothing is left"),
            Option("give_back", ("--give-back",), "never done: give it back when CMD has ended well (GPUs, accounts)"),
            *WAIT,
            Option("key", ("--key",), "this one and no other", "KEY"),
            Option("lease", ("--lease",), "how long others wait if this machine dies (60s)", "DUR", duration),
            Option("back_off", ("--back-off",), "nobody has it for so long after CMD failed (5s)", "DUR", duration),
            Option("owner", ("--owner",), "how others see you (host:pid)", "TEXT"),
            *GUARD,
        ),
        1, 1 << 30, greedy=True,
        more="""\
Options go before POOL; everything behind it belongs to CMD, which gets HOLDFAST_ITEM and HOLDFAST_BODY
(JSON), and what `holdfast run` gives. If CMD exits with 0 the item is done; else it goes back, behind all
others and after a pause. Exit code: as of `holdfast run`; with --forever 0 when nothing is left.
""",
    ),
    Command("pool ls", "POOL", "what is in it, and who has it", (
        Option("state", ("--state",), "only what is free, resting, taken, expired, done or damaged", "STATE",
               choice("free", "resting", "taken", "expired", "done", "damaged")),
    ), 1, 1),
    Command("pool done", "POOL KEY…", "mark items as done that nobody has", (BODY,), 2, 1 << 30),
    Command("pool rm", "POOL KEY…", "remove items", (
        Option("force", ("--force",), "even if somebody has it: he loses it"),
    ), 2, 1 << 30),
)

COMMANDS = {
    command.name: command
    for command in (
        RUN,
        Command("ls", "[PATTERN]", "who holds what, who waits", (
            Option("held", ("--held",), "only what is held"),
            Option("waited", ("--waited",), "only what somebody waits for"),
            Option("stale", ("--stale",), "only what has a holder whose lease has run out"),
            Option("watch", ("--watch",), "again every second, until Ctrl-C"),
        ), 0, 1),
        Command("show", "NAME", "everything about one name", (), 1, 1),
        Command("acquire", "NAME", "take a lease that lives without a process, and print its ticket",
                (*LOCK, Option("ticket", ("--ticket",), "a ticket of your own choice", "T")), 1, 1),
        Command("renew", "NAME", "start a lease from `acquire` again, or extend it", (
            TICKET,
            BY_HANDLE,
            Option("lease", ("--lease",), "let it last at least so long from now", "DUR", duration),
        ), 1, 1),
        Command("release", "NAME", "give a lease from `acquire` back", (TICKET, BY_HANDLE), 1, 1),
        Command("evict", "NAME --reason TEXT", "take NAME from its holder", (
            Option("reason", ("--reason",), "why; the holder is told", "TEXT"),
            Option("at_once", ("--at-once",), "now, not at the end of the lease: the holder may still be working"),
            Option("ticket", ("--ticket",), "only this one, as `show` prints it", "T"),
            Option("pattern", ("--pattern",), "NAME is a pattern with * and ?: take all that match from their holders"),
            Option("yes", ("-y", "--yes"), "do not ask"),
        ), 1, 1),
        *POOL,
        Command("resize", "NAME SLOTS", "let another number hold it at once", (
            Option("program", ("--program",), "instead of SLOTS: the number that programs ask for counts again"),
        ), 1, 2),
        Command("schema", "[URL]", "print what the store needs; runs nothing", (), 0, 1),
        Command("doctor", "", "could a lock be lost here, and how?", (
            Option("repair", ("--repair",), "reset what is damaged under NAME, instead", "NAME"),
            Option("yes", ("-y", "--yes"), "do not ask before a repair"),
        ), 0, 0),
    )
}


def overview() -> str:
    lines = ["Locks that span threads, processes and machines.", "", "  holdfast [options] COMMAND …", ""]
    brief = {"run": "run NAME -- CMD", "pool run": "pool run POOL -- CMD"}
    lines += rows([(brief.get(c.name, f"{c.name} {c.words}"), c.summary) for c in COMMANDS.values()])
    return "\n".join([*lines, "", *table(GLOBAL), "", "`holdfast COMMAND --help` says more.", ""])


def page(command: Command) -> str:
    uses = [f"  holdfast {command.name} {words}" for words in command.words.split(" | ")]
    if len(uses) > 1:
        uses[1] = f"  holdfast {command.name} [options] {command.words.split(' | ')[1]}"
    lines = [f"{command.summary[0].upper()}{command.summary[1:]}.", "", *uses, ""]
    lines += [*table(command.options), ""] if command.options else []
    return "\n".join([*lines, *table(GLOBAL), "", *([command.more] if command.more else [])])


def table(options: tuple[Option, ...]) -> list[str]:
    return rows([(f"{', '.join(o.names)} {o.value}".rstrip(), o.meaning) for o in options])


def rows(pairs: list[tuple[str, str]]) -> list[str]:
    width = min(32, max(len(left) for left, _ in pairs))
    return [f"  {left:<{width}}  {right}" if len(left) <= width else f"  {left}\n  {'':<{width}}  {right}"
            for left, right in pairs]

"""The commands as data: options, operands and help texts. `--help`, the man page and shell completion are made of it.

`cli/__init__.py` names the module that implements each command.
"""

from functools import partial

from .parse_arguments import GLOBAL, HELP, Choice, Command, Option, count, duration, json, slots, up_to

MANY = 1 << 30

WAIT = (
    Option("nonblock", ("-n", "--nonblock", "--nb"), "do not wait"),
    Option("wait", ("-w", "--wait", "--timeout"), "wait at most this long; 0 = do not wait", "DUR", duration),
    Option("conflict", ("-E", "--conflict-exit-code"), "exit with N instead of 75 if it is not acquired", "N",
           partial(up_to, 255, "an exit code")),
)  # fmt: skip
WATCHDOG = (
    Option("grace", ("--grace",), "the time from TERM to KILL if the lease cannot be renewed (10s)", "DUR", duration),
    Option("on_lost", ("--on-lost",), "kill (TERM, then KILL; the default), term or warn", "ACTION",
           Choice("kill", "term", "warn")),
)  # fmt: skip
OWNER = Option("owner", ("--owner",), "the name that others see (host:pid)", "TEXT")
LOCK = (
    *WAIT,
    Option("shared", ("-s", "--shared"), "share it with other readers"),
    Option("shared", ("-x", "-e", "--exclusive"), "hold it alone (the default)", sets=False),
    Option("slots", ("--slots",), "let N hold it at the same time; stored: use the number in the store", "N", slots),
    Option("lease", ("--lease",), "how long others wait if this machine dies (30s)", "DUR", duration),
    OWNER,
    Option("note", ("--note",), "the purpose that others see", "TEXT"),
    Option("handle", ("--handle",), "a secret that lets others renew and release it", "TEXT|@FILE"),
)
TICKET = Option("ticket", ("--ticket",), "the lease to use; else FAIRLOCK_TICKET", "T")
BY_HANDLE = Option("handle", ("--handle",), "instead of a ticket: the handle it was acquired with", "TEXT|@FILE")

RUN = Command(
    "run", "[options] NAME [--] CMD ARGS… | NAME -c TEXT", "hold NAME while CMD runs",
    (
        *LOCK,
        *WATCHDOG,
        Option("on_asked", ("--on-asked",), "if asked to release: warn (a message; the default), or send usr1 or term",
               "ACTION", Choice("warn", "usr1", "term")),
        Option("at_least", ("--at-least",), "keep it at least this long, even if CMD ends sooner", "DUR", duration),
        Option("max_hold", ("--max-hold",), "stop CMD and release after this long", "DUR", duration),
        Option("once_per", ("--once-per",), "run CMD once in each such span over all machines; else exit 0", "DUR",
               duration),
        Option("tries", ("--tries",), "with --once-per: run it this often if it fails or its machine dies (2)", "N",
               count),
    ),
    1, MANY, greedy=True,
    more="""\
Options go before NAME; everything after it belongs to CMD. Durations: 5, 0.5, 500ms, 2m, 1h, 1d.
CMD gets FAIRLOCK_NAME, FAIRLOCK_TICKET, FAIRLOCK_FENCE, FAIRLOCK_LEASE and FAIRLOCK_HELD.
Exit code: that of CMD, or 128+N if signal N ended it; 75 not acquired, 79 lease lost and CMD stopped,
69 store unreachable, 77 refused, 78 bad configuration, 64 usage error, 126 cannot execute, 127 not found.
""",
)  # fmt: skip

LEAD = Command(
    "lead", "[options] NAME [--] CMD ARGS… | NAME -c TEXT", "run CMD while this process is the leader",
    (
        Option("lease", ("--lease",), "how long others wait if this machine dies (30s)", "DUR", duration),
        Option("file", ("--file",), "a file that exists while it leads, for readiness probes", "PATH"),
        OWNER,
        Option("note", ("--note",), "the purpose that others see", "TEXT"),
        *WATCHDOG,
    ),
    1, MANY, greedy=True,
    more="""\
It waits until it leads, and runs CMD. If the lease is lost, CMD is stopped, and it waits again. If CMD ends
by itself, or by a signal that was sent to fairlock, it resigns and exits with the exit code of CMD.
CMD gets the variables of `fairlock run`.
""",
)  # fmt: skip

BODY = Option("body", ("--body",), "the body of the items", "JSON", json)
POOL = (
    Command("pool add", "POOL [KEY…]", "add items; without KEY one per line of stdin", (BODY,), 1, MANY, more="""\
A line of stdin is a key, or JSON: {"key": "a", "body": {"n": 1}}.
An item that is already in the pool is not changed.
"""),
    Command(
        "pool run", "[options] POOL [--] CMD ARGS… | POOL -c TEXT", "run CMD for any free item",
        (
            Option("forever", ("--forever",), "repeat; with -n or -w until no item is left"),
            Option("give_back", ("--give-back",), "return the item after CMD, never mark it done (GPUs, accounts)"),
            *WAIT,
            Option("key", ("--key",), "use only this item", "KEY"),
            Option("lease", ("--lease",), "how long others wait if this machine dies (60s)", "DUR", duration),
            Option("back_off", ("--back-off",), "how long an item rests after CMD failed (5s)", "DUR", duration),
            OWNER,
            *WATCHDOG,
        ),
        1, MANY, greedy=True,
        more="""\
Options go before POOL; everything after it belongs to CMD, which gets FAIRLOCK_ITEM, FAIRLOCK_BODY (JSON)
and the variables of `fairlock run`. If CMD exits with 0, the item is done; else it returns to the end of
the queue and rests. Exit code: as of `fairlock run`; with --forever 0 if no item is left.
""",
    ),
    Command("pool ls", "[POOL]", "list the items and their owners; without POOL the pools", (
        Option("state", ("--state",), "only items that are free, resting, taken, expired, done or damaged", "STATE",
               Choice("free", "resting", "taken", "expired", "done", "damaged")),
    ), 0, 1),
    Command("pool done", "POOL KEY…", "mark free items as done", (BODY,), 2, MANY),
    Command("pool rm", "POOL KEY…", "remove items", (
        Option("force", ("--force",), "also if an item is taken: its owner loses it"),
    ), 2, MANY),
)  # fmt: skip

PORT = Option("port", ("--port",), "the port (7070); 0: any that is free", "N",
              partial(up_to, 65535, "a port"))  # fmt: skip
UI = (
    PORT,
    Option("host", ("--host",), "the address to listen on (127.0.0.1)", "HOST"),
    Option("allow_host", ("--allow-host",), "more names that a browser may use for it, separated by commas", "NAMES"),
    Option("admin", ("--admin",), "allow to ask and evict holders; without it the page is read-only"),
    Option("journal", ("--journal",), "keep what happens for 7 days in this SQLite file", "FILE"),
    Option("metrics_token", ("--metrics-token",), "a token that opens only /metrics", "TEXT|@FILE"),
)

COMMANDS = {
    command.name: command
    for command in (
        RUN,
        LEAD,
        Command("ls", "[PATTERN]", "list busy names with their holders and waiters", (
            Option("all", ("-a", "--all"), "also names that are idle"),
            Option("held", ("--held",), "only names that are held"),
            Option("waited", ("--waited",), "only names with waiters"),
            Option("stale", ("--stale",), "only names with an expired lease"),
            Option("watch", ("--watch",), "repeat every second, until Ctrl-C"),
        ), 0, 1),
        Command("show", "NAME", "show one name in detail", (), 1, 1),
        Command("top", "[PATTERN]", "watch busy names on a full screen, sorted by the waiting that they cause", (
            Option("once", ("--once",), "print it once, without a terminal"),
            Option("sort", ("--sort",), "sort by waiting, queue, held, lease or name (waiting)", "KEY",
                   Choice("waiting", "queue", "held", "lease", "name")),
            Option("every", ("--every",), "read the store this often (1s)", "DUR", duration),
        ), 0, 1, more="""\
Keys: up, down select  Enter show  s sort  / filter  p pause  a ask  e evict  E evict at once  q quit  ? help
A name that is evicted has to be typed. Only the holders that are shown are evicted.
"""),
        Command("events", "[PATTERN]", "print what happens to names, one line an event, until Ctrl-C", (
            Option("every", ("--every",), "read the store this often (1s)", "DUR", duration),
        ), 0, 1, more="""\
Each snapshot is compared with the one before. A hold that begins and ends between two of them is not printed.
"""),
        Command("acquire", "NAME", "acquire a lease that needs no process, and print its ticket",
                (
                    *LOCK,
                    Option("ticket", ("--ticket",), "use this ticket; a repeated acquire is idempotent", "T"),
                    Option("pid", ("--pid",), "renew it while this process runs, release it when that ends", "PID",
                           count),
                    Option("on_lost", ("--on-lost",), "with --pid: warn (the default), or term: end that process",
                           "ACTION", Choice("term", "warn")),
                ),
                1, 1),
        Command("renew", "NAME", "renew or extend a lease of `acquire`", (
            TICKET,
            BY_HANDLE,
            Option("lease", ("--lease",), "let it last at least this long from now", "DUR", duration),
        ), 1, 1),
        Command("release", "NAME", "release a lease of `acquire`", (TICKET, BY_HANDLE), 1, 1),
        Command("ask", "NAME --reason TEXT", "ask the holders of NAME to release it", (
            Option("reason", ("--reason",), "the reason; the holder gets it", "TEXT"),
            Option("ticket", ("--ticket",), "only this holder, as `show` prints its ticket", "T"),
        ), 1, 1, more="""\
A holder is notified and decides; it holds NAME as before. See `fairlock run --on-asked`.
"""),
        Command("evict", "NAME --reason TEXT", "take NAME from its holder", (
            Option("reason", ("--reason",), "the reason; the holder gets it", "TEXT"),
            Option("at_once", ("--at-once",), "now, not at the end of the lease: the holder may still be working"),
            Option("ticket", ("--ticket",), "only this holder, as `show` prints its ticket", "T"),
            Option("pattern", ("--pattern",), "NAME is a pattern with * and ?: evict from all matching names"),
            Option("yes", ("-y", "--yes"), "do not ask"),
        ), 1, 1),
        *POOL,
        Command("resize", "NAME SLOTS", "change how many can hold NAME at the same time", (
            Option("program", ("--program",), "instead of SLOTS: use the number that programs ask for again"),
        ), 1, 2),
        Command("prune", "[PATTERN]", "count names that were not used for a day; with -y delete them", (
            Option("older_than", ("--older-than",), "not used for this long (1d)", "DUR", duration),
            Option("done", ("--done",), "instead: items of this pool that are done", "POOL"),
            Option("yes", ("-y", "--yes"), "delete them"),
        ), 0, 1),
        Command("schema", "[URL]", "print what the store needs; changes nothing", (), 0, 1),
        Command("doctor", "", "check the store: could a lock be lost here, and how?", (
            Option("repair", ("--repair",), "instead: reset what is damaged under NAME", "NAME"),
            Option("yes", ("-y", "--yes"), "do not ask before a repair"),
            Option("deadlocks", ("--deadlocks",), "instead: find holders that wait for each other"),
            Option("rules", ("--prometheus-rules",), "instead: print alert rules for Prometheus"),
        ), 0, 0),
        Command("ui", "", "show all locks on a page in the browser", UI, 0, 0, more="""\
It prints the address, with a token that is new at each start. Only this machine can open it, unless --host
names another address: the page is not encrypted, so put a proxy with TLS in front of it.
Without --journal the page shows what happened since it was started.
"""),
        Command("demo", "", "show the page with eight workers that compete for locks", (
            PORT,
            Option("open", ("--no-browser",), "print the address, and do not open a browser", sets=False),
        ), 0, 0, more="""\
It needs no server: the locks are in a temporary folder, which is removed at the end.
"""),
        Command("mcp", "[FOLDER]", "serve a coding agent that shares a checkout with others", (
            OWNER,
            Option("lease", ("--lease",), "how long others wait if this machine dies (30s)", "DUR", duration),
        ), 0, 1, more="""\
The agent starts it, and speaks the Model Context Protocol over stdin and stdout. FOLDER is the checkout;
default: the current one. Without -u the locks are kept in .git/fairlock.db, the same for all its agents.
"""),
        Command("completion", "SHELL", "print the completion script for bash, zsh or fish", (), 1, 1,
                operand=Choice("bash", "zsh", "fish"), more="""\
bash  fairlock completion bash > ~/.local/share/bash-completion/completions/fairlock
zsh   fairlock completion zsh > DIR/_fairlock    where DIR is in $fpath
fish  fairlock completion fish > ~/.config/fish/completions/fairlock.fish
"""),
        Command("man", "", "print the manual page; read it with `fairlock man | man -l -`", (), 0, 0),
    )
}  # fmt: skip

TITLE = "Locks that span threads, processes and machines"
IN_OVERVIEW = {"run": "run NAME -- CMD", "lead": "lead NAME -- CMD", "pool run": "pool run POOL -- CMD"}


def overview() -> str:
    lines = [f"{TITLE}.", "", "  fairlock [options] COMMAND …", ""]
    lines += rows([(IN_OVERVIEW.get(c.name, f"{c.name} {c.usage}".rstrip()), c.summary) for c in COMMANDS.values()])
    return "\n".join([*lines, "", *table(GLOBAL + HELP), "", "`fairlock COMMAND --help` explains a command.", ""])


def forms(command: Command) -> list[str]:
    """Return each way to call it, without the word `fairlock`."""
    first, *others = command.usage.split(" | ")
    return [f"{command.name} {first}".rstrip(), *(f"{command.name} [options] {other}" for other in others)]


def sentence(command: Command) -> str:
    """Return the summary with a capital letter and a full stop."""
    return f"{command.summary[0].upper()}{command.summary[1:]}{'' if command.summary.endswith('?') else '.'}"


def command_help(command: Command) -> str:
    lines = [sentence(command), "", *(f"  fairlock {form}" for form in forms(command)), ""]
    lines += [*table(command.options), ""] if command.options else []
    return "\n".join([*lines, *table(GLOBAL + HELP), "", *([command.more] if command.more else [])])


def table(options: tuple[Option, ...]) -> list[str]:
    return rows([(f"{', '.join(o.names)} {o.value}".rstrip(), o.help) for o in options])


def rows(pairs: list[tuple[str, str]]) -> list[str]:
    width = min(32, max(len(left) for left, _ in pairs))
    return [f"  {left:<{width}}  {right}" if len(left) <= width else f"  {left}\n  {'':<{width}}  {right}"
            for left, right in pairs]  # fmt: skip

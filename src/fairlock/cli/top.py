"""`fairlock top`: the busy names on a full screen, sorted by the waiting that they cause; `--once` prints them once.

A thread reads the store, so that keys work while it is slow or down. With --json --once it prints the snapshot as `ls`
does, in this order, and rings as `doctor --deadlocks` does.
"""

import os
from typing import TYPE_CHECKING

from fairlock.errors import LockError

from . import describe_holders, exit_codes, make_client, output
from .doctor import describe_ring, look_for_rings, ring_as_dict
from .parse_arguments import Arguments
from .top_poller import Poller, take_snapshot
from .top_prompt import Prompt
from .top_view import HEAD, View, arrange, cut, fit, row, summary

if TYPE_CHECKING:
    from fairlock import Locks, Resource, Snapshot
    from fairlock.engine.find_deadlocks import Ring

    from .terminal_screen import Screen

EVERY = 1.0  # seconds
KEYS = "up/down  Enter show  s sort  / filter  p pause  a ask  e evict  ? help  q quit"
REASON = "Reason (the holder reads it): "
HELP = """\
up, down, j, k, PgUp, PgDn, Home, End   select a name
Enter        show its holders, its queue and what operators did; any key returns
s            sort by waiting, queue, held, lease, name
/            filter by name, owner or note; Enter keeps it, Esc clears it
p, space     pause and go on
a            ask the holders to release: they are notified, and decide
e            evict the holders: they lose it at the end of the lease, or sooner
E            evict at once: a holder may still be working
q, Ctrl-C    quit

WAITED is how long all waiters of a name have waited, together.
Red: part of a deadlock, or damaged, or kept by a lease that has expired.
""".splitlines()


def top(args: Arguments) -> int:
    pattern = args.operands[0] if args.operands else "*"
    sort = args["sort"] or "waiting"
    every = make_client.every_namespace(args)
    if not args["once"] and not (os.isatty(0) and os.isatty(1)):
        raise exit_codes.Usage("top needs a terminal. Without one, use `fairlock top --once`.")
    if args["json"] and not args["once"]:
        raise exit_codes.Usage("--json prints once: use `fairlock --json top --once`.")
    with make_client.client(args) as locks:
        if args["once"]:
            print_once(args, locks, pattern, sort, every)
        else:
            from .terminal_screen import Screen

            take_snapshot(locks, pattern, every)  # a store that cannot be reached is reported as by every other command
            try:
                with Screen() as screen:
                    Top(locks, screen, pattern, sort, max(args["every"] or EVERY, 0.1), every).run()
            except KeyboardInterrupt:
                pass
    return 0


def print_once(args: Arguments, locks: "Locks", pattern: str, sort: str, every: bool) -> None:
    seen, rings = look_for_rings(lambda: take_snapshot(locks, pattern, every))
    shown = arrange(seen.resources, sort)
    if args["json"]:
        found = seen._replace(resources=tuple(shown)).as_dict()
        output.json({**found, "rings": [ring_as_dict(ring) for ring in rings]})
        return
    if shown:
        output.out(output.table(HEAD, [row(resource) for resource in shown]))
    output.out("".join(map(describe_ring, rings)))
    if not args["quiet"]:
        output.out(output.plain(summary(seen.store, seen.resources)) + "\n")


class Top:
    def __init__(
        self, locks: "Locks", screen: "Screen", pattern: str, sort: str, every: float, namespaces: bool = False
    ) -> None:
        self.locks = locks
        self.namespaces = namespaces  # all of them: it only looks
        self.screen = screen
        self.view = View(sort)
        self.poller = Poller(locks, pattern, every, screen.wake, namespaces)
        self.seen: tuple[Snapshot, tuple[Ring, ...]] | None = None
        self.prompt: Prompt | None = None
        self.message = ""
        self.page = ""  # the name that is shown in detail
        self.help = False

    def run(self) -> None:
        try:
            while True:
                if not self.view.paused or self.seen is None:
                    self.seen = self.poller.latest
                self.draw()
                for key in self.screen.read(60):
                    if not self.press(key):
                        return
        finally:
            self.poller.ended = True
            self.poller.hurry()

    # -- keys

    def press(self, key: str) -> bool:
        """Do what this key means. Return False to quit."""
        if self.prompt is not None:
            prompt = self.prompt
            self.message = ""
            if not prompt.press(key) and self.prompt is prompt:
                self.prompt = None
            return True
        self.message = ""
        if self.help or self.page:
            self.help, self.page, self.poller.shown = False, "", ""
            return True
        rows = self.view.space
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -rows, "page down": rows,
                 "home": -(1 << 30), "end": 1 << 30}  # fmt: skip
        current = self.view.current()
        if key == "q":
            return False
        if key in steps:
            self.view.move(steps[key])
        elif key == "s":
            sorts = ["waiting", "queue", "held", "lease", "name"]
            self.view.sort = sorts[(sorts.index(self.view.sort) + 1) % len(sorts)]
        elif key == "/":
            self.view.filter = ""
            self.prompt = Prompt("filter: ", lambda text: None, self._filter)
        elif key in ("p", " "):
            self.view.paused = not self.view.paused
        elif key == "?":
            self.help = True
        elif key == "enter" and current is not None:
            self.page = current.name
            self.poller.shown = "" if self.namespaces else current.name  # a client reads its own namespace
            self.poller.hurry()
        elif key in ("a", "e", "E") and current is not None:
            self._intervene(current, key)
        return True

    def _filter(self, text: str) -> None:
        self.view.filter = text

    def _intervene(self, resource: "Resource", key: str) -> None:
        """Ask or evict the holders, after a question for the reason; to evict them, the name has to be typed, too."""
        name, evict, at_once = resource.name, key != "a", key == "E"
        verb, nothing = ("evict", "nothing was changed") if evict else ("ask", "no holder was asked")

        def confirm(reason: str) -> None:
            self.prompt = None
            if not reason.strip():
                self.message = f"{nothing.capitalize()}: {verb} needs a reason, which the holder gets."
            elif evict:
                question = f"Type {output.plain(name)!r} to evict{' AT ONCE' * at_once}: "
                self.prompt = Prompt(question, lambda typed: act(typed, reason), about=about)
            else:
                act(name, reason)

        def act(typed: str, reason: str) -> None:
            self.prompt = None
            if typed != name:
                self.message = f"That is not the name; {nothing}."
                return
            done = self._do(resource, reason, evict, at_once)
            self.message = done or f"{name!r} is not held by them any more; {nothing}."
            self.poller.hurry()

        if self.namespaces:
            self.message = f"{nothing.capitalize()}: {'to evict, ' * evict}start top with one namespace."
        elif resource.kind == "pool":
            self.message = describe_holders.take_item(name)
        elif not resource.holders:
            self.message = f"{name!r} has no holder to {verb}."
        else:
            if evict:
                about = describe_holders.describe_eviction(resource, at_once)
            else:
                about = describe_holders.describe_request(resource)
            self.prompt = Prompt(REASON, confirm, about=about)

    def _do(self, resource: "Resource", reason: str, evict: bool, at_once: bool) -> str:
        """Ask or evict the holders that are shown, and none that came later. Return '' if none of them holds it now."""
        name, number = resource.name, 0
        try:
            for one in resource.holders:
                if evict:
                    number += len(self.locks.evict(name, reason=reason, ticket=one.ticket, at_once=at_once))
                else:
                    number += len(self.locks.ask(name, reason=reason, ticket=one.ticket))
        except (LockError, ValueError) as error:
            return str(error)
        if not evict:
            return f"Asked {output.plural(number, 'holder')} to release {name!r}." if number else ""
        left = output.duration(max(one.expires_in for one in resource.holders))
        when = "now" if at_once else f"in {left} at most"
        return f"{name!r} is taken from its holder and is free {when}." if number else ""

    # -- drawing

    def draw(self) -> None:
        columns, rows = self.screen.size()
        if self.help:
            self.screen.draw(cut(HELP, columns, rows, ": use a larger window"))
            return
        seen, rings = self.seen if self.seen is not None else (None, ())
        resources = seen.resources if seen is not None else ()
        store = seen.store if seen is not None else self.locks.store
        if self.page:
            self.screen.draw(self.details(columns, rows, resources, store))
            return
        footer = self.prompt_line(columns) or self.message or KEYS
        about = self.prompt.about if self.prompt is not None else ""
        self.screen.draw(self.view.frame(columns, rows, store, resources, rings, footer, self.poller.error, about))

    def prompt_line(self, columns: int) -> str:
        """Return the question and the end of what was typed, so that the last character is seen."""
        if self.prompt is None:
            return ""
        room = columns - 2
        question, text = self.prompt.question, self.prompt.text
        if len(question) > room // 2:
            question = question[: room // 2 - 1] + "… "
        space = room - len(question)
        return f"{question}{text if len(text) <= space else '…' + text[-space + 1 :]}_"

    def details(self, columns: int, rows: int, resources: "tuple[Resource, ...]", store: str) -> list[str]:
        from .ls_show import describe, describe_audit

        found = next((r for r in resources if r.name == self.page), None)
        text = describe(found, store) if found is not None else f"{self.page!r} is idle now\n"
        name, audit = self.poller.audit
        if name == self.page and self.seen is not None:
            text += describe_audit(audit, self.seen[0].now)
        lines = cut(text.splitlines(), columns, rows - 1, ": `fairlock show` prints them")
        return [*lines, fit("any key returns", columns)]

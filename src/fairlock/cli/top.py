"""`fairlock top`: the busy names on a full screen, sorted by the waiting that they cause; `--once` prints them once.

A thread reads the store, so that keys work while it is slow or down. With --json --once it prints the snapshot as `ls`
does, in this order, and rings as `doctor --deadlocks` does.
"""

import os
import time
from typing import TYPE_CHECKING

from fairlock.engine.find_deadlocks import find_rings, in_both
from fairlock.errors import LockError

from . import describe_holders, exit_codes, make_client, output
from .doctor import BETWEEN_LOOKS, describe_ring, ring_as_dict
from .parse_arguments import Arguments
from .top_poller import Poller, take_snapshot
from .top_prompt import Prompt
from .top_view import HEAD, View, arrange, fit, row, summary

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
    seen = take_snapshot(locks, pattern, every)
    rings = find_rings(seen)
    if rings:
        time.sleep(BETWEEN_LOOKS)
        seen = take_snapshot(locks, pattern, every)
        rings = in_both(rings, find_rings(seen))
    shown = arrange(seen.resources, sort)
    if args["json"]:
        found = seen._replace(resources=tuple(shown)).as_dict()
        output.json({**found, "rings": [ring_as_dict(ring) for ring in rings]})
        return
    if shown:
        output.out(output.table(HEAD, [row(resource) for resource in shown]))
    for ring in rings:
        output.out(describe_ring(ring))
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
        rows = max(self.screen.size()[1] - 5, 1)
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
        elif key == "a" and current is not None:
            self._ask(current)
        elif key in ("e", "E") and current is not None:
            self._evict(current, at_once=key == "E")
        return True

    def _filter(self, text: str) -> None:
        self.view.filter = text

    def _has_no_holder(self, resource: "Resource", act: str) -> bool:
        """Return True, with a message, for a pool and for a lock without a holder."""
        if resource.kind == "pool":
            self.message = describe_holders.take_item(resource.name)
        elif not resource.holders:
            self.message = f"{resource.name!r} has no holder to {act}."
        return resource.kind == "pool" or not resource.holders

    def _ask(self, resource: "Resource") -> None:
        if self.namespaces:
            self.message = "No holder was asked: start top with one namespace."
            return
        if self._has_no_holder(resource, "ask"):
            return

        def act(reason: str) -> None:
            self.prompt = None
            if not reason.strip():
                self.message = "No holder was asked: ask needs a reason, which the holder gets."
                return
            self.message = self._do_ask(resource, reason)
            self.poller.hurry()

        self.prompt = Prompt(REASON, act, about=describe_holders.describe_request(resource))

    def _do_ask(self, resource: "Resource", reason: str) -> str:
        """Ask the holders that are shown, and none that came later."""
        try:
            asked = [self.locks.ask(resource.name, reason=reason, ticket=one.ticket) for one in resource.holders]
        except (LockError, ValueError) as error:
            return str(error)
        number = sum(map(len, asked))
        if not number:
            return f"{resource.name!r} is not held by them any more; no holder was asked."
        return f"Asked {number} holder{'s' * (number != 1)} to release {resource.name!r}."

    def _evict(self, resource: "Resource", at_once: bool) -> None:
        if self.namespaces:
            self.message = "Nothing was changed: to evict, start top with one namespace."
            return
        if self._has_no_holder(resource, "evict"):
            return
        name = resource.name
        when, about = " AT ONCE" if at_once else "", describe_holders.describe_eviction(resource, at_once)

        def confirm(reason: str) -> None:
            if not reason.strip():
                self.message = "Nothing was changed: evict needs a reason, which the holder gets."
                self.prompt = None
                return
            question = f"Type {output.plain(name)!r} to evict{when}: "
            self.prompt = Prompt(question, lambda typed: act(typed, reason), about=about)

        def act(typed: str, reason: str) -> None:
            self.prompt = None
            if typed != name:
                self.message = "That is not the name; nothing was changed."
                return
            self.message = self._do_evict(resource, reason, at_once)
            self.poller.hurry()

        self.prompt = Prompt(REASON, confirm, about=about)

    def _do_evict(self, resource: "Resource", reason: str, at_once: bool) -> str:
        """Evict the holders that are shown, and none that came later."""
        evicted = 0
        try:
            for one in resource.holders:
                evicted += len(self.locks.evict(resource.name, reason=reason, ticket=one.ticket, at_once=at_once))
        except (LockError, ValueError) as error:
            return str(error)
        if not evicted:
            return f"{resource.name!r} is not held by them any more; nothing was changed."
        left = output.duration(max(one.expires_in for one in resource.holders))
        return f"{resource.name!r} is taken from its holder and is free {'now' if at_once else f'in {left} at most'}."

    # -- drawing

    def draw(self) -> None:
        columns, rows = self.screen.size()
        if self.help:
            lines = [fit(line, columns) for line in ["", *HELP]][:rows]
            self.screen.draw(lines + [""] * (rows - len(lines)))
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
        lines = [fit(line, columns) for line in text.splitlines()]
        if len(lines) > rows - 1:
            more = f"… {len(lines) - rows + 2} more lines: `fairlock show` prints them"
            lines = [*lines[: rows - 2], fit(more, columns)]
        lines += [""] * (rows - 1 - len(lines))
        return [*lines, fit("any key returns", columns)]

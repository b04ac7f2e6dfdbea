"""What `fairlock top` shows: from a snapshot to lines of text. Pure: no terminal, no store."""

import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import describe_holders, output

if TYPE_CHECKING:
    from fairlock import Holder, Resource, Waiter
    from fairlock.engine.find_deadlocks import Ring

BOLD, DIM, REVERSE, RED = "\x1b[1m", "\x1b[2m", "\x1b[7m", "\x1b[31m"


def waiting_caused(resource: "Resource") -> float:
    """Return how many seconds all of its waiters together have waited."""
    return sum(one.waited for one in resource.queue)


def held_for(resource: "Resource") -> float:
    return max((one.held_for for one in resource.holders), default=-1.0)


def lease_left(resource: "Resource") -> float:
    return min((one.expires_in for one in (*resource.holders, *resource.expired)), default=float("inf"))


# What the table can be sorted by: the key that sorts, smallest first.
SORTS: dict[str, Callable[["Resource"], Any]] = {
    "waiting": lambda r: -waiting_caused(r),
    "queue": lambda r: -len(r.queue),
    "held": lambda r: -held_for(r),
    "lease": lease_left,
    "name": lambda r: r.name,
}


def arrange(resources: Sequence["Resource"], sort: str, filter_text: str = "") -> list["Resource"]:
    """Return the busy ones that contain this text in a name, an owner or a note, sorted; equal ones by name."""
    found = [r for r in resources if r.busy and matches(r, filter_text)]
    return sorted(found, key=lambda r: (SORTS[sort](r), r.name))


def matches(resource: "Resource", text: str) -> bool:
    if not text:
        return True
    everyone: list[Holder | Waiter] = [*resource.holders, *resource.queue, *resource.expired]
    where = [resource.name, *(one.owner for one in everyone), *(one.note for one in everyone)]
    return any(text.casefold() in each.casefold() for each in where)


HEAD = ("NAME", "HELD BY", "FOR", "LEASE", "QUEUE", "WAITED", "NOTE")


def row(resource: "Resource") -> tuple[str, ...]:
    """Return the cells of one name: WAITED is the sum over its queue."""
    shown = resource.holders or resource.expired
    owner, held, lease, note = describe_holders.summarize(shown)
    if shown:
        asked = "(asked) " if any(one.asked is not None for one in shown) else ""
        slots = describe_holders.slots(resource)
        owner = f"{slots}{' ' * bool(slots)}{asked}{owner}"
    elif resource.kind == "damaged":
        owner = "damaged"
    waited = output.short_duration(waiting_caused(resource)) if resource.queue else ""
    return resource.name, owner, held, lease, str(len(resource.queue) or ""), waited, note


FIXED = {"FOR": 6, "LEASE": 7, "QUEUE": 5, "WAITED": 7}
LEFT_OUT = ("LEASE", "WAITED", "FOR", "QUEUE")  # in this order, where the window is narrow
ENOUGH = 24  # columns for a name and its holder
GAP = 2


def widths(columns: int) -> tuple[int, ...]:
    """Return the width of each column; 0: it is not shown."""
    fixed = dict(FIXED)
    rest = columns - GAP - sum(width + GAP for width in fixed.values())
    for left_out in LEFT_OUT:
        if rest < ENOUGH:
            rest += fixed[left_out] + GAP
            fixed[left_out] = 0
    note = 0 if rest < 60 else min(rest // 3, 60)
    rest -= note + GAP if note else 0
    name = max(rest * 55 // 100, 4)
    return name, max(rest - name, 4), *fixed.values(), note


def cells(texts: Sequence[str], columns: int) -> str:
    # A name and an owner in the middle: long ones often differ only at their ends.
    parts = [
        fit(text if column > 1 else shorten(text, width), width)
        for column, (text, width) in enumerate(zip(texts, widths(columns), strict=True)) if width
    ]  # fmt: skip
    return "  ".join(parts)


def fit(text: str, width: int) -> str:
    """Return the text with exactly this width on a terminal: cut with an ellipsis, or filled with spaces."""
    text = output.plain(text)
    if text.isascii() and len(text) <= width:
        return text.ljust(width)
    total = sum(map(char_width, text))
    if total > width:
        room, kept = width - 1, ""
        for char in text:
            room -= char_width(char)
            if room < 0:
                break
            kept += char
        text = kept + "…"
        total = sum(map(char_width, text))
    return text + " " * (width - total)


def shorten(text: str, width: int) -> str:
    """Return the text cut in the middle if it is longer than this: 'tenant/8f1…partition-7'."""
    text = output.plain(text)
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}" if len(text) > width else text


def common(texts: Sequence[str]) -> int:
    """Return how many characters all of them begin with."""
    first, last = min(texts), max(texts)
    return next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))


def distinct(names: Sequence[str], width: int) -> dict[str, str]:
    """Return what to show of each name in this width: of long ones, what differs, as the page does."""
    long = [name for name in {output.plain(name) for name in names} if len(name) > width]
    begin = common(long) if len(long) > 1 else 0
    end = common([name[begin:][::-1] for name in long]) if len(long) > 1 else 0
    room = width - 2 - (max(map(len, long), default=0) - begin - end)
    kept = max(room // 2, 4)  # letters of what all of them begin and end with
    begin, end = max(begin - kept, 0), max(end - kept, 0)

    def label(name: str) -> str:
        if len(name) <= width:
            return name
        return shorten(f"{'…' if begin else ''}{name[begin : len(name) - end]}{'…' if end else ''}", width)

    return {name: label(output.plain(name)) for name in names}


def wrap(text: str, width: int, most: int) -> list[str]:
    """Return the text in lines of at most this width, broken at spaces; what does not fit into that many is cut."""
    text, lines = output.plain(text), list[str]()
    while text and len(lines) < most - 1 and sum(map(char_width, text)) > width:
        size = room = 0
        while room + char_width(text[size]) <= width:
            room += char_width(text[size])
            size += 1
        size = text.rfind(" ", 1, size + 1) if " " in text[1 : size + 1] else max(size, 1)
        lines.append(fit(text[:size], width))
        text = text[size:].lstrip(" ")
    return [*lines, fit(text, width)] if text else lines


def char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(lines: Sequence[str], columns: int, rows: int, more: str) -> list[str]:
    """Return this many rows; if there are more lines, the last one says how many: '… 5 more lines', and `more`."""
    shown = [fit(line, columns) for line in lines[:rows]]
    if len(lines) > rows:
        shown[-1:] = [fit(f"… {len(lines) - rows + 1} more lines{more}", columns)]
    return shown + [""] * (rows - len(shown))


def summary(store: str, resources: Sequence["Resource"]) -> str:
    held = sum(bool(one.owner) for r in resources for one in r.holders)
    waiting = [one.waited for r in resources for one in r.queue]
    stale = sum(bool(r.expired) for r in resources)
    parts = [f"{held} held", f"{len(waiting)} waiting"]
    parts += [f"longest wait {output.short_duration(max(waiting))}"] if waiting else []
    parts += [f"{stale} stale"] if stale else []
    return f"{', '.join(parts)} in {store}"


def describe_rings(rings: Sequence["Ring"]) -> str:
    """Return the first ring: 'DEADLOCK of 2, youngest a: a waits for x, held by b, which …'; '' without one."""
    if not rings:
        return ""
    ring = rings[0]
    title = "DEADLOCK" if ring.certain else "possible deadlock"
    more = f" and {len(rings) - 1} more" if len(rings) > 1 else ""
    waits = ", which ".join(
        f"waits for {one.waits_for}, held by {after.owner}"
        for one, after in zip(ring.members, (*ring.members[1:], ring.members[0]), strict=True)
    )
    head = f"{title} of {len(ring.members)}{more}, youngest {ring.youngest.owner}"  # first: a long ring is cut
    return f"{head}: {ring.members[0].owner} {waits}"


class View:
    """What the user has chosen, and the frame that follows from it."""

    def __init__(self, sort: str = "waiting") -> None:
        self.sort = sort
        self.filter = ""
        self.paused = False
        self.selected = ""  # by its name: a row may move
        self.at = 0  # where that row is; if it goes, the one that is there then is selected
        self.first = 0  # the row at the top
        self.space = 1  # how many rows are on the screen
        self.shown: list[Resource] = []

    def move(self, by: int) -> None:
        if self.shown:
            self.at = min(max(self.at + by, 0), len(self.shown) - 1)
            self.selected = self.shown[self.at].name

    def current(self) -> "Resource | None":
        return self.shown[self.at] if self.shown else None

    def frame(
        self,
        columns: int,
        rows: int,
        store: str,
        resources: Sequence["Resource"],
        rings: Sequence["Ring"],
        footer: str,
        error: str = "",
        explained: str = "",
    ) -> list[str]:
        """Return the lines of the screen. explained: what the question in the footer is about."""
        self.shown = arrange(resources, self.sort, self.filter)
        last = max(len(self.shown) - 1, 0)
        self.at = next((n for n, r in enumerate(self.shown) if r.name == self.selected), min(self.at, last))
        self.selected = self.shown[self.at].name if self.shown else ""
        few = max(rows // 6, 1)  # lines for each of these, so that the table keeps its place
        below = wrap(explained, columns, few)
        # Above the table; in a low window some of it is left out, so that the selected row stays.
        above = {
            "title": [BOLD + fit("fairlock top: " + summary(store, resources), columns)],
            "state": [""],
            "rings": [RED + BOLD + line for line in wrap(describe_rings(rings), columns, few)],
            "error": [RED + line for line in wrap(error, columns, few)],
            "head": [REVERSE + fit(cells(HEAD, columns), columns)],
        }
        for part in ("state", "title", "rings", "error", "head"):
            if sum(map(len, above.values())) + len(below) + 2 > rows:
                del above[part]
        self.space = max(rows - sum(map(len, above.values())) - len(below) - 1, 1)
        self.first = max(min(self.first, self.at, len(self.shown) - self.space), self.at - self.space + 1, 0)
        if "state" in above:
            above["state"] = [fit(self._state(), columns)]
        lines = [line for part in above.values() for line in part]
        in_ring = {name for each in rings for name in each.names}
        visible = self.shown[self.first : self.first + self.space]
        labels = distinct([resource.name for resource in visible], widths(columns)[0])
        for resource in visible:
            text = fit(cells((labels[resource.name], *row(resource)[1:]), columns), columns)
            red = resource.name in in_ring or resource.kind == "damaged" or (resource.expired and not resource.holders)
            lines.append((REVERSE if resource.name == self.selected else "") + (RED if red else "") + text)
        if not self.shown:
            what = "no name matches the filter" if self.filter else "nothing is held or waited for"
            lines.append(DIM + fit(what, columns))
        room = max(rows - 1 - len(below), 0)
        lines = lines[:room]
        lines += [""] * (room - len(lines))
        return [*lines, *[BOLD + line for line in below[: rows - 1]], fit(footer, columns)]

    def _state(self) -> str:
        """Return what was chosen, and how far the table reaches if it has more rows than the window."""
        state = ["PAUSED"] if self.paused else []
        state += [f"sorted by {self.sort}"]
        state += [f"filter {self.filter!r}"] if self.filter else []
        if len(self.shown) > self.space:
            state += [f"rows {self.first + 1}-{self.first + self.space} of {len(self.shown)}"]
        return ", ".join(state)

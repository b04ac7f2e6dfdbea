"""What must be true of a run, as functions of its history. Each gives sentences about what was not.

Faults excuse little. A store whose file was deleted has forgotten its holders, and says so within a second
(docs/guarantees.md): what overlaps in that time is not counted. The same holds for one that is evicted at once. A
waiter that was stopped, or whose server was down, was silent, and others may pass it; so was one whose client had to
connect first. A store that was slow for everybody (observer.py) counts as a fault. Nothing excuses a fence that falls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from .holds import FOREVER, Event, LeaseBase, read
from .plan import LEASE

CAPACITY = {"sem": 2, "rw": 100}  # of all others: 1
FIRST_COME = ("lock",)  # the names whose queue is looked at: no hand-off inside a process
FORGOTTEN = 3.0  # seconds after which everybody knows that a file was deleted; they need one
UNDER_WAY = 3.0  # seconds for which an eviction without a reply may still come to the store
ASIDE = 2.0  # seconds after a fault in which somebody may still be silent because of it
IN_LINE = 0.6  # seconds after which one who asked stands in the queue
SLOW = 8.0  # seconds by which an acquire may be late on a busy machine
DISTURBS = {"cancel", "interrupt", "close", "fork", "resize", "evict", "evict at once"}
"""Faults that silence nobody: a process that one meets ends by an exception, and all others go on."""
ONLY_THESE = {"LockTimeout", "LeaseLost", "StoreError", "interrupted", ""}
BY_CLOSING = {"ConfigError", "NotHeld"}
BAD_EXITS = {70}

Span = tuple[float, float, "int | None"]
"""From when to when something was wrong, and with which process; None: with all."""
Gap = tuple["str | None", float, float]
"""A name, None for all, and from when to when a holder of it may not know that it holds nothing any more."""


def all_of(history: list[Event], memory: bool = False) -> list[str]:
    """Everything that can be seen while it still runs."""
    holds = read(history)
    faults = list(spans(history))
    return [
        *two_at_once(holds, history),
        *fences(holds),
        *stale_writes(holds, history),
        *out_of_turn(holds, list(spans(history, DISTURBS))),
        *items(holds, history),
        *exceptions(history, memory),
        *late(holds, faults, history),
        *lost_without_a_fault(holds, faults, history),
        *(event["text"] for event in history if event["what"] == "wrong"),
    ]


def spans(history: Iterable[Event], without: Collection[str] = ()) -> Iterator[Span]:
    """Yield when a fault met a process, or the machine gave it no time: from, until, pid."""
    begun: dict[int, Event] = {}
    for event in history:
        if event.get("kind") in without:
            continue
        if event["what"] == "fault":
            begun[event["number"]] = event
        elif event["what"] == "healed":
            first = begun.pop(event["number"])
            yield first["at"], event["at"] + ASIDE, first["pid"]
        elif event["what"] == "stalled":
            yield event["since"], event["at"] + ASIDE, event["pid"]
    for event in begun.values():
        yield event["at"], FOREVER, event["pid"]


def met(faults: Iterable[Span], start: float, end: float, pid: int) -> float:
    """For how long a fault met this process in this time."""
    both = [min(end, until) - max(start, since) for since, until, who in faults if who in (None, pid)]
    return sum(each for each in both if each > 0)


def gaps(history: Collection[Event]) -> list[Gap]:
    """When the store forgot holders: a file is deleted; or one is evicted at once, and knows when its lease ends."""
    deleted = [e["at"] for e in history if e["what"] == "fault" and e["kind"] == "delete"]
    return [*((None, at, at + FORGOTTEN) for at in deleted), *evictions(history, gently=False)]


def evictions(history: Iterable[Event], gently: bool = True) -> Iterator[Gap]:
    """Yield from when to when a holder may be evicted. A worker may carry out the order long after the fault."""
    evicting: dict[int, Event] = {}
    for event in history:
        if event["what"] == "evicting" and (gently or event["at_once"]):
            evicting[event["pid"]] = event
        elif event["what"] in ("evicted", "killed") and event["pid"] in evicting:
            first = evicting.pop(event["pid"])
            sent = event["at"] + (0.0 if event.get("done") else UNDER_WAY)
            yield first["name"], first["at"], sent + LEASE
    yield from ((event["name"], event["at"], FOREVER) for event in evicting.values())


def forgotten(some: Iterable[Gap], name: str, at: float) -> float:
    """Until when a holder of this name may not know at this time that the store has forgotten it; 0: it knows."""
    return max([until for whose, since, until in some if whose in (None, name) and since <= at <= until], default=0.0)


def by_name(holds: Iterable[LeaseBase]) -> dict[str, list[LeaseBase]]:
    found = defaultdict(list)
    for hold in holds:
        if hold.holders:
            found[hold.name].append(hold)
    return found


def capacity(history: list[Event], name: str, since: float, until: float) -> int:
    """The most that could be allowed in this time: a resize counts from when it was asked for."""
    most = CAPACITY.get(name, 1)
    if name == "sem":
        before, sizes = most, []
        for event in history:
            if event["what"] == "resizing" and event["at"] <= until:
                sizes.append(event["slots"])
            elif event["what"] == "resized" and event["at"] <= since:
                before, sizes = event["slots"], []
            elif event.get("kind") == "delete" and event["at"] <= until:
                sizes.append(most)  # what an operator had set is forgotten, too
        most = max([before, *sizes])
    return most


def two_at_once(holds: list[LeaseBase], history: list[Event]) -> Iterator[str]:
    excused = gaps(history)
    for name, some in by_name(holds).items():
        some = sorted((hold for hold in some if hold.believed), key=lambda hold: hold.start)
        for index, hold in enumerate(some):
            since = max(hold.start, forgotten(excused, name, hold.start))
            beside = [other for other in some[:index] if min(other.last, hold.last) >= since]
            together = sum(each.weight for each in [*beside, hold])
            if together > capacity(history, name, hold.asked, hold.start):
                yield f"too many believe: {hold} — beside {'; '.join(map(str, beside))}"


def fences(holds: list[LeaseBase]) -> Iterator[str]:
    for some in by_name(holds).values():
        holders = sorted(some, key=lambda hold: hold.start)
        asking = sorted(some, key=lambda hold: hold.asked)
        highest: LeaseBase | None = None
        for hold in asking:
            while holders and holders[0].start < hold.asked:
                first = holders.pop(0)
                highest = first if highest is None or first.fence > highest.fence else highest
            if highest is not None and hold.fence <= highest.fence:
                yield f"a fence did not rise: {hold} — after {highest}"
        numbers = [hold.fence for hold in some if hold.name != "rw"]  # readers that come together share theirs
        if len(set(numbers)) < len(numbers):
            yield f"a fence was given twice: {sorted(n for n in set(numbers) if numbers.count(n) > 1)}"


def stale_writes(holds: list[LeaseBase], history: list[Event]) -> Iterator[str]:
    """A write by a lease that is held is accepted; one by a lost lease is refused once the next holder has written."""
    known = {(hold.hold, hold.name): hold for hold in holds}
    written: dict[str, set[str]] = defaultdict(set)
    excused = gaps(history)
    for event in history:
        if event["what"] != "write" or event["name"] in CAPACITY:
            continue
        mine = known.get((event["hold"], event["name"]))
        if mine is None or forgotten(excused, mine.name, event["at"]):
            continue
        if not event["accepted"] and event["at"] <= mine.last:
            yield f"a write was refused although its lease was held: {mine}"
        if event["accepted"] and not event["held"]:
            for other in holds:
                if other.hold in written[event["name"]] and other.name == mine.name and other is not mine:
                    if other.start <= event["at"] <= other.last:
                        yield f"a late write was accepted: {mine} — beside {other}"
        if event["held"]:
            written[event["name"]].add(event["hold"])


def out_of_turn(holds: list[LeaseBase], faults: list[Span]) -> Iterator[str]:
    """First come, first served, among those that were never silent."""
    for name in FIRST_COME:
        some = [hold for hold in holds if hold.name == name]
        for first in some:
            end = first.start if first.holders else first.ended if first.how == "LockTimeout" else 0.0
            if first.fresh or not first.queued or end == FOREVER or met(faults, first.asked - ASIDE, end, first.pid):
                continue
            for other in some:
                if first.asked + IN_LINE < other.asked and other.start < end:
                    yield f"passed by one that came later: {first} — by {other}"


def items(holds: list[LeaseBase], history: list[Event]) -> Iterator[str]:
    done: dict[str, Event] = {}
    for event in history:
        if event["what"] == "done":
            if event["key"] in done:
                yield f"item {event['key']} was done twice, with fences {done[event['key']]['fence']}, {event['fence']}"
            done[event["key"]] = event
    for hold in holds:
        ended = done.get(hold.name.removeprefix("pool/"))
        if hold.holders and ended is not None and ended["at"] < hold.asked:
            yield f"an item that is done was taken again: {hold}"


def exceptions(history: list[Event], memory: bool) -> Iterator[str]:
    for event in history:
        if event["what"] == "ended":
            allowed = ONLY_THESE | (BY_CLOSING if event.get("closed") else set())
            if memory:
                allowed = allowed - {"StoreError"}
            if event["how"] not in allowed:
                yield f"undocumented: {event['how']}: {event.get('text', '')} ({event['hold']})"
        elif event["what"] == "order failed" and not event["documented"]:
            yield f"undocumented: {event['text']} by {event['order']!r}"
        elif event["what"] == "exit" and event["code"] in BAD_EXITS:
            yield f"fairlock run ended with {event['code']}: {event['text']}"


def lost_without_a_fault(holds: list[LeaseBase], faults: list[Span], history: list[Event]) -> Iterator[str]:
    """A lease renews itself for as long as nothing happens to its process or to the store."""
    down = [e["at"] for e in history if e["what"] == "ended" and e["how"] == "StoreError"]
    evicted = list(evictions(history))
    for hold in holds:
        if hold.fresh or any(n == hold.name and since <= hold.ended and hold.asked <= end for n, since, end in evicted):
            continue
        if hold.how == "LeaseLost" and not met(faults, hold.asked - ASIDE, hold.ended, hold.pid):
            if not any(hold.asked - ASIDE <= at <= hold.ended + ASIDE for at in down):
                yield f"lost, although nothing had happened: {hold}"


def late(holds: list[LeaseBase], faults: list[Span], history: list[Event]) -> Iterator[str]:
    """An acquire ends within its timeout, and a bit; a fault that meets it gives it as much more."""
    now = history[-1]["at"] if history else 0.0
    killed = {event["pid"]: event["at"] for event in history if event["what"] == "killed"}
    for hold in holds:
        end = min(hold.start, hold.ended, now, killed.get(hold.pid, now))
        if hold.timeout + SLOW + met(faults, hold.asked, end, hold.pid) < end - hold.asked:
            yield f"it took {end - hold.asked:.1f} s, with a timeout of {hold.timeout:g} s: {hold}"


def longest() -> float:
    """Seconds after which nothing of the dead is left: their lease, or the poll_ttl of a place far back."""
    return LEASE + 15.0

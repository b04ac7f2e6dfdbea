"""`fairlock events`: what happens to names, one line an event, as it happens, until Ctrl-C.

It compares one snapshot with the next, as the page does, so it sees what all programs do, and needs neither the extra
`ui` nor a program that reports its events. A hold that began and ended between two snapshots is not seen.

With --json each event is one object on one line: at (seconds since 1970), kind, name, owner, note, ticket, fence,
seconds (how long it was held or waited for, or null) and detail.
"""

import sys
import time
from typing import TYPE_CHECKING

from fairlock.engine.snapshots import describe_failure
from fairlock.errors import LockError
from fairlock.web.events_from_snapshots import Evicted, Happened, find_changes, find_eviction, find_gone

from . import make_client, output
from .parse_arguments import Arguments
from .top_poller import take_snapshot

if TYPE_CHECKING:
    from fairlock import Locks, Snapshot

SHARE = 9  # a store that takes long is read less often: it spends at most a tenth of its time for us
EVERY = 1.0  # seconds
ASKED_ABOUT = 10  # holders that are gone, of which a snapshot finds out whether they were evicted
WAITS = ("acquired", "given_up")


def events(args: Arguments) -> int:
    pattern = args.operands[0] if args.operands else "*"
    every = make_client.every_namespace(args)
    with make_client.client(args) as locks:
        try:
            before = take_snapshot(locks, pattern, every)
            if not args["quiet"]:
                sys.stderr.write(f"watching {output.plain(locks.store)}; Ctrl-C ends it\n")
            follow(args, locks, pattern, every, before)
        except KeyboardInterrupt:
            pass
    return 0


def follow(args: Arguments, locks: "Locks", pattern: str, namespaces: bool, before: "Snapshot") -> None:
    down, took = False, 0.0
    while True:
        time.sleep(max(args["every"] or EVERY, 0.1, SHARE * took))
        begun = time.monotonic()
        try:
            after = take_snapshot(locks, pattern, namespaces)
            evicted = {} if namespaces else find_evicted(locks, before, after)
        except LockError as error:  # it is tried again, because what comes after is of interest, too
            if not down:
                show(args, Happened(time.time(), "store_down", detail=describe_failure(error)))
            down, took = True, 0.0
            continue
        took = time.monotonic() - begun
        if down:
            show(args, Happened(time.time(), "store_up"))
        for one in find_changes(before, after, time.time(), evicted):
            show(args, one)
        before, down = after, False


def find_evicted(locks: "Locks", before: "Snapshot", after: "Snapshot") -> Evicted:
    """Return the operator and the reason of evictions between two snapshots. A client reads its own namespace only."""
    found = {(name, ticket): find_eviction(locks.audit(name), ticket)
             for name, ticket in find_gone(before, after, ASKED_ABOUT)}  # fmt: skip
    return {key: sentence for key, sentence in found.items() if sentence}


def show(args: Arguments, one: Happened) -> None:
    if args["json"]:
        output.json(one._asdict())
    else:
        output.out(f"{output.plain(line(one))}\n")


def line(one: Happened) -> str:
    """Return '21:40:05 acquired  nightly  web-3:4117  after 2.1s, fence 7, month end'."""
    length = "" if one.seconds is None else output.short_duration(one.seconds)
    details = [
        length and f"{'after' if one.kind in WAITS else 'held'} {length}",
        f"fence {one.fence}" if one.fence else "", one.note, one.detail,
    ]  # fmt: skip
    at = time.strftime("%H:%M:%S", time.localtime(one.at))
    parts = [f"{at} {one.kind:<9}", one.name, one.owner, ", ".join(filter(None, details))]
    return "  ".join(filter(None, parts)).rstrip()

"""Watches the store during a run: a client that was closed, or whose loop has ended, leaves nothing behind.

Its locks and its places would be gone by themselves when its lease ends, which is soon; so the store is read all the
time. Where a fault meets the store, nothing can be sent, and what is left then does not count.

The observer also measures the store, with a lock that nobody else wants. If that takes a good part of a lease, the
machine is too busy for short leases, and the history names the time in which it was.
"""

from __future__ import annotations

import threading
import time

import fairlock

from . import checks
from .plan import LEASE
from .referee import Referee

MOMENT = 1.0  # seconds that a client has to take back what it owes
SLUGGISH = LEASE / 4  # seconds for a lock that nobody else wants: a store that needs more is slow


class Observer(threading.Thread):
    def __init__(self, url: str, referee: Referee, over: threading.Event) -> None:
        super().__init__(target=self._watch)
        self.url, self.referee, self.over = url, referee, over

    def _watch(self) -> None:
        with fairlock.connect(self.url) as locks:
            while not self.over.wait(0.25):
                try:
                    since = time.monotonic()
                    try:
                        with locks.lock("observer"):
                            pass
                    finally:
                        if time.monotonic() > since + SLUGGISH:
                            self.referee.note("stalled", pid=None, since=since)
                    since = time.monotonic()
                    found = locks.snapshot(idle=True).resources
                except fairlock.LockError:
                    continue
                history = self.referee.seen()
                gone = {event["owner"]: event for event in history if event["what"] == "gone"}
                faults = list(checks.spans(history, checks.DISTURBS))
                for resource in found:
                    for one in (*resource.holders, *resource.queue):
                        event = gone.get(one.owner)
                        if event and event["at"] + MOMENT < since:
                            if not checks.met(faults, event["at"] - checks.ASIDE, since, event["pid"]):
                                late = f"{since - event['at']:.1f} s later"
                                text = f"{one.owner} was closed, and is left with {resource.name!r} {late}"
                                self.referee.note("wrong", text=text)

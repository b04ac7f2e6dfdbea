"""A server of the page for a store with 10,000 busy names, of which 300 change with each look; a tenth are pools.

    python -m tests.web.many_names PORT_FILE
"""

import sys
import time
from pathlib import Path

import fairlock
import fairlock.web
from fairlock import Holder, PoolCounts, Resource, Snapshot, Waiter
from fairlock.cli.serve_web_page import listen
from fairlock.web.serve import run

NAMES, CHANGING = 10_000, 300


class ManyNames:
    """Stands for a client of which `snapshot`, `audit`, `pool` and `session` are used."""

    store = "test://many-names"

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.looks = 0
        client = fairlock.connect("memory://")
        self.audit, self.pool, self.session = client.audit, client.pool, client.session

    def snapshot(self, *, namespaces: bool = False) -> Snapshot:
        self.looks += 1
        now = time.monotonic() - self.begun
        return Snapshot(self.store, now, tuple(self.resource(number, now) for number in range(NAMES)))

    def resource(self, number: int, now: float) -> Resource:
        changes = number % (NAMES // CHANGING) == self.looks % (NAMES // CHANGING)
        fence = self.looks if changes else 1
        holder = Holder(f"web-{number % 7}:{number}", "ship", f"t{number}-{fence}", fence, 1, now, 3600 - now)
        places = range(number % 4)
        queue = tuple(Waiter(f"job-{at}:{number}", "ship", f"w{number}-{at}", 1, now + at, 2) for at in places)
        if number % 10 == 3:
            counts = PoolCounts(5, 0, 1, 0, 94)
            item = holder._replace(item=f"item {number}")
            return Resource(f"orders:{number:05}", "pool", 6, fence, (item,), queue, items=counts)
        return Resource(f"orders:{number:05}", "lock", 1, fence, (holder,), queue)


if __name__ == "__main__":
    listener = listen("127.0.0.1", 0)
    app = fairlock.web.app(ManyNames(), who=lambda request: "the-test")  # type: ignore[arg-type]
    Path(sys.argv[1]).write_text(f"{listener.getsockname()[1]}\n")
    run(app, listener)

"""To which node a statement goes: for each row to the same replica of it, as long as that one answers.

The driver shuffles the replicas. For lightweight transactions that is the worst order: each coordinator makes ballots
of its own, and two of them for one row disturb each other; and each reads the time from its own clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from cassandra.policies import TokenAwarePolicy

SUSPECT = 10.0  # seconds for which a node that did not answer is asked last


class SameReplica(TokenAwarePolicy):  # type: ignore[misc]
    def __init__(self, among: Any) -> None:
        super().__init__(among, shuffle_replicas=False)
        self._suspects: dict[Any, float] = {}

    def suspect(self, host: Any) -> None:
        """It did not answer: others first, for a while."""
        address = getattr(host, "endpoint", host)
        self._suspects[address] = time.monotonic() + SUSPECT

    def make_query_plan(self, working_keyspace: Any = None, query: Any = None) -> Iterator[Any]:
        plan = super().make_query_plan(working_keyspace, query)
        if self._suspects:
            now = time.monotonic()
            self._suspects = {address: until for address, until in self._suspects.items() if until > now}
            plan = sorted(plan, key=lambda host: host.endpoint in self._suspects)
        yield from plan

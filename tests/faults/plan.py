"""The plan of a run, made from a seed: which faults, when, in which process and for how long.

The same seed gives the same plan. What the workers then do in between is theirs: their choices come from the seed, too,
but the moments are those of real processes on a real machine, so a replay is likely to show the same, not certain.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

LEASE = 2.0  # seconds, of all locks and items
JOBS = {
    "lock": ("lock",), "handoff": ("handoff",), "read": ("rw",), "write": ("rw",), "sem": ("sem",),
    "both": ("handoff", "lock"), "pool": ("pool",),
}  # fmt: skip
"""What a worker may do, and the names that it wants for it."""


class Fault(NamedTuple):
    at: float
    """Seconds after the workers are ready."""
    kind: str
    victim: int
    """Which process, for a fault that has one."""
    length: float

    @property
    def end(self) -> float:
        return self.at + self.length


class Plan(NamedTuple):
    seed: int
    seconds: float
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        queues = [f"{f.at:6.2f} {f.kind} {f.victim} {f.length:.2f} s" for f in self.faults]
        return "\n".join([f"seed {self.seed}, {self.seconds:g} s", *queues])


def make(
    seed: int, process_faults: Sequence[str], store_faults: Sequence[str], processes: int, seconds: float = 9.0
) -> Plan:
    """Faults of processes and of the store alternate. Each kind comes once before any comes again. Those of the store
    never overlap, because a server that is dead cannot be stopped; nor do pauses, or nobody would be left to go on."""
    rng = Random(f"plan {seed}")
    faults = []
    at, healed, awake = 0.3, 0.0, 0.0
    bags: list[list[str]] = [[], []]
    which = 0
    while at < seconds - 1:
        kinds = store_faults if which and store_faults and at >= healed else process_faults
        bag = bags[kinds is store_faults]
        if not bag:
            bag += rng.sample(kinds, len(kinds))
        kind = bag.pop()
        length = LEASE * 1.7 if kind == "pause" else rng.uniform(0.3, 1.2)
        if kind == "pause":
            at = max(at, awake)
            awake = at + length + 0.5
        faults.append(Fault(at, kind, rng.randrange(processes), length))
        if kinds is store_faults:
            healed = at + length + 0.3
        at += rng.uniform(0.2, 0.6)
        which = 1 - which
    return Plan(seed, seconds, tuple(faults))

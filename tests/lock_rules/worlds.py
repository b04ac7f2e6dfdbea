"""The small worlds that are explored to the last state, each with the number of states that it has at least.

Fewer states than that mean that a world has stopped turning, and the test fails.
"""

from fairlock.rules.locks import EXCLUSIVE
from tests.lock_rules.explore import NOBODY, World
from tests.lock_rules.resource import SECOND

AB = {"a": EXCLUSIVE, "b": EXCLUSIVE}
ABC = {"a": EXCLUSIVE, "b": EXCLUSIVE, "c": EXCLUSIVE}
ABCD = {"a": EXCLUSIVE, "b": EXCLUSIVE, "c": EXCLUSIVE, "d": EXCLUSIVE}
MIXED = {"a": 1, "b": 2, "c": 1}
A, B, C = frozenset("a"), frozenset("b"), frozenset("c")
SHORT = 4 * SECOND  # tombstones that end within the world

WORLDS = {
    "a lock": (900, World(weights=ABC, alike="abc")),
    "a lock and renewals": (50, World(weights=AB, renew=A | B, alike="ab")),
    "a lease that is extended": (
        120, World(weights=AB, renew=A | B, extend={"a": 5, "b": 1}, advances=(0, 1, 2, 3, 5)),
    ),
    "readers and a writer": (500, World(weights={"a": 1, "b": 1, "w": EXCLUSIVE}, advances=(0, 2), alike="ab")),
    "a writer that becomes a reader": (120, World(weights={"a": 1, "w": EXCLUSIVE}, renew=A, downgrade=frozenset("w"))),
    "a semaphore": (1000, World(capacity=2, weights=dict.fromkeys("abcd", 1), advances=(0, 2), alike="abcd")),
    "mixed weights": (1200, World(capacity=3, weights={"a": 1, "b": 2, "c": 3}, advances=(0, 2))),
    "one that barges": (1100, World(capacity=2, weights=MIXED, unfair=C, advances=(0, 2))),
    "one that only tries": (400, World(capacity=2, weights=MIXED, tries=C, advances=(0, 2))),
    "a lease shorter than the window": (600, World(weights=ABC, lease=1, advances=(0, 1, 2), alike="abc")),
    "evictions": (
        150,
        World(
            weights=AB, lease=4, renew=A, evict=A | B, at_once=B, evict_all=True, advances=(0, 2, 4),
            tombstone=SHORT,
        ),
    ),
    "evictions from a semaphore": (
        900,
        World(
            capacity=2, weights={"a": 1, "b": 1, "c": 2}, lease=4, evict=A | C, evict_all=True, advances=(0, 4),
            tombstone=SHORT,
        ),
    ),
    "requests to release": (
        200,
        World(
            weights=AB, lease=4, renew=A, evict=A, at_once=B, leave_tombstone=B, ask=A | B, advances=(0, 2, 4),
            tombstone=SHORT,
        ),
    ),
    "requests to release what is kept": (
        200,
        World(weights=AB, lease=4, renew=A, evict=A, ask=A | B, keep={"a": 5}, advances=(-2, 0, 2, 5), tombstone=SHORT),
    ),
    "requests to release a semaphore": (
        350,
        World(capacity=2, weights={"a": 1, "b": 1, "c": 2}, lease=4, ask=A, advances=(0, 4), tombstone=SHORT),
    ),
    "tombstones": (
        100,
        World(
            weights=AB, renew=A | B, leave_tombstone=A | B, advances=(0, 1, 2, 4), alike="ab", tombstone=SHORT,
        ),
    ),
    "another size": (
        600, World(capacity=2, weights={"a": 1, "b": 2}, block=3, resize=(1, 3, None), says=(3,), advances=(0, 2, 3)),
    ),
    "another size with a queue": (
        1500, World(capacity=2, weights={"a": 1, "b": 2, "c": 2}, resize=(1, 2), advances=(0, 2), alike="bc"),
    ),
    "kept grants": (
        70,
        World(weights=AB, keep={"a": 5}, renew=A, strangers=True, dead=(NOBODY, A, B, A | B), advances=(0, 2, 5)),
    ),
    "kept grants of a semaphore": (
        700, World(capacity=2, weights=dict.fromkeys("abcd", 1), keep={"a": 5}, advances=(0, 5), alike="bcd"),
    ),
    "the dead": (650, World(weights=ABC, dead=(NOBODY, A | B), advances=(0, 2), alike="ab")),
    "one without a process": (60, World(weights=AB, no_listener=A, dead=(NOBODY, A, B, A | B))),
    "the unreachable": (800, World(weights=ABC, unreachable=(NOBODY, A, A | B | C), advances=(0, 2), alike="bc")),
    "the unreachable and mixed weights": (
        700, World(capacity=2, weights=MIXED, unreachable=(NOBODY, A | C, B), advances=(0, 2), alike="ac"),
    ),
    "a clock that goes back": (500, World(weights=ABC, renew=A, advances=(-2, 0, 3), alike="bc")),
    "a clock that goes back over tombstones": (
        200, World(weights=AB, leave_tombstone=A, advances=(-3, 0, 1, 2), tombstone=SHORT),
    ),
    "blocks and other people's fences": (50, World(weights=AB, block=3, renew=A | B, strangers=True, alike="ab")),
}  # fmt: skip

LARGE_WORLDS = {
    "another size, every second": (
        3000, World(capacity=2, weights={"a": 1, "b": 2}, block=3, resize=(1, 2, 3, None), says=(3,)),
    ),
    "kept grants of a semaphore and one without a process": (
        2000,
        World(capacity=2, weights=dict.fromkeys("abcd", 1), keep={"a": 5}, no_listener=B, advances=(0, 5), alike="cd"),
    ),
    "a lock for four": (45000, World(weights=ABCD, advances=(0, 1, 3), alike="abcd")),
    "readers, a writer and renewals": (
        4800, World(weights={"a": 1, "b": 1, "w": EXCLUSIVE}, renew=A | B, downgrade=frozenset("w"), alike="ab"),
    ),
    "mixed weights, every second": (5000, World(capacity=3, weights={"a": 1, "b": 2, "c": 3}, advances=(0, 1, 2, 3))),
    "four weights": (
        4500, World(capacity=3, weights={"a": 1, "b": 2, "c": 3, "d": 1}, advances=(0, 3), alike="ad"),
    ),
    "evictions with a queue": (
        4000,
        World(
            weights=ABC, lease=4, evict=A | B, at_once=B, leave_tombstone=C, advances=(0, 2, 4), tombstone=SHORT,
        ),
    ),
    "the dead and the unreachable": (
        1500, World(weights=ABC, unreachable=(NOBODY, A, A | B | C), dead=(NOBODY, B, C), advances=(0, 2)),
    ),
    "the unreachable, every second": (
        6000, World(weights=ABC, unreachable=(NOBODY, A, A | B, A | B | C), advances=(0, 1, 2)),
    ),
    "a clock that goes back and a size that changes": (
        3000, World(capacity=2, weights=MIXED, resize=(1, 2), advances=(-2, 0, 2), alike="ac"),
    ),
    "everything with two": (
        2500,
        World(
            capacity=2, weights={"a": 1, "b": 2}, block=2, renew=A | B, strangers=True, downgrade=B,
            leave_tombstone=A, evict=B, at_once=A, evict_all=True, keep={"b": 5}, resize=(1, 2),
            unreachable=(NOBODY, A, A | B), dead=(NOBODY, A, B),
            advances=(-2, 0, 3), tombstone=SHORT,
        ),
    ),
}  # fmt: skip

"""The small worlds that are explored to the last state, each with the number of states that it has at least.

Fewer states than that mean that a world has stopped turning, and the test fails.
"""

from tests.pool_rules.explore import NONE, World

A, B = frozenset("a"), frozenset("b")

WORLDS = {
    "one item, two workers": (500, World(bodies=True, rests=(0, 2), strangers=True)),
    "one item, three workers": (1500, World(tickets="abc", touch=False, advances=(0, 3))),
    "two items, two workers": (350, World(keys="xy", advances=(0, 3))),
    "two items added at once, three workers": (
        1400, World(keys="xy", tickets="abc", together=True, touch=False, quits=False, advances=(0, 3)),
    ),
    "rests": (350, World(keys="xy", tickets="ab", rests=(0, 3), finish=False, quits=False, advances=(0, 3))),
    "named items": (800, World(keys="xy", tickets="abc", named={"b": "x"}, touch=False, advances=(0, 3))),
    "named items that come and go": (
        60, World(tickets="abc", named={"a": "x", "b": "x"}, remove=True, advances=(0, 3)),
    ),
    "one that only tries": (300, World(keys="xy", tickets="abc", tries=B, finish=False, touch=False, advances=(0, 3))),
    "removals": (70, World(remove=True, strangers=True, advances=(0, 3))),
    "leases shorter than the window": (400, World(lease=1, leases={"b": 5}, advances=(0, 1, 2))),
    "a lease that is extended": (40, World(extend=(1, 5), finish=False, advances=(0, 1, 3, 5))),
    "the dead": (900, World(tickets="abc", dead=(NONE, A), touch=False, finish=False, advances=(0, 3))),
    "a clock that goes back": (25, World(tickets="a", rests=(0, 4), advances=(-2, 0, 3))),
    "a clock that goes back, with a queue": (100, World(advances=(-2, 0, 3), touch=False, finish=False)),
}  # fmt: skip

LARGE_WORLDS = {
    "two items, three workers": (5500, World(keys="xy", tickets="abc", touch=False, advances=(0, 3))),
    "three items, two workers": (2400, World(keys="xyz", tickets="ab", touch=False, advances=(0, 3))),
    "one item, four workers": (22000, World(tickets="abcd", touch=False, finish=False, quits=False, advances=(0, 3))),
    "everything with two": (
        2700,
        World(
            keys="xy", tickets="abc", named={"c": "y"}, rests=(0, 2), remove=True, strangers=True, bodies=True,
            dead=(NONE, A), advances=(0, 3),
        ),
    ),
}  # fmt: skip

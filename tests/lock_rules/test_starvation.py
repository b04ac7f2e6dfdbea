"""A living waiter that polls is let in, in the end, whatever the schedule: see patient.py."""

import pytest

from fairlock.rules.locks import EXCLUSIVE
from tests.lock_rules.explore import NOBODY
from tests.lock_rules.starvation import Crowd, Starved, longest_wait

A, X, AB, XAB = frozenset("a"), frozenset("x"), frozenset("ab"), frozenset("xab")

# Everybody holds for 2 s at most, so with two others 4 s are theirs by right. The rest is what the meanest schedule can
# make of lost wake-ups (a turn of 2 s each) and of polls that come as late as they may.
CROWDS = {
    "a lock": (11, 1_000, Crowd()),
    "a lock, the others may crash": (11, 8_000, Crowd(mortal=AB)),
    "a lock, anybody may seem unreachable": (15, 1_500, Crowd(unreachable=(NOBODY, X, XAB - X, XAB))),
    "a lock, anybody may seem unreachable, one may crash": (15, 4_000, Crowd(mortal=A, unreachable=(NOBODY, X, AB))),
    "a writer among readers": (11, 3_000, Crowd(weights={"x": EXCLUSIVE, "a": 1, "b": 1}, mortal=A)),
    "a reader among writers": (11, 3_000, Crowd(weights={"x": 1, "a": EXCLUSIVE, "b": EXCLUSIVE}, mortal=A)),
    "the heaviest of a semaphore": (8, 1_000, Crowd(capacity=2, weights={"x": 2, "a": 1, "b": 1})),
    "the lightest of a semaphore": (11, 1_000, Crowd(capacity=3, weights={"x": 1, "a": 3, "b": 2})),
    "a lease shorter than the window": (4.5, 1_000, Crowd(lease=1, tick=0.5)),
    "a short lease among longer ones": (7.5, 4_000, Crowd(leases={"x": 1}, tick=0.5)),
}


@pytest.mark.parametrize("name", CROWDS)
def test_every_waiter_that_polls_gets_the_lock(name: str) -> None:
    bound, least, crowd = CROWDS[name]
    seconds, states = longest_wait(crowd)
    print(f"{states} states, {seconds} s")
    assert states >= least
    assert 1 <= seconds <= bound


def test_against_those_who_barge_there_is_no_such_promise() -> None:
    """Also the proof that a starving waiter would be noticed."""
    with pytest.raises(Starved):
        longest_wait(Crowd(capacity=2, weights={"x": 2, "a": 1, "b": 1}, unfair=AB))


@pytest.mark.soak
@pytest.mark.parametrize("mortal", [NOBODY, A])
def test_every_waiter_that_polls_gets_the_lock_among_four(mortal: frozenset[str]) -> None:
    crowd = Crowd(
        weights={"x": EXCLUSIVE, "a": EXCLUSIVE, "b": EXCLUSIVE, "c": EXCLUSIVE}, mortal=mortal, unreachable=(NOBODY, X)
    )
    seconds, states = longest_wait(crowd, limit=1_000_000)
    print(f"{states} states, {seconds} s")
    assert states >= 10_000
    assert 1 <= seconds <= 30

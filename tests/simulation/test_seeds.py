"""Scenarios by the thousand: the real flows in virtual time, over three stores, under every fault there is.

A seed that fails prints its history; `./dev python -m tests.simulation SEED` plays it again.
"""

import pytest

from tests.simulation.plan import FAULTS, STORES, Run
from tests.simulation.world import Violation

CHUNK = 150
CHUNKS = 10


def play(first: int, count: int) -> int:
    grants = 0
    for seed in range(first, first + count):
        run = Run(seed)
        try:
            run.play()
        except Violation as violation:
            wrong = f"{violation}\nagain: ./dev python -m tests.sim {seed}"
            break
        grants += run.witness.grants
    else:
        return grants
    pytest.fail(wrong, pytrace=False)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_exclusion_fences_and_progress_hold_whatever_happens(chunk: int) -> None:
    assert play(chunk * CHUNK, CHUNK) > CHUNK  # a simulation in which nobody gets anything proves nothing


@pytest.mark.soak
@pytest.mark.parametrize("chunk", range(100))
def test_the_same_for_many_more_seeds(chunk: int) -> None:
    assert play(1_000_000 + chunk * 1000, 1000) > 1000


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_alone_on_one_store(store: str, fault: str) -> None:
    alone(store, fault, range(12))


@pytest.mark.soak
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_alone_on_one_store_many_times(store: str, fault: str) -> None:
    alone(store, fault, range(1000))


def alone(store: str, fault: str, seeds: range) -> None:
    for seed in seeds:
        wrong = ""
        try:
            Run(seed, store=store, faults={fault}).play()
        except Violation as violation:
            wrong = f"{violation}\nagain: Run({seed}, store={store!r}, faults={{{fault!r}}}).play()"
        if wrong:
            pytest.fail(wrong, pytrace=False)


def test_the_same_seed_plays_the_same_history() -> None:
    one, two = Run(77), Run(77)
    one.play()
    two.play()
    assert one.world.tell(10_000) == two.world.tell(10_000)
    assert one.world.steps > 50

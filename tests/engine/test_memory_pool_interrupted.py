"""Ctrl-C at any moment of a step of the pool in memory damages nothing: the server is in the same process."""

from functools import partial

import pytest

import fairlock
from tests.engine.ctrl_c import CtrlC, settled

STORE = ("stores/memory", "rules/pools/step", "rules/pools/queue")


@pytest.mark.parametrize("end", ["done", "release", "delete"])
def test_before_any_line_of_a_step(end: str) -> None:
    with fairlock.connect("memory://") as locks:
        jobs = locks.pool("jobs")
        jobs.add("other")
        interrupted = 0
        for nth in range(1, 1000):
            ctrl_c = CtrlC(nth, STORE)
            went_through = ctrl_c.run(partial(_work, jobs, end))
            settled(locks)
            counts = jobs.counts()
            assert counts.taken == 0, ctrl_c.at
            assert counts.free + counts.done == len(jobs.items()), ctrl_c.at
            if went_through:
                break
            interrupted += 1
        assert 20 < interrupted < 998


def _work(jobs: fairlock.Pool, end: str) -> bool:
    jobs.remove("a", force=True)
    jobs.add("a")
    item = jobs.acquire(key="a", timeout=10)
    assert item is not None
    try:
        getattr(item, end)()
    finally:
        item.release()
    jobs.remove("a", force=True)
    return True

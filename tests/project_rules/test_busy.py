"""Bounds of time stretch on a busy machine, and only there."""

import os
import time

import pytest

from tests import machine_load


def test_a_bound_is_what_it_says_when_nothing_else_runs_and_grows_with_what_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine_load, "slowness", lambda: 1.0)
    assert machine_load.within(1, below=9) == 1
    monkeypatch.setattr(machine_load, "slowness", lambda: 3.0)
    assert machine_load.within(1, below=9) == 3
    assert machine_load.within(1, below=2) == 2, "never beyond what the mistake would take"


def test_work_that_shares_its_core_is_measured_as_slower() -> None:
    mine = os.sched_getaffinity(0)
    pid = os.fork()
    if not pid:
        os.sched_setaffinity(0, {min(mine)})
        end = time.monotonic() + 5
        while time.monotonic() < end:
            pass
        os._exit(0)
    try:
        os.sched_setaffinity(0, {min(mine)})
        assert max(machine_load.slowness() for _ in range(5)) > 1.5
    finally:
        os.sched_setaffinity(0, mine)
        os.kill(pid, 9)
        os.waitpid(pid, 0)

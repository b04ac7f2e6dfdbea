"""Fixtures for the tests of a program that uses fairlock. Load them in your conftest.py:

    pytest_plugins = ["fairlock.testing.fixtures"]

`locks` and `aio_locks` are clients in memory, private to each test and closed after it, so nothing has to be installed
or cleaned up. With `manual_clock` in the same test they use that clock: leases and timeouts end when the test advances
it, without sleeping.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fairlock
from fairlock import aio

from .clock import ManualClock


@pytest.fixture
def manual_clock() -> ManualClock:
    """Return the manual clock of this test."""
    return ManualClock()


@pytest.fixture
def locks(request: pytest.FixtureRequest) -> Iterator[fairlock.Locks]:
    """Yield a client for threads, in memory."""
    if "manual_clock" in request.fixturenames:
        client = request.getfixturevalue("manual_clock").locks()
    else:
        client = fairlock.connect("memory://")
    with client:
        yield client


@pytest.fixture
def aio_locks(request: pytest.FixtureRequest) -> aio.Locks:
    """Return a client for tasks, in memory. It needs no `close()`: it ends with the loop."""
    if "manual_clock" in request.fixturenames:
        found: aio.Locks = request.getfixturevalue("manual_clock").aio_locks()
        return found
    return aio.connect("memory://")

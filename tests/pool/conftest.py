"""The fixture of the examples."""

import pytest

from tests.pool.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()

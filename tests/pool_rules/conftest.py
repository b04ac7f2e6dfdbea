"""The fixture of the examples."""

import pytest

from tests.pool_rules.walkthrough import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()

"""The fixture of the examples."""

import pytest

from tests.lock_rules.resource import LockUnderTest


@pytest.fixture
def lock() -> LockUnderTest:
    return LockUnderTest()

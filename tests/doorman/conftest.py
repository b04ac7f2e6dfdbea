"""The fixture of the examples."""

import pytest

from tests.doorman.door import Door


@pytest.fixture
def door() -> Door:
    return Door()

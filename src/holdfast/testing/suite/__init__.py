"""What every store must show, whatever it is made of. Two lines play it over yours:

    from holdfast.testing.suite import *
    world = matrix({"mine": lambda folder: f"mine://{folder}/locks"})

Each behaviour is written once and played by threads and by tasks, most of them by every kind of lock. The function
gets an empty folder for each test and gives a URL that no other test uses.
"""

import pytest

_PARTS = ("getting_in",)
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in _PARTS))

from .getting_in import TestGettingIn, TestWaitingSoLong  # noqa: E402
from .stage import matrix as matrix  # noqa: E402

__all__ = [
    "TestGettingIn",
    "TestWaitingSoLong",
    "matrix",
]

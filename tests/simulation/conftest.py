"""Around each test: thousands of simulated losses are kept out of the log, and every stage is cleared away."""

import logging
from collections.abc import Iterator

import pytest

from tests.simulation.actors import STAGES


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("fairlock")
    before, logger.disabled = logger.disabled, True
    yield
    while STAGES:
        STAGES.pop().close()
    logger.disabled = before

"""What a test may change in its process and the next one must not find: the tool silences the log for good."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from fairlock.engine import events


@contextmanager
def as_before() -> Iterator[None]:
    logger = logging.getLogger("fairlock")
    silent, disabled, propagate, level = events.silent, logger.disabled, logger.propagate, logger.level
    switched_off = logging.root.manager.disable
    try:
        yield
    finally:
        events.silent, logger.disabled, logger.propagate = silent, disabled, propagate
        if logger.level != level:
            logger.setLevel(level)
        if logging.root.manager.disable != switched_off:
            logging.disable(switched_off)

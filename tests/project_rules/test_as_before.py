"""What one test leaves behind in its process does not reach the next one."""

import logging
from pathlib import Path

from fairlock.cli import main
from fairlock.engine import events
from tests.as_before import as_before


def test_the_log_is_as_it_was_after_the_tool_ran_in_this_process(tmp_path: Path) -> None:
    logger = logging.getLogger("fairlock")
    with as_before():
        assert main(["-u", f"sqlite:///{tmp_path}/x.db", "ls"]) == 0
        assert events.silent, "the tool silences the log: without that this test shows nothing"
        logger.disabled, logger.propagate = True, False
        logger.setLevel(logging.CRITICAL)
        logging.disable(logging.CRITICAL)
    assert not events.silent
    assert not logger.disabled and logger.propagate
    assert logger.isEnabledFor(logging.WARNING)

"""Runs the command-line tool as `python -m fairlock`, without an installed script."""

import sys

from fairlock.cli import main

sys.exit(main())

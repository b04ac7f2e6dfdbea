"""`python -m holdfast`: the command-line tool without an installed script."""

import sys

from holdfast.cli import main

sys.exit(main())

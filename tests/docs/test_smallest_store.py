"""The smallest store of docs/adding-a-store.md, put through the kit in real time: it sleeps between two looks.

Real time is long, so only getting in is played every time; the rest is for the long runs.
"""

from pathlib import Path

import pytest

from holdfast.testing import suite
from holdfast.testing.suite import matrix
from tests.docs.test_adding_a_store import PageSite

QUICK = {"TestGettingIn"}


def smallest(folder: Path) -> PageSite:
    return PageSite("DrawerStore", None)


world = matrix({"smallest": smallest})

for _name in suite.__all__:
    if _name.startswith("Test"):
        # A class of its own: a mark on theirs would hold for every other store, too.
        _group = type(_name, (getattr(suite, _name),), {"__module__": __name__})
        globals()[_name] = _group if _name in QUICK else pytest.mark.soak(_group)

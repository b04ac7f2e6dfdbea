"""The kit leaves nothing out: every behaviour in it is played over every store that connect() knows.

(That every store under stores/ is in the matrix is shown beside the matrix, in tests/contract.)
"""

import ast
from pathlib import Path

from fairlock.connect import SCHEMES
from fairlock.testing import suite
from tests.contract.conftest import STORES
from tests.project_rules.tree import SRC


def behaviours(folder: Path) -> set[str]:
    """The test classes and functions that the modules of a folder define."""
    found = set()
    for path in folder.glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                if node.name.startswith(("Test", "test_")):
                    found.add(node.name)
    return found


def test_every_behaviour_of_the_kit_is_played() -> None:
    found = behaviours(SRC / "fairlock" / "testing" / "suite")
    assert found
    assert found - set(suite.__all__) == set()


# Other roads to a store that is played; what travels on them is the same.
ROADS = {
    "unix": "redis", "rediss": "redis", "rediss+sentinel": "redis_sentinel", "rediss+cluster": "redis_cluster",
    "mysql": "mariadb",
}  # fmt: skip


def test_every_url_that_connect_knows_is_in_the_matrix() -> None:
    stores = {ROADS.get(scheme, scheme.replace("+", "_").replace("-", "_")) for scheme in SCHEMES}
    assert stores - set(STORES) == set()


def test_a_behaviour_that_nobody_plays_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "leaving.py").write_text("class TestLeaving: ...\ndef test_alone(): ...\ndef other(): ...\n")
    assert behaviours(tmp_path) == {"TestLeaving", "test_alone"}

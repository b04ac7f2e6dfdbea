"""A store cannot exist without being in the matrix: what lies under backends/ is compared with what is played."""

import pkgutil
from pathlib import Path

import pytest

import holdfast.backends
from holdfast.testing import suite
from holdfast.testing.sites import UrlSite
from holdfast.testing.suite.stage import PoolBehaviours
from holdfast.testing.world import ThreadWorld
from tests.contract.conftest import SQL, STORES

NO_STORES = {
    "contract": "what a store has to be",
    "cas": "the engine; it is played over a dict, as the store 'cas'",
    "turns": "how steps of one client at one row are made together",
    "names": "how names are kept and found",
    "pool_contract": "what a store of pools has to be",
    "cas_pool": "the engine of pools; it is played over the same dict",
    "item_rows": "items as rows of any store; played there, too",
    "damage": "what is said of a record that cannot be read",
    "urls": "how URLs are read",
    "item_damage": "what is said of an item that cannot be read",
    "patience": "until when a caller waits",
    "in_time": "the same for tasks",
    "polling": "how one waits where nothing is pushed",
}


def unplayed(folder: Path, played: set[str]) -> set[str]:
    found = {module.name for module in pkgutil.iter_modules([str(folder)]) if not module.name.startswith("_")}
    return found - set(NO_STORES) - played - ({"sql"} if played & SQL else set())


def test_every_store_is_in_the_matrix() -> None:
    folder = Path(holdfast.backends.__path__[0])
    assert unplayed(folder, set(STORES)) == set(), "say in tests/contract/conftest.py where a test finds these stores"


def test_a_store_that_is_not_in_the_matrix_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "etcd").mkdir()
    (tmp_path / "etcd" / "__init__.py").touch()
    (tmp_path / "contract.py").touch()
    (tmp_path / "memory.py").touch()
    assert unplayed(tmp_path, {"memory"}) == {"etcd"}


@pytest.mark.parametrize("store", STORES)
def test_every_store_keeps_pools(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The suite skips what it plays of pools where there are none. That is for the stores of others."""
    opened = STORES[store]
    site = request.getfixturevalue(opened) if isinstance(opened, str) else opened(tmp_path)
    world = ThreadWorld(UrlSite(site) if isinstance(site, str) else site)
    assert world.keeps_pools()
    world.run(world.rest())


def test_much_is_played_of_pools() -> None:
    classes = [getattr(suite, name) for name in suite.__all__ if name.startswith("Test")]
    played = [each for each in classes if issubclass(each, PoolBehaviours)]
    assert len(played) >= 8

"""A store cannot exist without being in the matrix: the modules under stores/ are compared with the tested ones."""

import pkgutil
from pathlib import Path

import pytest

import fairlock.stores
from fairlock.testing import suite
from fairlock.testing.harness import ThreadHarness
from fairlock.testing.store_factories import UrlSite
from fairlock.testing.suite.parametrize import PoolBehaviours
from tests.contract.conftest import SQL, STORES

NO_STORES = {
    "base": "the classes that a store derives from",
    "cas": "the engine; it is tested over a dict, as the store 'cas'",
    "merge_concurrent_steps": "how steps of one client at one row are made together",
    "keys": "how names are kept and found",
    "cas_pools": "the engine of pools; it is tested over the same dict",
    "pool_items_as_rows": "items as rows of any store; tested there, too",
    "user_transaction": "a transaction of the user, in which lease.seal locks a row",
    "take_item_by_cas": "how an item is taken by compare and swap; tested there, too",
    "damaged_records": "the error for a record that cannot be decoded",
    "damaged_items": "the error for an item that cannot be decoded",
    "split_url": "how URLs are parsed",
    "deadline": "until when a caller waits",
    "async_deadline": "the same for tasks",
    "task_futures": "futures whose task is run by the callback that completes them",
    "polling": "how waiters poll a store without notifications",
    "wakeups": "the inbox of wake-ups and the reader that clients share",
    "row_cache": "the last seen row of each name",
    "shared_connections": "connections that clients of one process use together",
    "server_clock": "the estimate of a server's clock",
    "jitter": "random pauses",
}


def unplayed(folder: Path, played: set[str]) -> set[str]:
    found = {module.name for module in pkgutil.iter_modules([str(folder)]) if not module.name.startswith("_")}
    return found - set(NO_STORES) - played - ({"sql"} if played & SQL else set())


def test_every_store_is_in_the_matrix() -> None:
    folder = Path(fairlock.stores.__path__[0])
    assert unplayed(folder, set(STORES)) == set(), "add these stores to STORES in tests/contract/conftest.py"


def test_every_module_that_is_no_store_exists() -> None:
    folder = Path(fairlock.stores.__path__[0])
    assert [name for name in NO_STORES if not (folder / f"{name}.py").is_file()] == []


def test_a_store_that_is_not_in_the_matrix_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "etcd").mkdir()
    (tmp_path / "etcd" / "__init__.py").touch()
    (tmp_path / "base.py").touch()
    (tmp_path / "memory.py").touch()
    assert unplayed(tmp_path, {"memory"}) == {"etcd"}


@pytest.mark.parametrize("store", STORES)
def test_every_store_keeps_pools(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The suite skips what it plays of pools where there are none. That is for the stores of others."""
    opened = STORES[store]
    site = request.getfixturevalue(opened) if isinstance(opened, str) else opened(tmp_path)
    harness = ThreadHarness(UrlSite(site) if isinstance(site, str) else site)
    assert harness.keeps_pools()
    harness.run(harness.rest())


def test_much_is_played_of_pools() -> None:
    classes = [getattr(suite, name) for name in suite.__all__ if name.startswith("Test")]
    played = [each for each in classes if issubclass(each, PoolBehaviours)]
    assert len(played) >= 8

"""What fairlock.recipes offers: exactly these names, documented, the same for threads and tasks, and no driver yet."""

import inspect
import subprocess
import sys

import pytest
import redis.asyncio.lock
import redis.lock

import fairlock
from fairlock import recipes
from fairlock.recipes import aio
from tests.project_rules import two_faces
from tests.project_rules.test_public_names import undocumented
from tests.project_rules.tree import SRC, imports

# Those that take a client of fairlock, in both faces: the function, and the classes of what it makes.
ON_EVERY_STORE = {
    "elect", "Election", "leader", "Leader",
    "once", "Once",
    "idempotent", "Idempotent", "InProgress",
    "throttle", "Throttle",
    "build",
    "tree", "Tree", "TreeLock", "TreeLease",
}  # fmt: skip
NAMES = ON_EVERY_STORE | {
    "AlreadyAcquiredLockError", "ExpLock", "FairMutex", "NoSQLTasks", "RedisPyLock", "RemoteLocks", "StaleLock",
    "TooManyLockAttemptsError", "ZMutexSet",
}  # fmt: skip
REDIS_PY = ["acquire", "release", "locked", "owned", "extend", "reacquire"]


def test_the_public_names_are_exactly_these() -> None:
    assert set(recipes.__all__) == NAMES
    assert set(aio.__all__) == ON_EVERY_STORE | {"FairMutex", "RedisPyLock", "RemoteLocks"}


@pytest.mark.parametrize("face", [recipes, aio])
def test_every_public_name_is_documented(face) -> None:  # type: ignore[no-untyped-def]
    assert [missing for name in face.__all__ for missing in undocumented(name, getattr(face, name))] == []


def test_threads_and_tasks_have_the_same_members() -> None:
    assert two_faces.differences(recipes.FairMutex, aio.FairMutex) == []
    assert two_faces.differences(recipes.RemoteLocks, aio.RemoteLocks) == []
    for name in ON_EVERY_STORE:
        one, other = getattr(recipes, name), getattr(aio, name)
        if inspect.isclass(one):
            assert two_faces.differences(one, other) == []
        else:
            assert two_faces.parameters(one) == two_faces.parameters(other)
    (only_one,) = two_faces.differences(recipes.RedisPyLock, aio.RedisPyLock)
    assert only_one.startswith("RedisPyLock.acquire takes")  # and in redis-py, too, only the one for threads has sleep


def test_what_talks_to_the_server_is_awaited() -> None:
    awaited = {name for name, member in two_faces.members(aio.RedisPyLock).items() if two_faces.awaited(member)}
    assert awaited == {*REDIS_PY, "__enter__", "__exit__"}


@pytest.mark.parametrize("ours, theirs", [
    (recipes.RedisPyLock, redis.lock.Lock), (aio.RedisPyLock, redis.asyncio.lock.Lock),
])
@pytest.mark.parametrize("method", ["__init__", *REDIS_PY])
def test_each_method_takes_what_redis_pys_takes(ours: type, theirs: type, method: str) -> None:
    def shape(cls: type) -> list[tuple[str, object]]:
        found = inspect.signature(getattr(cls, method)).parameters.values()
        return [(p.name, p.default) for p in found if p.name != "also"]  # the bridge, for a fleet that changes over

    assert shape(ours) == shape(theirs)


def test_importing_the_recipes_does_not_import_the_driver() -> None:
    """So that a program without it may import them, and one with it pays when it makes a client."""
    code = "import sys, fairlock.recipes; assert not {'redis', 'oci', 'asyncio'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    late = [each for path in (SRC / "fairlock/recipes").rglob("*.py") for each in imports(path) if each.eager]
    assert [each.module for each in late if each.module.split(".")[0] in ("redis", "oci")] == []


def test_cron_without_croniter_is_refused_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "croniter", None)
    with pytest.raises(fairlock.ConfigError, match=r"pip install 'fairlock\[cron\]'"):
        fairlock.connect("memory://").once("x", cron="0 3 * * *")

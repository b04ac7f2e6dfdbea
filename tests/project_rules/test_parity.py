"""The two faces are one: `fairlock` and `fairlock.aio` have the same names, parameters and types.

What talks to the store is awaited in the second, and nothing else differs: a program moves from one to the other by
adding async and await.
"""

import inspect
from collections.abc import Awaitable, Callable

import pytest

import fairlock
import fairlock.aio
from tests.project_rules import two_faces

PUBLIC = sorted(name for name in fairlock.__all__ if inspect.isclass(getattr(fairlock, name)))

# What is awaited in fairlock.aio: exactly what talks to the store. The rest only looks at a clock, or makes an object.
AWAITED = {
    "Locks": {"attach", "release", "extend", "ask", "audit", "evict", "resize", "snapshot", "ping", "repair", "close",
              "leader", "build", "__enter__", "__exit__"},
    "Lock": {"acquire", "release", "locked", "__enter__", "__exit__"},
    "RWLock": set(),
    "Semaphore": {"acquire", "release", "locked", "__enter__", "__exit__"},
    "Lease": {"renew", "extend", "release", "downgrade", "detach", "seal", "__enter__", "__exit__"},
    "Pool": {"add", "add_many", "remove", "items", "counts", "acquire"},
    "Item": {"renew", "extend", "update", "seal", "release", "done", "delete", "__enter__", "__exit__"},
}
PLAIN = {"lost", "held", "remaining", "ensure_held"}


def test_both_faces_have_the_same_names() -> None:
    assert sorted(fairlock.aio.__all__) == sorted(fairlock.__all__)


def test_the_names_that_differ_are_those_that_wait() -> None:
    differing = {name for name in PUBLIC if getattr(fairlock, name) is not getattr(fairlock.aio, name)}
    assert differing == set(AWAITED)


@pytest.mark.parametrize("name", sorted(AWAITED))
def test_a_class_has_the_same_members_in_both_faces(name: str) -> None:
    assert two_faces.differences(getattr(fairlock, name), getattr(fairlock.aio, name)) == []


def test_connect_takes_the_same_in_both_faces() -> None:
    assert two_faces.parameters(fairlock.connect) == two_faces.parameters(fairlock.aio.connect)
    assert not two_faces.awaited(fairlock.aio.connect)


@pytest.mark.parametrize("name", sorted(AWAITED))
def test_what_talks_to_the_store_is_awaited_and_nothing_else_is(name: str) -> None:
    members = two_faces.members(getattr(fairlock.aio, name))
    assert {each for each, member in members.items() if two_faces.awaited(member)} == AWAITED[name]


def test_what_reads_the_clock_is_plain_in_both_faces() -> None:
    for lease in (fairlock.Lease, fairlock.aio.Lease, fairlock.Item, fairlock.aio.Item):
        assert set(two_faces.members(lease)) >= PLAIN
        assert not any(two_faces.awaited(two_faces.members(lease)[name]) for name in PLAIN)


# The comparison itself


class Lock:
    held: bool

    def __init__(self) -> None:
        self.name = ""

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> int | None: ...

    def locked(self) -> bool: ...

    def guard(self, function: Callable[[int], str]) -> Callable[[int], str]: ...

    def __enter__(self) -> int: ...


class TheSame:
    held: bool

    def __init__(self) -> None:
        self.name = ""

    async def acquire(self, blocking: bool = True, timeout: float | None = None) -> int | None: ...

    def locked(self) -> Awaitable[bool]: ...

    def guard(self, function: Callable[[int], Awaitable[str]]) -> Callable[[int], Awaitable[str]]: ...

    async def __aenter__(self) -> int: ...


class OneMore(TheSame):
    def owned(self) -> bool: ...


class OneMoreAttribute(TheSame):
    def __init__(self) -> None:
        self.owner = ""


class OtherOrder(TheSame):
    async def acquire(self, timeout: float | None = None, blocking: bool = True) -> int | None: ...


class OtherDefault(TheSame):
    async def acquire(self, blocking: bool = False, timeout: float | None = None) -> int | None: ...


class OtherType(TheSame):
    async def acquire(self, blocking: bool = True, timeout: int | None = None) -> int | None: ...


class OtherResult(TheSame):
    async def acquire(self, blocking: bool = True, timeout: float | None = None) -> int: ...


class OnlyByKeyword(TheSame):
    async def acquire(self, *, blocking: bool = True, timeout: float | None = None) -> int | None: ...


class AMethodNow(TheSame):
    async def held(self) -> bool: ...  # type: ignore[override]


def test_async_and_await_are_no_difference() -> None:
    assert two_faces.differences(Lock, TheSame) == []
    assert two_faces.awaited(two_faces.members(TheSame)["acquire"])
    assert two_faces.awaited(two_faces.members(TheSame)["__enter__"])
    assert two_faces.awaited(two_faces.members(TheSame)["locked"])
    assert not two_faces.awaited(two_faces.members(TheSame)["guard"])


@pytest.mark.parametrize(
    "other",
    [OneMore, OneMoreAttribute, OtherOrder, OtherDefault, OtherType, OtherResult, OnlyByKeyword, AMethodNow],
)
def test_any_other_difference_is_noticed(other: type) -> None:
    assert len(two_faces.differences(Lock, other)) == 1


def test_an_awaited_method_in_the_face_for_threads_is_noticed() -> None:
    assert two_faces.differences(TheSame, TheSame) != []

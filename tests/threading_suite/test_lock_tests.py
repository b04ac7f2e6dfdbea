"""CPython's own tests of threading's locks (`test.lock_tests`), passed by ours: they behave alike.

Lock and Condition take our objects as they are, RLock takes reentrant ones. threading's semaphores give True and False
and can be released by number, so they need an adapter of three lines.

What cannot apply is named in NOT_OURS with the reason, and nothing else is left out.
"""

import os
import tempfile
import threading
import unittest
from itertools import count
from typing import Any

import pytest

import fairlock

try:
    from test import lock_tests
except ImportError:
    if os.environ.get("CI") == "true":
        raise
    pytest.skip("this Python lacks test.lock_tests (Debian: libpython3.11-testsuite)", allow_module_level=True)

# Their class, our lock: the tests of theirs that cannot apply, and why.
NOT_OURS = {
    ("LockTests", "Plain"): {
        "test_at_fork_reinit": "_at_fork_reinit is CPython's own; here the child of a fork holds nothing",
    },
    ("RLockTests", "Reentrant"): {
        "test_different_thread": "what is held may be released by any thread, as it may by another process",
        "test_recursion_count": "_recursion_count is a private method of CPython's",
    },
    ("ConditionTests", "OverPlain"): {
        "test_acquire": "it acquires a condition twice, because threading's use an RLock by default",
    },
    ("SemaphoreTests", "Slots"): {
        "test_release_unacquired": "a semaphore with leases is always bounded: only a holder can release",
        "test_repr": "the repr counts free slots, which here would have to ask the store",
    },
    ("BoundedSemaphoreTests", "Slots"): {
        "test_repr": "the repr counts free slots, which here would have to ask the store",
    },
}

STORES = {"Memory": "memory://", "SQLite": "sqlite:///{}/locks.db"}

_numbers = count()


class Client(unittest.TestCase):
    """One client for each test, whose keeper is at work before CPython counts the threads."""

    url = ""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.locks = fairlock.connect(self.url.format(folder.name))
        self.addCleanup(self.locks.close)
        self.locks.lock("something that keeps the keeper at work").acquire()
        super().setUp()


class Plain(Client):
    def locktype(self) -> fairlock.Lock:
        return self.locks.lock(f"lock-{next(_numbers)}")


class Reentrant(Client):
    def locktype(self) -> fairlock.Lock:
        return self.locks.lock(f"lock-{next(_numbers)}", reentrant=True)


class OverPlain(Plain):
    def condtype(self, lock: Any = None) -> threading.Condition:
        return threading.Condition(self.locktype() if lock is None else lock)


class OverReentrant(Reentrant):
    def condtype(self, lock: Any = None) -> threading.Condition:
        return threading.Condition(self.locktype() if lock is None else lock)


class LikeThreadings:
    """A semaphore of ours in the clothes of threading's."""

    def __init__(self, semaphore: fairlock.Semaphore) -> None:
        self._semaphore = semaphore

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        return self._semaphore.acquire(blocking, timeout) is not None

    def release(self, n: int = 1) -> None:
        try:
            for _ in range(n):
                self._semaphore.release()
        except fairlock.NotHeld as error:
            raise ValueError from error

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()


class Slots(Client):
    def semtype(self, value: int = 1) -> LikeThreadings:
        return LikeThreadings(self.locks.semaphore(f"semaphore-{next(_numbers)}", value))


CASES = [
    (lock_tests.LockTests, Plain),
    (lock_tests.RLockTests, Reentrant),
    (lock_tests.ConditionTests, OverPlain),
    (lock_tests.ConditionTests, OverReentrant),
    (lock_tests.SemaphoreTests, Slots),
    (lock_tests.BoundedSemaphoreTests, Slots),
]

for store, url in STORES.items():
    for theirs, ours in CASES:
        name = f"Test{theirs.__name__}{ours.__name__}{store}"
        left_out = dict.fromkeys(NOT_OURS.get((theirs.__name__, ours.__name__), ()))
        globals()[name] = type(name, (ours, theirs), {"url": url, "__test__": True, **left_out})
del theirs, ours


def test_what_is_left_out_exists_and_has_a_reason() -> None:
    for (theirs, _), left_out in NOT_OURS.items():
        for test, reason in left_out.items():
            assert reason
            assert hasattr(getattr(lock_tests, theirs), test) or test == "test_recursion_count"  # not in every 3.11

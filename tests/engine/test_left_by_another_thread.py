"""hold() may be left by another thread than the one that entered, at any moment of what that one does meanwhile."""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import fairlock

WATCHED = {"_enter", "__exit__", "enter", "no_longer_entered", "entered_by", "_last_entered", "_was_left", "_where"}
MOMENT = 0.02  # seconds: the other thread has done its part by then, or waits for this one


def pause_before(number: int, work: Callable[[], object], meanwhile: Callable[[], object]) -> bool:
    """Do the work, and before its instruction of this number what another thread does meanwhile. False: there is no
    such instruction, and nothing was done meanwhile."""
    threads: list[threading.Thread] = []
    errors: list[BaseException] = []
    left = number

    def careful(do: Callable[[], object]) -> None:
        try:
            do()
        except BaseException as error:
            errors.append(error)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_name not in WATCHED or "fairlock" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            if left == 0:
                threads.append(threading.Thread(target=careful, args=(meanwhile,)))
                threads[0].start()
                threads[0].join(MOMENT)
            left -= 1
        return trace

    sys.settrace(trace)
    try:
        careful(work)
    finally:
        sys.settrace(None)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert not errors, f"before instruction {number}: {errors}"
    return bool(threads)


def check(locks: fairlock.Locks, number: int) -> None:
    assert not locks._session.entered, number
    for name in ("a", "b"):
        lease = locks.lock(name).acquire(False)
        assert lease, f"before instruction {number}: {name} is still held"
        lease.release()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("again", [False, True], ids=["another lock", "the same lock"])
def test_while_the_one_that_entered_uses_a_with_of_its_own(again: bool) -> None:
    for number in range(1000):
        with fairlock.connect("memory://") as locks:
            holding = locks.lock("a").hold()
            holding.__enter__()
            mine = locks.lock("a" if again else "b")

            def enter_and_leave(mine: fairlock.Lock = mine) -> None:
                try:
                    with mine:
                        pass
                except fairlock.AlreadyHeld:
                    assert mine.name == "a"

            paused = pause_before(number, enter_and_leave, lambda h=holding: h.__exit__(None, None, None))  # type: ignore[misc]
            if not paused:
                holding.__exit__(None, None, None)
            check(locks, number)
            if not paused:
                assert number > 20
                return
    pytest.fail("it has no end")


@pytest.mark.timeout(120)
def test_while_it_leaves_the_one_that_entered_uses_a_with_of_its_own() -> None:
    for number in range(1000):
        with fairlock.connect("memory://") as locks:
            owner = Owner(locks)
            owner.start()
            assert owner.entered.wait(10)
            paused = pause_before(number, lambda: owner.holding.__exit__(None, None, None), owner.enter)  # noqa: B023
            owner.may_leave.set()
            owner.may_enter.set()
            owner.join(10)
            assert not owner.is_alive()
            assert not owner.errors, f"before instruction {number}: {owner.errors}"
            check(locks, number)
            if not paused:
                assert number > 20
                return
    pytest.fail("it has no end")


class UsesTheClient:
    """In the place where it is made, nothing but the frame refers to it."""

    def __init__(self, lock: fairlock.Lock) -> None:
        self.lock = lock

    def __del__(self) -> None:
        with self.lock:
            pass


@pytest.mark.parametrize("holding", [False, True], ids=["with", "hold"])
def test_what_ends_with_the_frame_that_entered_may_use_the_client(holding: bool) -> None:
    locks = fairlock.connect("memory://")
    lock = locks.lock("a")

    def enter_and_leave() -> None:
        def enter() -> Any:
            last = UsesTheClient(locks.lock("b"))
            block: Any = lock.hold() if holding else lock
            block.__enter__()
            assert last
            return block

        enter().__exit__(None, None, None)
        done.set()

    done = threading.Event()
    threading.Thread(target=enter_and_leave, daemon=True).start()
    assert done.wait(10)  # before anything else uses the client: it would wait, too
    check(locks, 0)
    locks.close()


class Owner(threading.Thread):
    """Enters a hold() that another thread leaves, and then another lock, when it may."""

    def __init__(self, locks: fairlock.Locks) -> None:
        super().__init__()
        self.holding, self.other = locks.lock("a").hold(), locks.lock("b")
        self.entered, self.may_enter, self.is_in, self.may_leave = (threading.Event() for _ in range(4))
        self.errors: list[BaseException] = []

    def enter(self) -> None:
        self.may_enter.set()
        self.is_in.wait(MOMENT)

    def run(self) -> None:
        self.holding.__enter__()
        self.entered.set()
        self.may_enter.wait(10)
        try:
            with self.other:
                self.is_in.set()
                self.may_leave.wait(10)
        except BaseException as error:
            self.errors.append(error)

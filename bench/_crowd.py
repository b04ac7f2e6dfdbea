"""Processes that fight over one lock, and what is seen of it: on a board of numbers that all of them share.

Everything is timed by CLOCK_MONOTONIC, which all processes of a machine read alike. Children are forked before any
contender is opened, are ended by their pid, and never outlive the measurement by more than its limit.
"""

import mmap
import os
import random
import signal
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

from _contenders import Contender, Section

LIMIT = 60.0  # seconds that any one measurement may take
Board = memoryview


def board(size: int) -> Board:
    """So many numbers, zero at first, shared with every child."""
    return memoryview(mmap.mmap(-1, size * 8)).cast("q")


class Crowd:
    """Children, each running `work(index)`. Leaving the block waits for them, and ends those that take too long."""

    def __init__(self, size: int, work: Callable[[int], None]) -> None:
        self.pids = [self._child(work, i) for i in range(size)]

    def _child(self, work: Callable[[int], None], index: int) -> int:
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            code = 1
            try:
                work(index)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        return pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end = time.monotonic() + LIMIT
        failed = 0
        for pid in self.pids:
            while True:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    failed += status not in (0, signal.SIGKILL)
                    break
                if time.monotonic() > end:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.001)
        if failed:
            raise RuntimeError(f"{failed} of {len(self.pids)} processes failed; their output stands above")


def prepare(contender: Contender, folder: str) -> None:
    """One use, so that the files are there and nobody is measured while making them."""

    def work(_: int) -> None:
        contender.open(folder)
        with contender.same():
            pass
        contender.close()

    with Crowd(1, work):
        pass


def wait_until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not reached():
        if time.monotonic() > end:
            raise TimeoutError("the other processes did not get there in time")
        time.sleep(0.0005)


# -- an uncontended lock


def cycles(contenders: Sequence[Contender], folder: str, seconds: float) -> list[tuple[float, float]]:
    """Acquire and release per second with nobody else there, of each: a new object each time, one used again.

    All of them in one process, in turns of a few milliseconds. The median turn counts: one in which the process had to
    wait for a CPU says nothing about a lock.
    """
    rates = board(2 * len(contenders))

    def work(_: int) -> None:
        for contender in contenders:
            contender.open(folder)
        sections = [section for contender in contenders for section in (contender.fresh, contender.same)]
        turns: list[list[float]] = [[] for _ in sections]
        for section in sections:
            _turn(section, 50)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for section, times in zip(sections, turns, strict=True):
                times.append(_turn(section, 25))
        for index, times in enumerate(turns):
            rates[index] = int(1000 / statistics.median(times))
        for contender in contenders:
            contender.close()

    with Crowd(1, work):
        pass
    return [(rates[2 * i] / 1000, rates[2 * i + 1] / 1000) for i in range(len(contenders))]


def _turn(section: Section, times: int) -> float:
    """Seconds for each."""
    begun = time.monotonic()
    for _ in range(times):
        with section():
            pass
    return (time.monotonic() - begun) / times


# -- a lock that somebody waits for


def idle(contender: Contender, folder: str, hold: float, turns: int, seconds: float) -> list[float]:
    """Return the times for which the lock is idle although another process waits, in seconds: from the end of one
    section to the start of the next.

    Two processes take turns. Each comes back as soon as the other is inside, and so waits for nearly all of the other's
    hold. That hold varies by a quarter, or a poller's rhythm would fall into step with it.
    """
    gaps = board(turns)
    state = board(3)
    ready, turn, ended = 0, 1, 2
    doors = [os.pipe(), os.pipe()]  # through its own, each learns that the other holds the lock

    def work(me: int) -> None:
        contender.open(folder)
        with contender.same():
            pass
        lengths = random.Random(me)
        end = time.monotonic() + seconds
        state[ready] = 1
        over = False
        while not over:
            if me == 0 or state[turn]:
                os.read(doors[me][0], 1)  # the second to be started is the first to go in
            came = time.monotonic_ns()
            with contender.same():
                begun = time.monotonic_ns()
                over = state[turn] > turns or time.monotonic() > end
                if state[turn] and not over:
                    gaps[state[turn] - 1] = begun - state[ended] if came < state[ended] else 0
                os.write(doors[1 - me][1], b".")
                state[turn] += not over
                time.sleep(0 if over else hold * lengths.uniform(0.75, 1.25))
                state[ended] = time.monotonic_ns()
        contender.close()

    try:
        with Crowd(1, work):
            wait_until(lambda: state[ready] == 1)
            with Crowd(1, lambda _: work(1)):
                pass
    finally:
        for fd in (*doors[0], *doors[1]):
            os.close(fd)
    return [gap / 1e9 for gap in gaps if gap]


class Fight(NamedTuple):
    handoffs: float  # to another process, per second
    jain: float  # 1 = all got the same share, 1/n = one got everything
    longest: float  # seconds that somebody waited
    cpu: float  # seconds of CPU for each hand-off, of all processes together
    cycles: float = 0.0  # per second, of all together


def fight(contender: Contender, folder: str, size: int, seconds: float, hold: float = 0.0) -> Fight:
    """So many processes that want the same lock again and again, for a window of time; `hold` = what they do inside."""
    state = board(4)
    start, last, handoffs, entries = range(4)
    ready, counts, shares, waits, spent = board(size), board(size), board(size), board(size), board(size)

    def work(me: int) -> None:
        contender.open(folder)
        with contender.same():
            pass
        ready[me] = 1
        wait_until(lambda: state[start] > 0)
        end = state[start] + int(seconds * 1e9)
        time.sleep(max(state[start] - time.monotonic_ns(), 0) / 1e9)
        section = contender.same
        count = share = longest = 0
        before = time.process_time_ns()
        came = time.monotonic_ns()
        while came < end:
            with section():
                now = time.monotonic_ns()
                state[entries] += 1  # unprotected but for the lock: a lost one would show
                if now < end:
                    share += 1
                    if state[last] != me + 1:
                        state[last] = me + 1
                        state[handoffs] += 1
                if hold:
                    time.sleep(hold)
            count += 1
            if now - came > longest:
                longest = now - came
            came = time.monotonic_ns()
        counts[me], shares[me], waits[me], spent[me] = count, share, longest, time.process_time_ns() - before
        contender.close()

    with Crowd(size, work):
        wait_until(lambda: sum(ready) == size)
        state[start] = time.monotonic_ns() + 50_000_000
    if state[entries] != sum(counts):
        raise RuntimeError(f"{contender.name} let two in at once: {sum(counts)} entered, {state[entries]} were counted")
    jain = sum(shares) ** 2 / (size * sum(n * n for n in shares))
    cpu = sum(spent) / 1e9 / state[handoffs]
    return Fight(state[handoffs] / seconds, jain, max(waits) / 1e9, cpu, sum(shares) / seconds)


def after_a_kill(contender: Contender, folder: str) -> float:
    """Seconds from kill -9 of the holder until the process that waits is inside."""
    state = board(3)
    held, waiting, entered = range(3)

    def hold(_: int) -> None:
        contender.open(folder)
        with contender.same():
            state[held] = 1
            time.sleep(LIMIT)

    def wait(_: int) -> None:
        contender.open(folder)
        state[waiting] = 1
        with contender.same():
            state[entered] = time.monotonic_ns()
        contender.close()

    with Crowd(1, hold) as holder:
        wait_until(lambda: state[held] == 1)
        with Crowd(1, wait):
            wait_until(lambda: state[waiting] == 1)
            time.sleep(random.uniform(0.1, 0.2))
            killed = time.monotonic_ns()
            os.kill(holder.pids[0], signal.SIGKILL)
    return (state[entered] - killed) / 1e9

"""The recipes with processes that are killed and stopped: the full counts in ./dev soak, a seeded tenth every day.

FAIRLOCK_RECIPES_SEED=7 chooses another seed. What was measured is printed: `./dev soak tests/recipes -s`.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import fairlock
from tests.machine_load import slowness, within
from tests.recipes.faulty_workers import Workers, overlaps

SEED = int(os.environ.get("FAIRLOCK_RECIPES_SEED", "17"))
STORES = ["sqlite", "redis_alone", "postgresql"]
LEASE = 1.0
LATE = 1.0  # seconds after the end of the lease within which another leads; more while other tests run beside it
USED = 0.95  # of the starts that a throttle allows, on a machine that is not busy with other work
RESIGNS = 0.1  # seconds after the end of main within which another leads
NOT_RESIGNED = 0.6  # seconds after which it would lead anyway, because the lease has ended


def on_each(*daily: str) -> pytest.MarkDecorator:
    """All of it on each store in the long runs; a tenth on these every day."""
    long = [pytest.param(store, 1, marks=pytest.mark.soak, id=f"{store}-all") for store in STORES]
    short = [pytest.param(store, 10, id=f"{store}-tenth") for store in daily]
    return pytest.mark.parametrize("store, share", long + short)


@pytest.fixture
def url(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if store == "sqlite":
        return f"sqlite:///{tmp_path}/locks.db"
    server = request.getfixturevalue(store)
    return str(server.url)


def until(what: Callable[[], object], seconds: float = 60) -> float:
    """Wait for it and return how long that took."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < seconds, "it did not happen in time"
        time.sleep(0.002)
    return time.monotonic() - began


def leader(workers: Workers) -> tuple[int, int]:
    """Return the fence and the pid of the newest line of a leader; (0, 0) before the first."""
    lines = [line for line in workers.last() if line[0] == "leads" and len(line) == 4]
    return (int(lines[-1][1]), int(lines[-1][3])) if lines else (0, 0)


@pytest.mark.timeout(600)
@on_each("sqlite", "redis_alone")
def test_elections_never_have_two_leaders(url: str, share: int, tmp_path: Path, store: str) -> None:
    chance = random.Random(SEED)
    faults = ["kill"] * (50 // share) + ["stop"] * (50 // share)
    chance.shuffle(faults)
    gaps, resigned, late = [], [], []
    with Workers(url, tmp_path, LEASE) as workers, fairlock.connect(url) as locks:

        def others_wait() -> bool:
            found = locks.snapshot("x").resources
            return bool(found) and len(found[0].queue) >= 2

        for number in range(5):
            workers.start("elect", "tasks" if number > 2 else "threads")
        until(lambda: leader(workers)[0])
        for fault in faults:
            until(others_wait)  # a process takes a while to start
            time.sleep(chance.uniform(0.0, 0.1))
            fence, pid = leader(workers)
            worker = workers.by_pid(pid)
            worker.send_signal(signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
            gaps.append(until(lambda fence=fence: leader(workers)[0] > fence))
            worker.send_signal(signal.SIGCONT)
            if fault == "kill":
                workers.kill(worker)
                workers.start("elect", chance.choice(["threads", "tasks"]))
        for _ in range(max(20 // share, 3)):
            until(others_wait)
            fence, pid = leader(workers)
            allowed = within(RESIGNS, below=NOT_RESIGNED)
            workers.by_pid(pid).terminate()
            until(lambda fence=fence: leader(workers)[0] > fence)
            allowed = max(allowed, within(RESIGNS, below=NOT_RESIGNED))
            assert workers.by_pid(pid).wait(30) == 143
            begins = min(float(at) for each, at, _ in workers.lines("leads") if int(each) > fence)
            (ended,) = [float(at) for each, at, _ in workers.lines("ends") if int(each) == fence]
            resigned.append(begins - ended)
            late += [(begins - ended, allowed)] if begins - ended > allowed else []
            workers.running.remove(workers.by_pid(pid))
            workers.start("elect", chance.choice(["threads", "tasks"]))
        terms: dict[int, tuple[float, float]] = {}
        for fence, at, _ in workers.lines("leads"):
            first, last = terms.get(int(fence), (float(at), float(at)))
            terms[int(fence)] = min(first, float(at)), max(last, float(at))
    print(
        f"\n{store}: {len(terms)} terms; next leader after {statistics.median(gaps):.2f} s, at most {max(gaps):.2f} s; "
        f"after main has ended {statistics.median(resigned) * 1000:.0f} ms, at most {max(resigned) * 1000:.0f} ms"
    )
    assert list(overlaps(terms)) == []
    assert max(gaps) < LEASE + LATE * (1 if share == 1 else 5)
    assert late == [], "seconds after main has ended, and those that a machine as busy as this one is allowed"


@pytest.mark.timeout(300)
@on_each("sqlite")
def test_each_tick_is_executed_once(url: str, share: int, tmp_path: Path, store: str) -> None:
    ticks, every = 100 // share, 1.0 if share == 1 else 0.5
    with Workers(url, tmp_path, LEASE) as workers:
        for _ in range(8):
            workers.start("once", "threads", every, 0.01)
        until(lambda: len(workers.lines("ends")) > ticks + 1, ticks * every + 60)
        begun = [(int(tick), int(tries)) for tick, tries, _ in workers.lines("begins")]
        errors = workers.lines("error")
    whole = range(min(begun)[0], max(begun)[0], int(every * 1e6))
    print(f"\n{store}: {len(whole)} ticks, {len(begun)} executions by 8 processes, errors: {errors}")
    counts = Counter(tick for tick, _ in begun)
    assert {tick: counts[tick] for tick in whole if counts[tick] != 1} == {}


@pytest.mark.timeout(300)
@on_each("sqlite")
def test_with_kills_a_tick_is_executed_at_most_twice(url: str, share: int, tmp_path: Path, store: str) -> None:
    chance = random.Random(SEED)
    ticks, every, lease = 100 // share, 1.2, 0.5
    killed = 0
    with Workers(url, tmp_path, lease) as workers:
        for _ in range(8):
            workers.start("once", "threads", every, 0.05)
        seen, begun = 0, []
        ends = time.monotonic() + 1.5 * ticks * every + 60
        while len({line[0] for line in begun}) <= ticks:
            assert time.monotonic() < ends, f"{len(begun)} executions in this time"
            begun = workers.lines("begins")
            if len(begun) > seen and chance.random() < 0.5:
                workers.kill(workers.by_pid(int(begun[-1][2])))
                workers.start("once", "threads", every, 0.05)
                killed += 1
            seen = len(begun)
            time.sleep(0.01)
        begun = workers.lines("begins")
    counts = Counter(int(tick) for tick, _, _ in begun)
    twice = sum(1 for tick in counts if counts[tick] == 2)
    missed = round((max(counts) - min(counts)) / every / 1e6) + 1 - len(counts)
    print(f"\n{store}: {len(counts)} ticks with {killed} kills, {twice} of them executed twice, {missed} not at all")
    assert killed >= ticks // 10
    assert max(counts.values()) <= 2


@pytest.mark.timeout(600)
@on_each("sqlite")
def test_each_key_has_one_result(url: str, share: int, tmp_path: Path, store: str) -> None:
    chance = random.Random(SEED)
    keys, callers = 1000 // share, 4
    killed = 0
    with Workers(url, tmp_path, 0.5) as workers:
        by_caller = {caller: workers.start("idempotent", "threads", keys, caller) for caller in range(callers)}
        while len(workers.lines("over")) < callers:
            time.sleep(chance.uniform(0.3, 0.9))
            caller = chance.randrange(callers)
            over = {line[0] for line in workers.lines("over")}
            if str(caller) not in over:
                workers.kill(by_caller[caller])
                by_caller[caller] = workers.start("idempotent", "threads", keys, caller)
                killed += 1
        results, runs = workers.lines("result"), workers.lines("runs")
    with fairlock.connect(url) as locks:
        stored = {item.key: item.body["result"] for item in locks.pool("idempotent:x").items()}
    counts = Counter(key for key, _ in runs)
    more = sum(counts.values()) - keys
    print(f"\n{store}: {keys} keys, {callers} callers, {killed} kills; {more} runs more than keys")
    assert len(stored) == keys
    assert [line for line in results if stored[line[0]] != line[1]] == []
    assert len({(key, caller) for key, _, caller in results}) == keys * callers
    assert more <= killed


@pytest.mark.timeout(120)
@on_each("sqlite")
def test_a_throttle_keeps_its_limit_in_any_window_and_uses_it(url: str, share: int, tmp_path: Path, store: str) -> None:
    limit, per, length = (20, 2.0, 60.0) if share == 1 else (20, 1.0, 4.0)
    with Workers(url, tmp_path, 30) as workers:
        for _ in range(8):
            workers.start("throttle", "threads", limit, per)
        until(lambda: len({pid for _, pid in workers.lines("start")}) == 8)
        under_load = time.monotonic()  # from here on there are always some that wait
        busy = []
        while time.monotonic() < under_load + length:
            time.sleep(1)
            busy.append(slowness())
        starts = sorted(float(at) for at, _ in workers.lines("start"))
    spans = list(zip(starts, starts[limit:], strict=False))  # from one start to the 21st after it
    closest = min(later - sooner for sooner, later in spans)
    used = per / statistics.mean(later - sooner for sooner, later in spans if sooner >= under_load)
    wanted = max(USED / statistics.mean(busy), 0.5)
    print(
        f"\n{store}: {len(starts)} starts; {limit + 1} took at least {closest:.3f} of {per:g} s; {used:.1%} are used; "
        f"the machine is {statistics.mean(busy):.1f} times slower than alone"
    )
    assert closest >= per
    assert used >= wanted

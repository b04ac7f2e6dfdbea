"""Replies that never come: the wire is cut after the server has carried out the command, or before, or in between.

About a hundred of each here, a thousand in the long runs. Nothing is left behind, no client is refused by its own lock,
and none is notified of a loss that did not happen.
"""

import asyncio
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

import fairlock
from fairlock import LockTimeout, StoreError, aio
from tests.api_parity.test_nothing_left import nothing_is_left
from tests.redis.proxy import Fate, Proxy, kind_of
from tests.servers.server import Server


@pytest.fixture
def proxy(redis_alone: Server) -> Iterator[Proxy]:
    with Proxy(redis_alone.port) as wire:
        yield wire


def now_and_then(kind: str, fates: tuple[str, ...], seed: int) -> Fate:
    """Most requests of this kind meet such a fate, but no ticket more than twice: else the server would be down.

    Tasks share a connection, so a ticket is also hit by the fates of others. If one is sent for the fourth time,
    nothing happens to the next ten requests.
    """
    dice = random.Random(seed)
    met: Counter[bytes] = Counter()
    sent: Counter[bytes] = Counter()
    calm = 0

    def fate(request: bytes) -> str:
        nonlocal calm
        tickets = re.findall(rb"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])", request)
        if kind_of(request) != kind:
            return ""
        sent.update(tickets)
        calm = 10 if any(sent[ticket] > 3 for ticket in tickets) else max(0, calm - 1)
        if calm or any(met[ticket] == 2 for ticket in tickets) or dice.random() < 0.3:
            return ""
        met.update(tickets)
        return dice.choice(fates)

    return fate


def only(kind: str, heard: list[fairlock.Event]) -> Callable[[fairlock.Event], None]:
    return lambda event: heard.append(event) if event.kind == kind else None


MANY = [40, pytest.param(1000, marks=[pytest.mark.soak, pytest.mark.timeout(600)])]
FATES = {"after": ("cut",), "before": ("drop",), "either": ("cut", "drop")}


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("when", FATES)
@pytest.mark.parametrize("kind", ["acquire", "renew", "release"])
def test_by_threads(proxy: Proxy, redis_alone: Server, kind: str, when: str, many: int) -> None:
    many = many if when == "after" else many // 5
    lost: list[fairlock.Event] = []
    with fairlock.connect(proxy.url, lease=60, on_event=only("lost", lost)) as locks:
        with fairlock.connect(redis_alone.url) as other:
            rival = other.lock("x")
            proxy.fate = now_and_then(kind, FATES[when], many)
            while proxy.cuts < many:
                lease = locks.lock("x").acquire(blocking=False)
                assert lease, "refused by our own lock"
                lease.renew()
                assert lease.held
                assert not rival.acquire(False)
                lease.release()
                mine = rival.acquire(False)
                assert mine, "something was left behind"
                assert mine.fence > lease.fence
                mine.release()
            proxy.fate = lambda request: ""
    assert lost == []
    nothing_is_left(redis_alone.url, 5)


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("kind", ["acquire", "renew", "release"])
def test_by_tasks(proxy: Proxy, redis_alone: Server, kind: str, many: int) -> None:
    lost: list[fairlock.Event] = []

    async def main() -> None:
        proxy.fate = now_and_then(kind, ("cut",), many)

        async def one(locks: aio.Locks, other: aio.Locks, name: str) -> None:
            while proxy.cuts < many:
                lease = await locks.lock(name).acquire(blocking=False)
                assert lease, "refused by our own lock"
                await lease.renew()
                assert lease.held
                await lease.release()
                mine = await other.lock(name).acquire(False)
                assert mine, "something was left behind"
                await mine.release()

        async with aio.connect(redis_alone.url) as other:
            async with aio.connect(proxy.url, lease=60, on_event=only("lost", lost)) as locks:
                await asyncio.gather(*[one(locks, other, f"x{number}") for number in range(3)])
                proxy.fate = lambda request: ""

    asyncio.run(main())
    assert lost == []
    nothing_is_left(redis_alone.url, 5)


@pytest.mark.parametrize("many", MANY)
def test_in_a_crowd_with_every_kind_of_fault(redis_alone: Server, many: int) -> None:
    """Four clients behind four bad wires: never two holders, fences rise, each client gets its turns."""
    seen: list[int] = []
    holders = threading.Semaphore(1)
    turns = [0] * 4
    wrong: list[str] = []
    end = time.monotonic() + (60 if many < 1000 else 500)

    def work(number: int, wire: Proxy) -> None:
        dice = random.Random(number * 1000 + many)
        fates = ["", "", "", "", "", "", "cut", "drop", 0.003, 0.02]
        wire.fate = lambda request: dice.choice(fates) if kind_of(request) else ""
        with fairlock.connect(wire.url, lease=5) as locks:
            while turns[number] < many // 4 and time.monotonic() < end:
                try:
                    with locks.lock("x", timeout=30) as lease:
                        if not holders.acquire(blocking=False):
                            wrong.append("two were inside")
                            return
                        if seen and lease.fence <= seen[-1]:
                            wrong.append(f"fence {lease.fence} after {seen[-1]}")
                        seen.append(lease.fence)
                        turns[number] += 1
                        holders.release()
                except (StoreError, LockTimeout):
                    time.sleep(0.01)
            wire.fate = lambda request: ""

    wires = [Proxy(redis_alone.port) for _ in range(4)]
    crowd = [threading.Thread(target=work, args=pair) for pair in enumerate(wires)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    for wire in wires:
        wire.__exit__(None, None, None)
    assert wrong == []
    assert turns == [many // 4] * 4
    nothing_is_left(redis_alone.url, 10)


def test_a_reply_that_never_comes_while_the_wire_holds(proxy: Proxy, redis_alone: Server) -> None:
    """The worst of them: nothing breaks, one just waits. The next try goes by another connection."""
    muted = iter([True])
    proxy.fate = lambda request: "mute" if kind_of(request) == "acquire" and next(muted, False) else ""
    with fairlock.connect(f"{proxy.url}?socket_timeout=0.3") as locks:
        began = time.monotonic()
        with locks.lock("x"):
            assert 0.2 < time.monotonic() - began < 3
        assert proxy.cuts == 1
    nothing_is_left(redis_alone.url, 5)

"""The measurements on a Redis server of the bench's own. redis.py lists what is compared and how."""

import asyncio
import itertools
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from types import TracebackType
from typing import Any, Self

import _crowd
from _contenders import Contender
from _redis_contenders import Fairlock, TokenList
from _redis_tasks import TASKS, TaskContender, rate, raw_rate

Figures = dict[str, float]


class Server:
    """A redis-server that keeps nothing, on a free port, ended by its pid."""

    def __init__(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise SystemExit("This bench needs redis-server: ./dev bench brings it.")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._folder = tempfile.TemporaryDirectory(prefix="bench")
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self._folder.name]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.url = f"redis://127.0.0.1:{self.port}"
        self.pid = self._process.pid
        import redis

        self.client: Any = redis.Redis(port=self.port, decode_responses=True)
        end = time.monotonic() + 10
        while True:
            try:
                self.client.ping()
                break
            except redis.ConnectionError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def on(self, cpus: set[int]) -> None:
        """Let it run on these CPUs only, with all of its threads."""
        for task in os.listdir(f"/proc/{self._process.pid}/task"):
            os.sched_setaffinity(int(task), cpus)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.client.close()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(10)
        self._folder.cleanup()


class Places:
    """Where client and server run: on the same core, on two, or wherever they like."""

    def __init__(self, server: Server, where: str) -> None:
        self._server = server
        self._all = os.sched_getaffinity(0)
        first, *rest = sorted(self._all)
        self._client = {"same core": {first}, "two cores": {rest[0] if rest else first}}.get(where, self._all)
        self._theirs = {first} if where != "anywhere" else self._all

    def __enter__(self) -> None:
        self._server.on(self._theirs)
        os.sched_setaffinity(0, self._client)

    def __exit__(self, *_: object) -> None:
        self._server.on(self._all)
        os.sched_setaffinity(0, self._all)


def alone(kinds: list[type[Contender]], server: Server, where: str) -> dict[str, Figures]:
    """Cycles per second with nobody else there; all in one process, in turns."""
    with Places(server, where):
        contenders = [kind() for kind in kinds]
        found = _crowd.cycles(contenders, server.url, 3.0)
    return {c.name: {f"alone, {where}": same} for c, (_, same) in zip(contenders, found, strict=True)}


def fights(kind: type[Contender], server: Server) -> Figures:
    eight = _crowd.fight(kind(), server.url, 8, 1.5)
    many = _crowd.fight(kind(), server.url, 32, 2.0, hold=0.001)
    return {"8 processes": eight.cycles, "jain of 32": many.jain, "longest of 32": many.longest * 1e3}


def gap(kind: type[Contender], server: Server) -> Figures:
    found = _crowd.idle(kind(), server.url, hold=0.05, turns=20, seconds=3.0)
    return {"idle": statistics.mean(found) * 1e3} if found else {}


def threads(server: Server, size: int, seconds: float) -> dict[str, Figures]:
    """So many threads of one process on one lock: fairlock with one client, the token list with a connection each."""
    import fairlock

    with fairlock.connect(server.url) as locks:
        lock = locks.lock("threads")
        fences: list[int] = []

        def ours() -> None:
            with lock as lease:
                fences.append(lease.fence)

        by_fairlock = _many(size, seconds, [ours] * size)
        if any(one >= other for one, other in itertools.pairwise(fences)):
            raise RuntimeError("a fence did not rise")
    lists = [TokenList() for _ in range(size)]
    for one in lists:
        one.open(server.url)

    def theirs(one: TokenList) -> Any:
        def cycle() -> None:
            with one.same():
                pass

        return cycle

    by_list = _many(size, seconds, [theirs(one) for one in lists])
    for one in lists:
        one.close()
    return {Fairlock.name: {f"{size} threads": by_fairlock}, TokenList.name: {f"{size} threads": by_list}}


def _many(size: int, seconds: float, cycles: list[Any]) -> float:
    counts = [0] * size
    start = threading.Event()
    ends: list[float] = []

    def work(me: int) -> None:
        cycle = cycles[me]
        start.wait()
        while time.monotonic() < ends[0]:
            cycle()
            counts[me] += 1

    crowd = [threading.Thread(target=work, args=(me,)) for me in range(size)]
    for one in crowd:
        one.start()
    ends.append(time.monotonic() + seconds)
    start.set()
    for one in crowd:
        one.join()
    return sum(counts) / seconds


def waiters(server: Server, size: int, seconds: float) -> Figures:
    """Threads of one client in the queue for one lock: their cost for the server, and how soon all are through."""
    import fairlock

    with fairlock.connect(server.url) as holder, fairlock.connect(server.url) as locks:
        with locks.lock("warm"):
            pass
        held = holder.lock("waited").acquire()
        assert held is not None
        before = len(server.client.client_list())
        lock = locks.lock("waited")

        def wait() -> None:
            with lock:
                pass

        crowd = [threading.Thread(target=wait) for _ in range(size)]
        for one in crowd:
            one.start()
        time.sleep(2.0)
        sent, begun = _sent(server), time.monotonic()
        time.sleep(seconds)
        commands = (_sent(server) - sent) / (time.monotonic() - begun)
        more = len(server.client.client_list()) - before
        begun = time.monotonic()
        held.release()
        for one in crowd:
            one.join()
        drained = time.monotonic() - begun
    return {"waiters, commands": commands, "waiters, connections": float(more), "waiters, drained": drained}


def _sent(server: Server) -> int:
    stats = server.client.info("commandstats")
    sent = ("evalsha", "ping", "subscribe", "hello")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in sent)


def tasks(server: Server, kinds: list[type[TaskContender]], where: str, size: int) -> dict[str, Figures]:
    figure = f"{size} tasks, {where}"
    with Places(server, where):
        found = {"raw socket": {figure: raw_rate(server.url, size, 0.7)}}
        for kind in kinds:
            found[kind.name] = {figure: asyncio.run(rate(kind, server.url, size, 0.7))}
    return found


def runnable_tasks(server: Server, missing: dict[str, str]) -> list[type[TaskContender]]:
    found = []
    for kind in TASKS:
        try:
            asyncio.run(rate(kind, server.url, 2, 0.01))
            found.append(kind)
        except Exception as error:
            missing[kind.name] = f"{type(error).__name__}: {error}"[:120]
    return found


def server_time(server: Server, size: int, kind: str) -> Figures:
    """Return the server's microseconds for a step of a lock with one waiter, or one holder, and with `size` of them."""
    import fairlock
    from fairlock.engine.run_sync import run
    from fairlock.rules.locks import EXCLUSIVE, Acquire, Release

    server.client.flushall()
    took: dict[int, list[float]] = {1: [], size: []}
    with fairlock.connect(server.url) as locks:
        backend = locks._session.backend
        capacity, weight = (EXCLUSIVE, EXCLUSIVE) if kind == "queue" else (size + 10, 1)
        request = Acquire("", capacity, weight, 300_000_000)
        for many in took:
            for number in range(many + (kind == "queue")):
                run(backend.call(f"{kind}-{many}", request._replace(ticket=f"crowd{number:027d}")))
        for turn in range(30):
            for many, times in took.items():
                server.client.config_resetstat()
                for number in range(20):
                    ticket = f"guest{turn:07d}{number:020d}"
                    run(backend.call(f"{kind}-{many}", request._replace(ticket=ticket)))
                    run(backend.call(f"{kind}-{many}", Release(ticket)))
                times.append(float(server.client.info("commandstats")["cmdstat_evalsha"]["usec_per_call"]))
    one, several = (statistics.median(times) for times in took.values())
    return {f"server, 1 {kind}": one, f"server, {size} {kind}": several, f"server, {kind} ratio": several / one}

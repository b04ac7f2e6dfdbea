"""What a store can suffer. Each fault is a pair: how it begins, and how it ends."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.faults import plan
from tests.redis.proxy import Proxy
from tests.servers.server import Server
from tests.servers.sql import Database
from tests.sql.test_server_dies import cut_all
from tests.sqlite.test_damage import fill

Pair = tuple[Callable[[], object], Callable[[], object]]


def nothing() -> None:
    """A fault that is over at once, or ends by itself."""


class Target:
    """A store with its faults. `url` is what the workers use, `direct` what those use who look at the outcome."""

    processes: tuple[tuple[int, int], ...] = ((2, 0), (0, 3), (1, 2))
    """Threads and tasks of each process."""
    commands = 1
    """How many `fairlock run` at a time."""
    jobs: tuple[str, ...] = (*(("lock", "handoff", "sem", "pool") * 2), "read", "write", "both")
    long = 0.06
    """How many of a worker's stays take longer than its lease."""
    visits: tuple[float, ...] = (0.1, 0.1, 0.1, 0.1, plan.LEASE * 1.4)
    """How many seconds the command of a `fairlock run` may take."""
    process_faults: tuple[str, ...] = (
        "kill", "pause", "interrupt", "close", "cancel", "fork", "evict", "evict at once", "resize"
    )  # fmt: skip

    def __init__(self, url: str, direct: str = "") -> None:
        self.url, self.direct = url, direct or url
        self.faults: dict[str, Pair] = {}

    def plan(self, seed: int, seconds: float = 9.0) -> plan.Plan:
        return plan.make(seed, self.process_faults, [*self.faults], len(self.processes) + self.commands, seconds)

    def close(self) -> None:
        pass


class Memory(Target):
    processes = ((2, 3),)
    commands = 0
    process_faults = Target.process_faults[1:]  # what is killed takes its locks with it

    def __init__(self) -> None:
        super().__init__("memory://nemesis")


class Sqlite(Target):
    process_faults = (*Target.process_faults, "file limit")  # which needs no rights, unlike a small disk

    def __init__(self, folder: Path) -> None:
        self.disk = folder / "disk"
        self.disk.mkdir()
        small = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(self.disk)]
        self.mounted = os.geteuid() == 0 and subprocess.run(small, capture_output=True).returncode == 0
        super().__init__(f"sqlite:///{self.disk}/locks.db")
        self.faults["delete"] = self.delete, nothing
        if self.mounted:
            self.faults["full disk"] = lambda: fill(self.disk), (self.disk / "filler").unlink

    def delete(self) -> None:
        for end in ("", "-wal", "-shm"):
            (self.disk / f"locks.db{end}").unlink(missing_ok=True)

    def close(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.disk)], check=True)


class Behind(Target):
    """A server behind a wire that fails."""

    wire = ("drop", "cut", "half", "mute", "swallow", 0.3)

    def __init__(self, server: Any, seed: int, options: str = "") -> None:
        self.server = server
        self.proxy = Proxy(server.port)
        rng = Random(f"wire {seed}")
        through = server.url.replace(f":{server.port}", f":{self.proxy.port}")
        super().__init__(through + options, server.url)

        def fails(how: str | float) -> Pair:
            probability = 0.1 if how in ("mute", "swallow") else 0.3
            return (
                lambda: setattr(self.proxy, "fate", lambda request: how if rng.random() < probability else ""),
                lambda: setattr(self.proxy, "fate", lambda request: ""),
            )

        self.faults |= {f"wire: {how}": fails(how) for how in self.wire}
        self.faults |= {
            "server killed": (server.kill, server.restart),
            "server stopped": (server.stop, server.cont),
            "wire severed": (self.proxy.sever, nothing),
        }

    def close(self) -> None:
        self.proxy.__exit__(None, None, None)


class Redis(Behind):
    def __init__(self, server: Server, seed: int) -> None:
        super().__init__(server, seed, "?socket_timeout=1")
        self.faults |= {
            "connections killed": (self.cut, nothing),
            "scripts flushed": (lambda: server.call("SCRIPT", "FLUSH", "SYNC"), nothing),
            "memory full": (
                lambda: server.call("CONFIG", "SET", "maxmemory", 1),
                lambda: server.call("CONFIG", "SET", "maxmemory", 0),
            ),
        }

    def cut(self) -> None:
        for kind in ("normal", "pubsub"):
            self.server.call("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")


class Sql(Behind):
    def __init__(self, server: Database, seed: int) -> None:
        super().__init__(server, seed, "?timeout=1")
        self.faults["connections killed"] = lambda: cut_all(server), nothing


class Cassandra(Target):
    def __init__(self, ring: Any) -> None:
        super().__init__(f"{ring.url}?timeout=5&skew=0")
        self.faults["server stopped"] = ring.nodes[0].stop, ring.nodes[0].cont


class FakeOci(Target):
    def __init__(self, fake: Any) -> None:
        super().__init__(f"{fake.url()}&skew=0&timeout=1")
        for fault in (429, 503, "lost", "late", "hang"):
            self.faults[f"service: {fault}"] = lambda fault=fault: self.arrange(fake, fault), fake.heal

    @staticmethod
    def arrange(fake: Any, fault: Any) -> None:
        for method in ("GET", "PUT", "DELETE"):
            fake.faults[method].extend([fault] * 4)

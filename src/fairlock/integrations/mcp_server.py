"""The tools of `fairlock mcp`: coding agents that share a checkout lock the files and folders that they change.

Each agent starts a server of its own, over standard input and output. Names are paths below the checkout, and the locks
are those of `locks.tree`: a folder excludes everything below it and above it, agents in different folders do not
exclude each other. The server renews the leases as long as it runs, so the locks of an agent that ends are free at
once. An agent may also hang or forget: each lock has a number of minutes, and `renew` sets it again.

A tool call must end soon, or its client gives up. `wait` returns after 45 seconds, and the place in the queue is kept
for a minute, so an agent that calls it again has lost nothing.

Rejected alternatives: one server for all agents (one more thing to start, and the end of an agent is not noticed), and
leases that only `renew` keeps (a model that thinks for ten minutes would lose its lock).
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Literal, NamedTuple

from mcp.server.fastmcp import FastMCP

from fairlock import ConfigError, LockError, aio
from fairlock.recipes.aio import TreeLease

Mode = Literal["read", "write"]
ROOT = "checkout"
KEPT = 60.0  # seconds for which a place in the queue is kept without a call
LONGEST_HOLD = 1440  # minutes
LONGEST_CALL = 50.0  # many clients give up after a minute
INSTRUCTIONS = """\
Other agents work in this checkout at the same time. Before you change files, acquire the smallest path that contains
them (a file, or a folder with everything below it); "." is the whole checkout. If it is held by another agent, work on
something else, or call wait. Release it as soon as your change is complete. If your work takes longer than the minutes
that you asked for, call renew; else the path is released and others may change it."""


class Held(NamedTuple):
    """A path that this agent holds, and the timer that ends it."""

    lease: TreeLease
    timer: asyncio.TimerHandle


class Waiting:
    """A wait that goes on between two calls, for KEPT seconds."""

    def __init__(self, task: asyncio.Task[TreeLease | None]) -> None:
        self.task = task
        self.timer: asyncio.TimerHandle | None = None


class AgentLocks:
    """The paths of one agent. Its public methods are the tools; their docstrings are what the model reads."""

    def __init__(self, locks: aio.Locks, folder: str) -> None:
        self._locks, self._folder = locks, os.path.realpath(folder)
        self._held: dict[str, Held] = {}
        self._waiting: dict[tuple[str, Mode], Waiting] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def acquire(self, path: str, purpose: str = "", mode: Mode = "write", minutes: float = 10) -> dict[str, Any]:
        """Lock a file or folder of the checkout, if no other agent has locked it, something in it or a folder above it.

        Returns at once. mode "read" shares it with other readers. purpose is shown to the other agents. The path is
        released after `minutes` unless you call renew.
        """
        return await self._take(path, purpose, mode, minutes, 0.0)

    async def wait(
        self, path: str, purpose: str = "", mode: Mode = "write", minutes: float = 10, seconds: float = 45
    ) -> dict[str, Any]:
        """Wait in the queue for a path and lock it. If it is not free within `seconds` (at most 50), call wait again:
        your place in the queue is kept for a minute."""
        return await self._take(path, purpose, mode, minutes, min(max(seconds, 0.0), LONGEST_CALL))

    async def renew(self, path: str, minutes: float = 10) -> dict[str, Any]:
        """Keep a path that you hold for this many minutes from now."""
        name = self._name(path)
        _check_minutes(minutes)
        held = self._mine().get(name)
        if held is None:
            raise ConfigError(f"You do not hold {path!r}: it was released, its minutes are over, or it was taken away.")
        held.timer.cancel()
        self._keep(name, held.lease, minutes)
        return {"path": self._path(name), "held": True, "minutes": minutes}

    async def release(self, path: str) -> dict[str, Any]:
        """Release a path that you hold."""
        held = self._held.pop(self._name(path), None)
        lost = held is None or held.lease.lost
        if held is not None:
            held.timer.cancel()
            await _release(held.lease)
        return {"path": path, "released": not lost}

    async def status(self, path: str) -> dict[str, Any]:
        """Show who holds or waits for a path, something in it or a folder above it."""
        name = self._name(path)
        holders, waiters = await self._seen()
        return {
            "path": self._path(name),
            "held_by_you": name in self._mine(),
            "holders": [each for each in holders if _related(f"{ROOT}/{each['path']}", name)],
            "waiting": [each for each in waiters if _related(f"{ROOT}/{each['path']}", name)],
        }

    async def list_paths(self) -> dict[str, Any]:
        """Show every path of this checkout that an agent holds or waits for."""
        holders, waiters = await self._seen()
        return {"holders": holders, "waiting": waiters}

    async def _take(self, path: str, purpose: str, mode: Mode, minutes: float, seconds: float) -> dict[str, Any]:
        name = self._name(path)
        _check_minutes(minutes)
        if mode not in ("read", "write"):
            raise ConfigError(f"mode is 'read' or 'write', not {mode!r}.")
        mine = self._mine()
        for each, held in mine.items():
            if each != name and _related(each, name) and "write" in (mode, held.lease.mode):
                raise ConfigError(f"You hold {self._path(each)!r} yourself, and both exclude each other: release it.")
        lease: TreeLease | None
        if name not in mine:
            lease = await self._wait(name, purpose, mode, seconds)
            if lease is not None:
                self._keep(name, lease, minutes)
        elif mine[name].lease.mode == mode:
            lease = mine[name].lease
            await self.renew(path, minutes)
        else:
            raise ConfigError(f"You hold {path!r} to {mine[name].lease.mode} it: release it first.")
        if lease is None:
            seen = await self.status(path)
            return {"path": self._path(name), "acquired": False, "holders": seen["holders"], "waiting": seen["waiting"]}
        return {"path": self._path(name), "acquired": True, "fence": lease.fence, "minutes": minutes}

    async def _wait(self, name: str, purpose: str, mode: Mode, seconds: float) -> TreeLease | None:
        waiting = self._waiting.get((name, mode))
        if waiting is None:
            lock = getattr(self._locks.tree(name, note=purpose[:100]), mode)()
            if not seconds:
                lease: TreeLease | None = await lock.acquire(blocking=False)
                return lease
            waiting = self._waiting[name, mode] = Waiting(asyncio.ensure_future(lock.acquire()))
        if waiting.timer is not None:
            waiting.timer.cancel()
        try:
            await asyncio.wait({waiting.task}, timeout=seconds)
        finally:
            waiting.timer = asyncio.get_running_loop().call_later(KEPT, self._give_up, (name, mode))
        if not waiting.task.done():
            return None
        waiting.timer.cancel()
        del self._waiting[name, mode]
        return waiting.task.result()

    def _give_up(self, key: tuple[str, Mode]) -> None:
        waiting = self._waiting.pop(key)
        waiting.task.cancel()
        if waiting.task.done() and not waiting.task.cancelled() and not waiting.task.exception():
            self._end(waiting.task.result())

    def _keep(self, name: str, lease: TreeLease, minutes: float) -> None:
        def over() -> None:
            self._end(self._held.pop(name).lease)

        timer = asyncio.get_running_loop().call_later(max(minutes, 0.0) * 60, over)
        self._held[name] = Held(lease, timer)

    def _end(self, lease: TreeLease | None) -> None:
        if lease is not None:
            task = asyncio.ensure_future(_release(lease))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def _mine(self) -> dict[str, Held]:
        for name in [name for name, held in self._held.items() if not held.lease.held]:
            self._held.pop(name).timer.cancel()
        return self._held

    async def _seen(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the holders and the waiters of all paths. Each of them has its path and mode in its note."""
        holders: list[dict[str, Any]] = []
        waiters: dict[tuple[str, str], dict[str, Any]] = {}
        for resource in (await self._locks.snapshot("tree:*")).resources:
            for each in resource.holders:
                mode, path, purpose = _read_note(each.note)
                if resource.name == f"tree:{path}":  # and not a folder above that it passes through
                    yours = path in self._held and each.owner == self._locks.session.owner
                    holders.append({"path": self._path(path), "mode": mode, "agent": each.owner, "purpose": purpose,
                                    "seconds": round(each.held_for), "you": yours})  # fmt: skip
            for one in resource.queue:
                mode, path, purpose = _read_note(one.note)
                waiters[one.owner, one.note] = {"path": self._path(path), "mode": mode, "agent": one.owner,
                                                "purpose": purpose, "seconds": round(one.waited)}  # fmt: skip
        return holders, list(waiters.values())

    def _name(self, path: str) -> str:
        if not path.strip():
            raise ConfigError("The path is empty. Name a file or folder; '.' is the whole checkout.")
        inside = os.path.relpath(os.path.join(self._folder, path), self._folder)
        if inside.split("/")[0] == "..":
            raise ConfigError(f"{path!r} is outside of the checkout {self._folder}.")
        return ROOT if inside == "." else f"{ROOT}/{inside}"

    def _path(self, name: str) -> str:
        return name.removeprefix(ROOT).removeprefix("/") or "."


def make_server(locks: aio.Locks, folder: str) -> FastMCP[Any]:
    """Return the server with its six tools."""
    agent = AgentLocks(locks, folder)
    server: FastMCP[Any] = FastMCP("fairlock", instructions=INSTRUCTIONS, log_level="WARNING")
    for tool in (agent.acquire, agent.wait, agent.renew, agent.release, agent.status):
        server.add_tool(tool)
    server.add_tool(agent.list_paths, name="list")
    return server


def serve(target: str | None, folder: str, **options: Any) -> None:
    """Serve one agent until its end closes standard input. Then everything that it holds is released."""

    async def run() -> None:
        async with aio.connect(target, **options) as locks:
            if locks.session.backend.scope == "process":
                raise ConfigError(f"{locks.store} ends with this process and locks nothing for other agents. Omit -u.")
            await make_server(locks, folder).run_stdio_async()

    asyncio.run(run())


def find_checkout(folder: str) -> str:
    """Return the folder with `.git` at or above this one, or this one if there is none."""
    start = here = os.path.realpath(folder)
    while not os.path.exists(f"{here}/.git"):
        above = os.path.dirname(here)
        if above == here:
            return start
        here = above
    return here


def _related(one: str, other: str) -> bool:
    one, other = one.removesuffix("/."), other.removesuffix("/.")
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _read_note(note: str) -> tuple[str, str, str]:
    """Return mode, path and purpose, as `locks.tree` writes them: 'write checkout/src: refactoring'."""
    mode, _, rest = note.partition(" ")
    path, _, purpose = rest.partition(": ")
    return mode, path, purpose


def _check_minutes(minutes: float) -> None:
    if not 0 < minutes <= LONGEST_HOLD:
        raise ConfigError(f"minutes is more than 0 and at most {LONGEST_HOLD} (a day), not {minutes:g}.")


async def _release(lease: TreeLease) -> None:
    try:
        await lease.release()
    except LockError:
        pass  # lost, or the store is down: the lease ends by itself

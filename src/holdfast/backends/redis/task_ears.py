"""How tasks hear: one subscription for each server that they wait at; what is pushed goes straight to who waits."""

from __future__ import annotations

import asyncio
from typing import Any

from ..contract import Colour, Pushed
from .hearing import Hearing
from .layout import pack
from .reading import Said, wake_up
from .tasks import Pipe, TaskNode, opened
from .trouble import lost, said_no


class TaskEars(Hearing):
    def __init__(self, colour: Colour, channel: str) -> None:
        super().__init__(colour)
        self._channel = channel
        self._pipes: dict[TaskNode, Pipe] = {}
        self._opening: dict[TaskNode, asyncio.Task[None]] = {}

    async def listen(self, node: TaskNode) -> None:
        """Be subscribed at this server from here on. BackendError or Unknown if that cannot be."""
        if node in self._pipes:
            return
        task = self._opening.get(node)
        if task is None:
            task = self._opening[node] = asyncio.ensure_future(self._subscribe(node))
            task.add_done_callback(lambda done: self._opened(node, done))
        await opened(task, node.where)

    def _opened(self, node: TaskNode, task: asyncio.Task[None]) -> None:
        if self._opening.get(node) is task:
            del self._opening[node]
        if not task.cancelled():
            task.exception()

    async def _subscribe(self, node: TaskNode) -> None:
        ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def heard(message: Any) -> None:
            if not ready.done():
                ready.set_result(message)
                return
            try:
                found = wake_up(message)
            except Said:
                return
            if found is not None:
                self.hear(*found)

        def ended(pipe: Pipe) -> None:
            if not ready.done():
                ready.set_exception(lost(node.where))
                ready.exception()
            self._drop(node, pipe)

        pipe = await node.open(heard, ended)
        pipe.transport.write(pack("SUBSCRIBE", self._channel))
        try:
            async with asyncio.timeout(node.timeout):
                reply = await ready
        except TimeoutError as late:
            pipe.close()
            raise lost(node.where, late) from None
        except BaseException:
            pipe.close()
            raise
        if type(reply) is Said:
            pipe.close()
            raise said_no(node.where, reply)
        self._pipes[node] = pipe
        self.since = self._colour.clock()

    def _drop(self, node: TaskNode, pipe: Pipe) -> None:
        pipe.close()
        if self._pipes.get(node) is pipe:
            del self._pipes[node]
            self.breaks += 1
            self.wake_all()
            if self.on_break is not None:
                self.on_break()  # threads only notice it in `hinted`, within a second

    @property
    def listening(self) -> bool:
        return bool(self._pipes)

    async def wait(self, ticket: str, timeout: float) -> Pushed | None:
        """A wake-up for this ticket; None when the time is over or something may have been missed."""
        event = self._waiting[ticket] = self._colour.event()
        try:
            if ticket not in self._hints:
                await event.wait(timeout)
            return self.take(ticket)
        finally:
            self._waiting.pop(ticket, None)

    def drain(self) -> None:
        """Nothing: what comes is taken in by the loop."""

    def forget(self, channel: str) -> None:
        """After a fork: the sockets are the parent's, and must not count as listeners when it is gone."""
        for pipe in self._pipes.values():
            pipe.forget()
        self._pipes.clear()
        self._opening.clear()
        self._hints.clear()
        self._waiting.clear()
        self._channel = channel

    async def close(self) -> None:
        opening = list(self._opening.values())
        for task in opening:
            task.cancel()
        if opening:
            await asyncio.wait(opening)
        for pipe in list(self._pipes.values()):
            pipe.close()
        self._pipes.clear()

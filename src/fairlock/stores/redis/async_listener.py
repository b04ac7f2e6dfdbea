"""The listener of tasks: one subscription for each server at which they wait; the loop delivers the wake-ups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from ..base import NEVER, Runtime
from ..wakeups import WakeupInbox
from .async_connection import AsyncNode, Opening, Pipe
from .encoding import pack
from .errors import error_for, lost
from .reply_reader import ReplyError, parse_wakeup


class AsyncListener(WakeupInbox):
    def __init__(self, runtime: Runtime, channel: str) -> None:
        super().__init__(runtime.mutex)
        self._clock = runtime.clock  # and nothing else of this client, which may be closed before the others
        self.breaks = 0  # how often a subscription broke
        self.on_break: Callable[[], None] | None = None  # leases may be lost
        self.since = NEVER  # the client's clock when the last of the subscriptions was made
        self._channel = channel
        self._pipes: dict[AsyncNode, Pipe] = {}
        self._opening: dict[AsyncNode, Opening] = {}

    async def listen(self, node: AsyncNode) -> None:
        """Subscribe at this server. StoreError or OutcomeUnknown if that fails."""
        if node in self._pipes:
            return
        await self._opening.setdefault(node, Opening(node.where)).wait(partial(self._subscribe, node))

    async def _subscribe(self, node: AsyncNode) -> None:
        ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def on_reply(message: Any) -> None:
            if not ready.done():
                ready.set_result(message)
                return
            try:
                found = parse_wakeup(message)
            except ReplyError:
                return
            if found is not None:
                self.deliver(found)

        def on_end(pipe: Pipe) -> None:
            if not ready.done():
                ready.set_exception(lost(node.where))
                ready.exception()
            self._drop(node, pipe)

        pipe = await node.open(on_reply, on_end)
        try:
            pipe.transport.write(pack("SUBSCRIBE", self._channel))
            async with asyncio.timeout(node.timeout):
                reply = await ready
            if type(reply) is ReplyError:
                raise error_for(node.where, reply)
        except TimeoutError as late:
            pipe.close()
            raise lost(node.where, late) from None
        except BaseException:
            pipe.close()
            raise
        self._pipes[node] = pipe
        self.since = self._clock()

    def _drop(self, node: AsyncNode, pipe: Pipe) -> None:
        pipe.close()
        if self._pipes.get(node) is pipe:
            del self._pipes[node]
            self.breaks += 1
            self.wake_all()
            if self.on_break is not None:
                self.on_break()  # threads only notice it in `take_wakeups`, within a second

    def drain(self) -> None:
        """Nothing to do: the loop delivers what arrives."""

    def forget(self, channel: str) -> None:
        """After a fork: the sockets belong to the parent, and must not count as subscribers when it has ended."""
        for pipe in self._pipes.values():
            pipe.forget()
        self._pipes.clear()
        self._opening.clear()
        self.clear()
        self._channel = channel

    async def close(self) -> None:
        for opening in list(self._opening.values()):
            await opening.cancel()
        for pipe in list(self._pipes.values()):
            pipe.close()
        self._pipes.clear()

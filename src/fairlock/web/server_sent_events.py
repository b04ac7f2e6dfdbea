"""The stream of server-sent events: what is new after each snapshot, until the reader goes away.

A reader that does not read blocks only its own task: the server's buffer for it is bounded, and after a while without
progress the connection is closed. There is no queue.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.types import Receive, Scope, Send

from .snapshot_poller import Poller, Reader

MOST_READERS = 256
STALLED = 30.0  # seconds
PATIENCE = 2.0  # seconds that a reader waits for the first state, if the store is slow


class EventStream:
    """An ASGI response. `hello` is the first event: what this user may do here."""

    def __init__(self, poller: Poller, reader: Reader, hello: bytes) -> None:
        self.poller = poller
        self.reader = reader
        self.hello = hello

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.poller.readers += 1
        self.poller.hurry()
        sending = asyncio.ensure_future(self._send_all(send))
        leaving = asyncio.ensure_future(self._wait_for_end(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.poller.readers -= 1
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _wait_for_end(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def _send_all(self, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send(send, b"event: hello\ndata: " + self.hello + b"\n\n")
        if self.poller.is_old:  # there was no look: what it knows is up to ten seconds old
            with suppress(TimeoutError):
                await asyncio.wait_for(self.poller.next_look.wait(), PATIENCE)
        while True:
            look = self.poller.next_look
            if self.poller.view.look:
                self.reader, state = await self.poller.state_since(self.reader)
                await self._send(send, f"id: {self.reader}\ndata: ".encode() + state + b"\n\n")
            await look.wait()

    async def _send(self, send: Send, data: bytes) -> None:
        async with asyncio.timeout(STALLED):
            await send({"type": "http.response.body", "body": data, "more_body": True})

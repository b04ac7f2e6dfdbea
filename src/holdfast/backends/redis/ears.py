"""How threads hear: one subscription for the whole client, read by whoever waits.

The first who waits reads for all and gives each wake-up to the one it names; the others wait for an event of their own.
When the reader leaves, the next one reads. So a client with one waiter needs no thread and no second wake-up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redis import exceptions

from ..contract import Colour, Event
from .trouble import cannot_connect


class ThreadEars:
    def __init__(
        self, make: Callable[[], Any], channel: str, where: str, heard: Callable[[str, int, int], None], colour: Colour
    ) -> None:
        self._make = make
        self._channel = channel
        self._where = where
        self._heard = heard
        self._colour = colour
        self.forget()

    def forget(self) -> None:
        self._mutex = self._colour.mutex()
        self._connection: Any = None
        self._reading = False
        self._followers: list[Event] = []

    async def listen(self) -> None:
        """Be subscribed from here on."""
        with self._mutex:
            if self._connection is not None:
                return
            connection = self._make()
            try:
                connection.connect()
                connection.send_command("SUBSCRIBE", self._channel)
                connection.read_response(disable_decoding=True, push_request=True)
            except (exceptions.RedisError, OSError) as error:
                connection.disconnect()
                raise cannot_connect(self._where, error) from None
            self._connection = connection

    async def wait(self, event: Event, timeout: float) -> None:
        """Until this event is set, or the time is over. Reads for everybody if nobody else does."""
        clock = self._colour.clock
        end = clock() + timeout
        while True:
            with self._mutex:
                lead = not self._reading and self._connection is not None
                if lead:
                    self._reading = True
                else:
                    self._followers.append(event)
            try:
                if lead:
                    await self._read(event, end)
                    return
                await event.wait(max(end - clock(), 0))
            finally:
                with self._mutex:
                    if lead:
                        self._reading = False
                        if self._followers:
                            self._followers[0].set()
                    elif event in self._followers:
                        self._followers.remove(event)
            return

    async def _read(self, event: Event, end: float) -> None:
        clock = self._colour.clock
        connection = self._connection
        try:
            while not await event.wait(0) and clock() < end:
                fd = connection._sock.fileno()
                if not connection.can_read(timeout=0):
                    await self._colour.readable([fd], max(end - clock(), 0))
                while connection.can_read(timeout=0):
                    message = connection.read_response(disable_decoding=True, push_request=True)
                    if message[0] == b"message":
                        ticket, place, fence = message[2].split()
                        self._heard(ticket.decode(), int(place), int(fence))
        except (exceptions.RedisError, OSError, AttributeError):
            with self._mutex:
                if self._connection is connection:
                    self._connection = None
            connection.disconnect()

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.disconnect()

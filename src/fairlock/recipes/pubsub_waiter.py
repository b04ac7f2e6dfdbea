"""How threads wait for messages on channels of Redis: one subscription, however many threads wait."""

from __future__ import annotations

import os
from threading import Condition
from typing import Any

from ..engine.boot_clock import boot_clock


class PubSubWaiter:
    """Wakes all waiting threads. One of them reads the subscription, the others wait for that one."""

    def __init__(self, client: Any, channels: list[str]) -> None:
        self._client = client
        self._channels = channels
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._changed = Condition()
        self._waiting = 0
        self._messages = 0
        self._has_reader = False
        self._pubsub: Any = None

    def __enter__(self) -> int:
        """Subscribe: nothing that is published from here on is missed. Return the count that `wait` takes."""
        if self._process != os.getpid():
            self._reset()  # the subscription is the parent's
        with self._changed:
            self._waiting += 1
            self._subscribe()
            return self._messages

    def _subscribe(self) -> None:
        from redis.exceptions import RedisError

        if self._pubsub is None:
            pubsub = self._client.pubsub(ignore_subscribe_messages=True)
            try:
                pubsub.subscribe(*self._channels)
                pubsub.get_message(timeout=1.0)  # the reply to the first one: from here on nothing is missed
                self._pubsub = pubsub
            except (RedisError, OSError):  # waiters poll instead
                pubsub.close()

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._waiting -= 1
            if not self._waiting:
                self._drop()

    def _drop(self) -> None:
        pubsub, self._pubsub = self._pubsub, None
        if pubsub is not None:
            pubsub.close()

    def wait(self, messages: int, seconds: float) -> int:
        """Wait until more messages have arrived than this, at most this long. Return their number."""
        end = boot_clock() + seconds
        while True:
            with self._changed:
                left = end - boot_clock()
                if self._messages != messages or left <= 0:
                    return self._messages
                self._subscribe()
                if self._has_reader or self._pubsub is None:
                    self._changed.wait(left)
                    continue
                self._has_reader, pubsub = True, self._pubsub
            received, broken = False, True
            try:
                received, broken = pubsub.get_message(timeout=left) is not None, False
            except (OSError, ValueError, self._errors()):
                pass
            finally:
                with self._changed:
                    self._has_reader = False
                    self._messages += received
                    if broken and self._pubsub is pubsub:
                        self._drop()
                    self._changed.notify_all()

    def _errors(self) -> type[Exception]:
        from redis.exceptions import RedisError

        return RedisError

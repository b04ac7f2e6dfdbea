"""A client of redis-py that loses replies: the server has carried out the command, and no reply arrives."""

from __future__ import annotations

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError
from redis.retry import Retry

from tests.servers.server import Server


class Losses:
    """How many of the next answers to this command get lost, and what the client gets in their place."""

    left = 0
    command = "EVALSHA"
    error: BaseException = ConnectionError("the answer was lost")

    def next(self, count: int, error: BaseException = error, command: str = command) -> None:
        self.left, self.error, self.command = count, error, command


class LosingConnection(redis.Connection):
    def __init__(self, losses: Losses, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._losses = losses
        self._asked = ""

    def send_command(self, *args: Any, **kwargs: Any) -> None:
        self._asked = args[0]
        super().send_command(*args, **kwargs)

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        answer = super().read_response(*args, **kwargs)
        if self._asked == self._losses.command and self._losses.left:
            self._losses.left -= 1
            self.disconnect()
            raise self._losses.error
        return answer


def losing_client(server: Server, retries: int = 0) -> tuple[redis.Redis, Losses]:
    """The client retries so often by itself, without telling."""
    losses = Losses()
    pool = redis.ConnectionPool(
        connection_class=LosingConnection, port=server.port, losses=losses, retry=Retry(NoBackoff(), retries)
    )
    return redis.Redis(connection_pool=pool), losses

"""Run a coroutine in a thread: its calls block instead of suspending, so one `send` runs it to the end."""

from collections.abc import Coroutine
from os import getpid
from typing import Any, TypeVar

from .. import forks

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    if getpid() != forks.process:
        forks.notice()
    try:
        work.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    work.close()
    raise RuntimeError("a coroutine of the blocking client was suspended; its runtime must block")

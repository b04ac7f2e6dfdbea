"""The time of a server, estimated from its last reply: never ahead of the server's clock, and without a request.

The server read its clock before its reply arrived, so its time is at least what it sent plus the time since then.
A step at a time that is a little too early is sound (it drops less); the client counts its own deadlines from before
the request was sent.
"""

from collections.abc import Callable
from math import inf

from .base import Sample


class ServerClock:
    def __init__(self, clock: Callable[[], float], kept: float, longest_reply: float = inf, slack: float = 0.0) -> None:
        """Estimate by the client's `clock`. `kept`: seconds for which a reply is used; `longest_reply`: one that took
        longer is too inexact; `slack`: seconds by which the estimate stays behind."""
        self._clock = clock
        self._kept = kept
        self._longest_reply = longest_reply
        self._slack = slack
        self._last: tuple[int, float, float] | None = None  # the server's time; the client's before and after

    def note(self, now: int, before: float, after: float | None = None) -> None:
        """Remember the time that a server has sent, in microseconds, in reply to a request of `before`; the reply came
        at `after`, or just now."""
        self._last = now, before, self._clock() if after is None else after

    def forget(self) -> None:
        self._last = None

    def estimate(self) -> Sample | None:
        """Return the server's time now, and the client's clock before it was sampled; None: no reply is recent."""
        if self._last is None:
            return None
        now, before, after = self._last
        at = self._clock()
        if not 0 <= at - after <= self._kept or after - before > self._longest_reply:
            return None
        return Sample(now + int((at - after - self._slack) * 1e6), at - (after - before) - self._slack)

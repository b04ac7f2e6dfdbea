"""What happens to a message on its way: it arrives, late, twice, in another order, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.simulation.world import World


class Weather(NamedTuple):
    """Chances and spans. The default is a fine day: every message arrives, within half a millisecond."""

    least: float = 0.0002
    jitter: float = 0.0003
    lost: float = 0.0
    late: float = 0.0
    late_by: float = 0.0  # at most; longer than the time-out makes an unknown outcome that is done after all
    twice: float = 0.0


FINE = Weather()
LATE = 3.0  # by decree: after every time-out, before every tombstone has gone


class Wire:
    def __init__(self, world: World, weather: Weather = FINE) -> None:
        self.world = world
        self.weather = weather
        self.cut = False  # nothing gets through
        self.under_way = 0

    def carry(self, call: Callable[[], object], fate: str, what: str, *things: Any) -> None:
        """Have this happen at the other end, if and when the message arrives. fate: 'lost' or 'late', by decree."""
        rng, weather = self.world.random, self.weather
        if self.cut or fate == "lost" or rng.random() < weather.lost:
            self.world.note("wire", "loses " + what, *things)
            return
        for _ in range(2 if rng.random() < weather.twice else 1):
            seconds = weather.least + weather.jitter * rng.random()
            if fate == "late":
                seconds += LATE
            elif rng.random() < weather.late:
                seconds += weather.late_by * rng.random()
            self.under_way += 1
            self.world.after(seconds, self._arrive, call)

    def _arrive(self, call: Callable[[], object]) -> None:
        self.under_way -= 1
        call()


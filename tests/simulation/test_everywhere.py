"""One thing goes wrong, at every place where it can: exhaustively over a short play, not at random.

The play: `a` holds the lock for a moment, `b` waits for it, works, gives it back, and `c`, who came last, gets it. Then
`b` is cancelled at each of its waits, or is stopped, crashes or is cut off between any two steps of the world. Whatever
happens to `b`: nothing of it stays behind, and `c` gets in.
"""

import pytest

from tests.simulation.actors import Stage
from tests.simulation.engine_under_test import REAL

STORES = ["hints", "grants", "rows", "cached", "embedded"]


class Play:
    def __init__(self, store: str, local: bool = False) -> None:
        """local: two of `b`'s process want it, so that one waits behind the other."""
        self.stage = stage = Stage(REAL, store, 3)
        self.a, self.b, self.c = stage.clients
        stage.go(self.a, self.a.errand(self.a.request(lease=1.0), None, 0.02))
        stage.until(0.002)
        self.visitor = stage.go(self.b, self.b.errand(self.b.request(lease=1.0), None, 0.02))
        self.begun = stage.world.steps
        if local:
            stage.until(0.004)
            stage.go(self.b, self.b.errand(self.b.request(lease=1.0), None, 0.02))
        stage.at(0.006, self._third)
        stage.at(20.0, lambda: None)

    def _third(self) -> None:
        self.last = self.stage.go(self.c, self.c.errand(self.c.request(lease=1.0), None, 0.02))

    def steps(self, count: int) -> None:
        world = self.stage.world
        world.run(30.0, lambda: world.steps >= self.begun + count)

    def check(self, within: float, crashed: bool = False) -> None:
        stage = self.stage
        stage.until(stage.world.now + within)
        stage.expect(stage.result(self.last), "c got in")
        stage.until(stage.world.now + 8.0)
        stage.expect(not stage.holders(), f"holders: {stage.holders()}")
        stage.expect(not stage.queue(), f"in queue: {stage.queue()}")
        if not crashed:
            stage.expect(all(task.done for task in stage.tasks), "everybody is through")
            stage.expect(not self.b.session.pending_releases, f"pending_releases: {self.b.session.pending_releases}")
            stage.expect(not self.b.session.grants, "b keeps nothing")


def length(store: str, local: bool) -> tuple[int, int]:
    """Return the number of waits of the visitor and of steps of the play."""
    play = Play(store, local)
    stage = play.stage
    stage.world.run(5.0, lambda: all(t.done for t in stage.tasks) and len(stage.tasks) > 2 + local)
    return play.visitor.awaits, stage.world.steps - play.begun


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("local", [False, True])
def test_cancelled_at_any_wait(store: str, local: bool) -> None:
    waits, _ = length(store, local)
    assert waits >= 4
    for i in range(1, waits + 1):
        play = Play(store, local)
        play.visitor.cancel_at = i
        play.check(1.0)


@pytest.mark.parametrize("store", STORES)
def test_cancelled_twice(store: str) -> None:
    """The second cancellation meets the undoing of the first one, which is shielded."""
    waits, _ = length(store, False)
    for i in range(1, waits + 1):
        for later in (0.0, 0.0004, 0.002):
            play = Play(store)
            play.visitor.cancel_at = i
            play.visitor.when_cancelled = lambda v=play.visitor, p=play, s=later: p.stage.world.after(s, v.cancel)
            play.check(1.0)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("fates", [("lost", ""), ("", "lost"), ("late", ""), ("", "late")], ids="-".join)
def test_cancelled_while_a_message_goes_astray(store: str, fates: tuple[str, str]) -> None:
    """The n-th message from here on is lost or late, and the visitor is cancelled a moment after it was sent."""
    for n in range(4):
        for later in (0.0001, 0.3, 0.7):
            play = Play(store)
            backend = play.b.backend
            if store not in ("hints", "grants"):
                backend.store.fates = [("", "")] * n + [fates]
                backend.store.write_fates = [("", "")] * n + [fates]
            else:
                backend.fates = [("", "")] * n + [fates]
            play.stage.at(0.003 + n * 0.001 + later, play.visitor.cancel)
            play.check(4.0)  # what is late is late by 3 s


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("listener, within", [("alive", 3.3), ("unreachable", 3.3), ("dead", 1.1)])
def test_crashed_between_any_two_steps(store: str, local: bool, listener: str, within: float) -> None:
    """A dead holder costs its lease (1 s), a dead waiter its turn (2 s), unless the store knows."""
    _, steps = length(store, local)
    for k in range(0, steps, 1 if not local else 3):
        play = Play(store, local)
        play.steps(k)
        play.b.process.crash(listener)
        play.check(within, crashed=True)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("seconds", [0.4, 1.5, 2.5, 6.0])
def test_stopped_between_any_two_steps(store: str, seconds: float) -> None:
    _, steps = length(store, True)
    for k in range(0, steps, 2):
        play = Play(store, True)
        play.steps(k)
        play.b.process.freeze(seconds)
        play.check(max(seconds, 3.3) + 0.1)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("seconds", [0.3, 1.5, 4.0])
def test_cut_off_between_any_two_steps(store: str, seconds: float) -> None:
    _, steps = length(store, True)
    for k in range(0, steps, 3):
        play = Play(store, True)
        play.steps(k)
        end = getattr(play.b.backend, "store", play.b.backend)
        end.cut = True
        play.stage.world.after(seconds, setattr, end, "cut", False)
        play.check(max(seconds + 1.0, 3.3))

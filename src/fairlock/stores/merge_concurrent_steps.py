"""Steps of one client at the same row are made together: one reads and writes for all that have come meanwhile.

Without this, the threads or tasks of one client refuse each other's writes: of 200 that want a slot of one semaphore at
most one succeeds in each round trip, and those that were refused read again. The first to come leads: it applies the
commands of all that wait, in the order in which they came, writes once, and gives each its reply. When it has finished,
the next one leads.

This is for speed alone; what makes a step atomic is the version of the row. So no step depends on its leader: a turn
that is not served within a moment, because the leader hangs or was interrupted, leads for itself.

Rejected alternatives: a lock for each row, one step after the other (as orderly, but a write for each); a task of its
own for each row (dies with its loop, and threads have none).
"""

from collections.abc import Callable, Iterable

from ..errors import LockError
from ..rules.locks import Command
from .base import Answer, Event, OutcomeUnknown, Runtime
from .deadline import over

RETRY_FOR = 1.0  # seconds for which one waits to be served before it leads for itself
LOST = 30.0  # seconds after which no leader will report the outcome of a command that it has sent for others
MOST = 64  # commands in one write


class Turn:
    """One command on its way."""

    __slots__ = ("again", "answer", "command", "error", "event", "leads", "taken")

    def __init__(self, command: Command) -> None:
        self.command = command
        self.again = False  # an earlier try may have been carried out
        self.answer: Answer | None = None
        self.error: BaseException | None = None
        self.event: Event | None = None
        self.leads = False
        self.taken = False  # by the one that leads


class Turns:
    """The turns at each row: one leads, the others wait. Rows without any are not in here."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.reset()

    def reset(self) -> None:
        self._mutex = self._runtime.mutex()
        self._lines: dict[str, list[Turn]] = {}
        self._resting: dict[str, Event] = {}  # leaders that give way to other clients
        self.waiters: dict[str, int] = {}  # how many of this client wait for a wake-up; they make a step then

    def begin(self, key: str) -> bool:
        """Lead at this row if no other does; then `end` it."""
        queue: list[Turn] = []
        return self._lines.setdefault(key, queue) is queue

    def end(self, key: str) -> None:
        """The next one leads, if there is any."""
        with self._mutex:
            queue = self._lines.pop(key, None)
            if queue:
                heir = queue.pop(0)
                self._lines[key] = queue
                heir.leads = True
                assert heir.event is not None
                heir.event.set()

    async def wait(self, key: str, turn: Turn) -> bool:
        """Return True if this one must lead and then call `end`; else it was served, or failed."""
        with self._mutex:
            queue = self._lines.get(key)
            if queue is None:
                self._lines[key] = []
                return True
            turn.event = self._runtime.event()
            queue.append(turn)
            resting = self._resting.get(key)
        if resting is not None:
            resting.set()
        try:
            return await self._served(turn, queue)
        except BaseException:
            with self._mutex:
                if turn in queue:
                    queue.remove(turn)
            if turn.leads:
                self.end(key)
            raise

    async def _served(self, turn: Turn, queue: list[Turn]) -> bool:
        assert turn.event is not None
        limit = self._runtime.clock() + LOST
        while True:
            await turn.event.wait(RETRY_FOR)
            with self._mutex:
                if turn.leads or turn.answer is not None or turn.error is not None:
                    return turn.leads
                if not turn.taken:
                    if turn in queue:
                        queue.remove(turn)
                    turn.leads = True
                    return True
            if self._runtime.clock() > limit:
                raise OutcomeUnknown("another step of this client carried it and did not return")

    def add_waiter(self, key: str, change: int = 1) -> None:
        """Note that one more, or with -1 one fewer, waits for a wake-up of this row."""
        with self._mutex:
            number = self.waiters.pop(key, 0) + change
            if number > 0:
                self.waiters[key] = number

    async def rest(self, key: str, seconds: float, hurries: Callable[[Turn], bool]) -> None:
        """Pause as the leader of this row, but not while a turn that is in a hurry waits behind it."""
        event = self._resting[key] = self._runtime.event()
        end = self._runtime.clock() + seconds
        try:
            while (left := end - self._runtime.clock()) > 0:
                event.clear()
                with self._mutex:
                    if any(map(hurries, self._lines.get(key, ()))):
                        return
                await event.wait(left)
        finally:
            self._resting.pop(key, None)

    def join(self, key: str, batch: list[Turn]) -> bool:
        """Take along those that wait now, up to a limit. Return True if there were any."""
        with self._mutex:
            queue = self._lines.get(key)
            if not queue:
                return False
            more = queue[: MOST - len(batch)]
            batch += more  # first: after a Ctrl-C between any of these lines each is in one of both
            for turn in more:
                turn.taken = True
            del queue[: len(more)]
        return bool(more)

    def failed(self, batch: Iterable[Turn], error: BaseException) -> None:
        """The leader failed: for the others the outcome is the same, or unknown. If only its own time
        was over, the others have theirs, and ask again."""
        from copy import copy

        known = isinstance(error, LockError) and not over()
        for turn in batch:
            if turn.event is not None and turn.answer is None and not turn.leads:
                turn.error = copy(error) if known else OutcomeUnknown("the step that carried it did not return")
                turn.event.set()


def served(batch: Iterable[Turn]) -> None:
    """All of these have their reply."""
    for turn in batch:
        if turn.event is not None:
            turn.event.set()

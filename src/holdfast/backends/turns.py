"""Steps of one client at the same row are made together: one reads and writes for all who have come meanwhile.

Without this, the threads or tasks of one client refuse each other's writes: of 200 who want a slot of one semaphore at
most one gets on with each round trip, and who was refused reads again. The first to come leads: it applies the commands
of all that wait, in the order in which they came, writes once, and gives each its reply. When it has finished, the next
one leads.

This is for speed alone; what makes a step atomic is the version of the row. So no one depends on its leader: whoever is
not served within a moment, because the leader hangs or was interrupted, leads for itself.

Rejected alternatives: a lock for each row, one step after the other (as orderly, but a write for each); a task of its
own for each row (dies with its loop, and threads have none).
"""

from collections.abc import Callable, Iterable

from ..doorman import Command
from ..errors import LockError
from .contract import Answer, Colour, Event, Unknown
from .patience import over

PATIENCE = 1.0  # seconds for which one waits to be served before it leads for itself
LOST = 30.0  # seconds after which nobody will say what became of a command that another has sent
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
        self.taken = False  # by the one who leads


class Turns:
    """Who is at which row. The rows that nobody is at are not in here."""

    def __init__(self, colour: Colour) -> None:
        self._colour = colour
        self.reset()

    def reset(self) -> None:
        self._mutex = self._colour.mutex()
        self._lines: dict[str, list[Turn]] = {}
        self._resting: dict[str, Event] = {}  # leaders that give way to other clients

    def begin(self, key: str) -> bool:
        """Be at this row if nobody is; then `end` it."""
        line: list[Turn] = []
        return self._lines.setdefault(key, line) is line

    def end(self, key: str) -> None:
        """The next one leads, if there is any."""
        with self._mutex:
            line = self._lines.pop(key, None)
            if line:
                heir = line.pop(0)
                self._lines[key] = line
                heir.leads = True
                assert heir.event is not None
                heir.event.set()

    async def wait(self, key: str, turn: Turn) -> bool:
        """Whether this one is to lead, and then to `end`; else it was served, or failed."""
        with self._mutex:
            line = self._lines.get(key)
            if line is None:
                self._lines[key] = []
                return True
            turn.event = self._colour.event()
            line.append(turn)
            resting = self._resting.get(key)
        if resting is not None:
            resting.set()
        try:
            return await self._served(turn, line)
        except BaseException:
            with self._mutex:
                if turn in line:
                    line.remove(turn)
            if turn.leads:
                self.end(key)
            raise

    async def _served(self, turn: Turn, line: list[Turn]) -> bool:
        assert turn.event is not None
        limit = self._colour.clock() + LOST
        while True:
            await turn.event.wait(PATIENCE)
            with self._mutex:
                if turn.leads or turn.answer is not None or turn.error is not None:
                    return turn.leads
                if not turn.taken:
                    if turn in line:
                        line.remove(turn)
                    turn.leads = True
                    return True
            if self._colour.clock() > limit:
                raise Unknown("another step of this client took it along and did not come back")

    async def rest(self, key: str, seconds: float, hurries: Callable[[Turn], bool]) -> None:
        """Pause as the leader of this row, but not while somebody waits behind it who is in a hurry."""
        event = self._resting[key] = self._colour.event()
        end = self._colour.clock() + seconds
        try:
            while (left := end - self._colour.clock()) > 0:
                event.clear()
                with self._mutex:
                    if any(map(hurries, self._lines.get(key, ()))):
                        return
                await event.wait(left)
        finally:
            self._resting.pop(key, None)

    def join(self, key: str, batch: list[Turn]) -> bool:
        """Take along who waits now, up to a limit. Whether there was anybody."""
        with self._mutex:
            line = self._lines.get(key)
            if not line:
                return False
            more = line[: MOST - len(batch)]
            batch += more  # first: a Ctrl-C after any of these lines leaves nobody out of both
            for turn in more:
                turn.taken = True
            del line[: len(more)]
        return bool(more)

    def failed(self, batch: Iterable[Turn], error: BaseException) -> None:
        """The one who led did not get through: for the others it is the same, or nobody knows. If only its own time
        was over, the others have theirs, and ask again."""
        from copy import copy

        known = isinstance(error, LockError) and not over()
        for turn in batch:
            if turn.event is not None and turn.answer is None and not turn.leads:
                turn.error = copy(error) if known else Unknown("the step that took it along did not come back")
                turn.event.set()


def served(batch: Iterable[Turn]) -> None:
    """All of these have their reply."""
    for turn in batch:
        if turn.event is not None:
            turn.event.set()

"""The steps that threads make without a coroutine: one write, one read.

Into an empty room and out of it by the scripts with one key; into the line of a lock that many want, and out past it,
by the full step. Whatever takes more than one question and its answer is left to the backend's `ask`, and what a server
has to say about itself to its courier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...doorman import Admitted, Command, Enter, Leave, Left
from ..contract import Answer
from . import layout, trouble
from .door import Door
from .layout import pack
from .reading import Said

LIST_AGAIN = 3600.0  # seconds after which the index hears of a name that is in use
# Written before a Leave: the server then writes to whom it has let in before it writes to who has left.
PING = pack("PING")
LEFT = Left(True)
NUMBER = ord(":")
new: Any = tuple.__new__


class AtOnce:
    where: str
    ears: Any
    _doors: dict[str, Door]
    _clock: Callable[[], float]
    _node_of: Callable[[int], Any]
    _plain: bool  # whether a thread asks, and nobody else is to confirm it

    def at_once(self, name: str, command: Command) -> Answer | None:
        """The commonest steps, for threads: one write, one read, no coroutine. Unknown if no answer came."""
        door = self._doors.get(name)
        if door is None or not self._plain:
            return None
        at = self._clock()
        if at - door.listed > LIST_AGAIN:
            return None
        try:
            node = self._node_of(door.slot)
        except LookupError:
            return None
        if door.crowded:
            return self._step_at_once(name, door, node, command, at)
        payload = door.quick(command)
        raw = payload and node.say(payload)
        if not raw:
            return None  # nothing was said, or the server has something to say about itself: that is for the courier
        if raw[0] != NUMBER:
            door.crowded = True
            return self._step_at_once(name, door, node, command, at)
        # Named tuples without the function that each of them has for being made: it takes as long as all of the above.
        if type(command) is Enter:
            answer: Answer = new(Answer, (new(Admitted, (int(raw[1:]), command[3])), at, False))
        else:
            answer = new(Answer, (LEFT, at, False))
        return answer

    def _step_at_once(self, name: str, door: Door, node: Any, command: Command, at: float) -> Answer | None:
        """The same with the full step, for locks that many want."""
        if type(command) is Leave:
            found = node.tell(PING + door.step(command), 2)
        elif type(command) is Enter and (not command.wait or self.ears.hears(node)):
            found = node.tell(door.step(command), 1)
        else:
            return None
        raw = found and found[-1]
        if type(raw) is not list:
            if type(raw) is Said:
                trouble.doubt_if_begun(raw)
            return None
        door.crowded = raw.pop() != b"1"
        try:
            answer: Answer = new(Answer, (layout.reply(raw), at, False))
        except trouble.UNREADABLE as bad:
            raise trouble.unreadable(bad, name, self.where) from None
        return answer

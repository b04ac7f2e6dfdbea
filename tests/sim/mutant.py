"""What a deliberate break is: an exact snippet of one file, its replacement, and the scene that must catch it."""

from typing import NamedTuple

from tests.sim.scenes import Scene

ACQUIRE, DESK, SEAT, PARTY = "flow/acquire.py", "flow/desk.py", "flow/seat.py", "flow/party.py"
KEEP, CHANGE, ENTER, SHORT = "flow/keep.py", "flow/change.py", "flow/enter.py", "flow/short.py"
RELEASE = "flow/release.py"
CAS, POLLING, TURNS = "backends/cas.py", "backends/polling.py", "backends/turns.py"


class Mutant(NamedTuple):
    what: str
    caught_by: Scene
    file: str
    old: str
    new: str
    also: tuple[str, str, str] | None = None

"""What a deliberate break is: an exact snippet of one file, its replacement, and the scene that must catch it."""

from typing import NamedTuple

from tests.simulation.scenes import Scene
from tests.simulation.world import Violation

ACQUIRE, RELEASE, RENEWAL = "engine/acquire.py", "engine/release.py", "engine/renewal.py"
SESSION, GRANT, LOCAL_QUEUE = "engine/session.py", "engine/grant.py", "engine/local_queue.py"
LEASE_OPS, WITH_BLOCK, REQUEST = "engine/lease_ops.py", "engine/with_block.py", "engine/request.py"
WITHDRAW, RENEWAL_MESSAGES = "engine/withdraw_request.py", "engine/renewal_messages.py"
RELEASE_REQUEST = "engine/ask_to_release.py"
CAS, SHARED_STEPS = "stores/cas.py", "stores/merge_concurrent_steps.py"


class Mutant(NamedTuple):
    what: str
    caught_by: Scene
    file: str
    old: str
    new: str
    also: tuple[str, str, str] | None = None
    raises: type[Exception] = Violation
    """The exception that catches it. A typo in a mutant raises another one, and the test fails."""

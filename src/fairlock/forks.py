"""What is reset in the child of a fork, also if the fork called no hook of Python.

Python calls its hooks for its own forks. A server written in C forks by itself, and uWSGI calls no hooks: its workers
would go on with the tickets and connections of their parent, and two of them would hold one lock. So `acquire`,
`release` and whatever reads a lease compare the number of the process with `process`, and call `notice` if it differs.
"""

import os
import threading
from collections.abc import Callable

process = os.getpid()
_resets: list[Callable[[], object]] = []
_guard = threading.RLock()
_reset_for = process


def reset_in_child(reset: Callable[[], object]) -> None:
    """Call this in the child of each fork, after those that were given before it."""
    _resets.append(reset)


def notice() -> None:
    """Reset what the child has inherited, unless that is done: the process has another number than before."""
    global process, _reset_for
    with _guard:  # the child may have several threads by now
        if os.getpid() not in (process, _reset_for):
            _reset_for = os.getpid()
            for reset in _resets:
                reset()
            process = _reset_for  # last: until then the other threads wait


def _forked() -> None:
    global _guard
    _guard = threading.RLock()  # another thread of the parent may have held it
    notice()


os.register_at_fork(after_in_child=_forked)
